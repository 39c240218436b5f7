/** Messages of dynamic client registration (RFC 7591) and its management (RFC 7592). */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { Principal } from '../../../domain/principal.js'

export type ClientRegistrationProtocol = {
  registerClient: Ask<Register, Registered | MetadataRefused | TokenRefused>
  readRegistration: Ask<ManageRegistration, RegistrationFound | TokenRefused>
  replaceRegistration: Ask<ReplaceRegistration, RegistrationFound | MetadataRefused | TokenRefused>
  deleteRegistration: Ask<ManageRegistration, { readonly tag: 'removed' } | TokenRefused>
  /** Creates an initial access token. */
  createRegistrationToken: Ask<CreateToken, TokenCreated | ScopesRefused | IdempotencyRefused>
}

/** The metadata as sent. Unknown members are ignored (RFC 7591 section 2). */
export type ClientMetadata = Readonly<Record<string, unknown>>

export type Register = {
  readonly metadata: ClientMetadata
  /** The Authorization header as sent. Null if absent. */
  readonly authorization: string | null
  /** Determines the tenant without an initial access token. */
  readonly host: string
  readonly address: string
}
/** A registered client, with wire names. */
export type Registration = {
  readonly clientId: string
  readonly issuedAt: Date
  readonly metadata: ClientMetadata
  /** Returned once. Null if no secret was created. */
  readonly clientSecret: string | null
  readonly registrationAccessToken: string
}
export type Registered = { readonly tag: 'registered'; readonly registration: Registration }
export type RegistrationFound = { readonly tag: 'found'; readonly registration: Registration }
/** RFC 7591 section 3.2.2. `share_exhausted`: too many documents that clients of the tenant name are waited for. */
export type MetadataRefused = {
  readonly tag: 'refused'
  readonly error: 'invalid_redirect_uri' | 'invalid_client_metadata' | 'share_exhausted'
  readonly description: string
}
/** No token, an unknown token or one without remaining uses (RFC 6750 section 3.1). */
export type TokenRefused = {
  readonly tag: 'token_refused'
  readonly description: string
  /** The request has no token. */
  readonly isMissing: boolean
}

export type ManageRegistration = {
  /** The path parameter. */
  readonly clientId: string
  readonly authorization: string | null
  readonly address: string
}
export type ReplaceRegistration = ManageRegistration & { readonly metadata: ClientMetadata }

export type CreateToken = {
  readonly principal: Principal
  readonly address: string
  readonly expiresInSecs: number
  readonly maxUses: number
  /** What its clients may have at most. Null: the scopes of users, credentials and API resources. */
  readonly scopes: readonly string[] | null
  readonly idempotency: IdempotencyClaim | null
}
export type TokenCreated = {
  readonly tag: 'created'
  readonly id: string
  /** Returned once. Null on an idempotent replay. */
  readonly token: string | null
  readonly expiresAt: Date
  readonly maxUses: number
  /** The requested scopes without unknown ones and those that the caller lacks. */
  readonly scopes: readonly string[] | null
  readonly replayed: boolean
}
/** No requested scope is left. */
export type ScopesRefused = { readonly tag: 'no_scope_left' }

export const clientRegistration = address<ClientRegistrationProtocol>('client-registration', {
  idempotent: ['readRegistration'],
})
