/** An authorization request between its validation and its response. */
import type { ActorRef } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { BrowserSessionsProtocol } from '../../../identity/sign-in/sessions/protocol.js'
import type { ClientLogos } from '../clients/metadata/client-logos.js'
import type { AccessPolicies } from '../issue/access-policies.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import type { OidcSettings } from '../settings.js'
import type { AuthorizationRequest } from './parameters.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type InteractionNeeds = WriteNeeds & {
  readonly sessions: ActorRef<BrowserSessionsProtocol>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly issuer: string
  readonly oidc: Pick<OidcSettings, 'code_ttl_secs'>
  readonly sessionSecsMax: number
  readonly logos: Pick<ClientLogos, 'of'>
  /** Null where access policies are off. */
  readonly accessPolicies: Pick<AccessPolicies, 'inForce' | 'record'> | null
}

/** A request that waits for sign-in, consent or its code. */
export type PendingRequest = {
  readonly client: AuthorizingClientRow
  readonly request: AuthorizationRequest
  /** Its arrival at the authorization endpoint: the reference of `max_age` and `prompt=login`. */
  readonly requestedAt: Date
  /** The pushed request that it continues. Null without one. */
  readonly pushedId: string | null
  /** Where it is stored. Null if no interaction was needed so far. */
  readonly stored: { readonly id: string; readonly handle: string } | null
  readonly sessionToken: string | null
  readonly browserId: string
  /** It is a form of another site. A browser adds no cookie to it (SameSite=Lax). */
  readonly isForeignForm: boolean
  /** The address of the browser. */
  readonly address: string
  /** The consent that the user just gave. Null without one. */
  readonly allowed: Allowed | null
  /** The user wants another account, or chose one whose session is not the browser's any more. Default: neither. */
  readonly choice?: 'another' | 'gone' | undefined
}

/** A consent is valid only in the session and for the scopes of its consent page. */
export type Allowed = { readonly sessionId: string; readonly scopes: readonly string[] }
