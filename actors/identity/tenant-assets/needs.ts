/** What the handlers of images get. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { ImageCompute } from './pool.js'
import type { AssetInvalid, TenantAssetsProtocol } from './protocol.js'
import type { ObjectStore } from './store.js'

type UploadOutcome = 'shown' | 'unchanged' | AssetInvalid['why'] | 'full'

export type TenantAssetsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
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
