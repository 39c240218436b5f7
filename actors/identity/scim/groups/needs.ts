/** What the handlers of SCIM groups get. */
import type { Handler } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { EndingNeeds } from '../../../platform/people/ending.js'
import type { ScimGroupsProtocol } from './protocol.js'

export type ScimGroupsNeeds = EndingNeeds & {
  readonly database: Database
  readonly clock: Clock
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
