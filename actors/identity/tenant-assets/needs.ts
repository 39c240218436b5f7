/** What the handlers of images get. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import type { ImageCompute } from './pool.js'
import type { AssetInvalid, TenantAssetsProtocol } from './protocol.js'
import type { ObjectStore } from './store.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

type UploadOutcome = 'shown' | 'unchanged' | AssetInvalid['why'] | 'full'

export type TenantAssetsNeeds = WriteNeeds & {
  readonly compute: ImageCompute
  readonly store: ObjectStore
  /** What precedes the key of an image in the URLs of pages (`publicBase`). */
  readonly base: string
  /** The public base URL of the service. */
  readonly issuer: string
  readonly count: (outcome: UploadOutcome) => void
}

export type Handling<K extends keyof TenantAssetsProtocol> = Handler<
  TenantAssetsNeeds,
  TenantAssetsProtocol,
  K
>
