/** An authorization request that is being decided, and what deciding it takes. */
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { AuthorizingClientRow } from '../../../storage/oauth/applications.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { BrowserSessionsProtocol } from '../../identity/sessions/protocol.js'
import type { KeysProtocol } from '../signing-keys/protocol.js'
import type { OidcSettings } from '../tokens/settings.js'
import type { AuthorizationRequest } from './parameters.js'

export type InteractionNeeds = {
  readonly database: Database
  readonly sessions: ActorRef<BrowserSessionsProtocol>
  readonly keys: ActorRef<KeysProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
  readonly oidc: Pick<OidcSettings, 'code_ttl_secs'>
  readonly sessionSecsMax: number
}

/** A request on its way. */
export type Underway = {
  readonly client: AuthorizingClientRow
  readonly request: AuthorizationRequest
  /** When it came to the authorization endpoint: what `max_age` and `prompt=login` are measured by. */
  readonly requestedAt: Date
  /** The pushed request that it continues. */
  readonly pushedId: string | null
  /** Where it is kept; null while nobody had to be asked anything. */
  readonly kept: { readonly id: string; readonly handle: string } | null
  readonly sessionToken: string | null
  /** What the person just said yes to. */
  readonly allowed: Allowed | null
}

/** A yes counts in the session that was asked, and for the scopes that the question named. */
export type Allowed = { readonly sessionId: string; readonly scopes: readonly string[] }
