/** What the handlers of SCIM groups get. */
import type { Handler } from '../../../../runtime/kernel/actor.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import type { ScimGroupsProtocol } from './protocol.js'

export type ScimGroupsNeeds = WriteNeeds & {
  /** `oidc.issuer_url`. */
  readonly issuer: string
  /** `scim.max_results`. */
  readonly maxResults: number
}

export type Handling<K extends keyof ScimGroupsProtocol> = Handler<
  ScimGroupsNeeds,
  ScimGroupsProtocol,
  K
>
