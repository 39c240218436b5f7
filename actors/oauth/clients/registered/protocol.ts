/** Messages for the applications (OAuth clients) of a tenant. See docs/reference/oauth.md. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { ApplicationId, TenantId } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import type { AudienceRefused } from '../../resources/api-resources/protocol.js'
import type { ListCursor, Page } from '../../../domain/paging.js'
import type { SigningAlgorithm } from '../../signing-keys/protocol.js'

export type ApplicationsProtocol = {
  listApplications: Ask<ListApplications, ApplicationsListed>
  getApplication: Ask<ReadApplication, ApplicationFound | ApplicationUnknown>
  createApplication: Ask<
    CreateApplication,
    | ApplicationCreated
    | ApplicationInvalid
    | ApplicationForbidden
    | ApplicationRefused
    | IdempotencyRefused
  >
  /** Replaces the application completely: absent members get their defaults. */
  replaceApplication: Ask<
    ReplaceApplication,
    | ApplicationReplaced
    | ApplicationInvalid
    | ApplicationForbidden
    | ApplicationUnknown
    | ApplicationRefused
  >
  deleteApplication: Ask<RemoveApplication, ApplicationRemoved | ApplicationUnknown>
  /** Creates a new secret. The old ones may stay valid for a while. */
  rotateApplicationSecret: Ask<
    RotateSecret,
    SecretRotated | NoSecretToRotate | ApplicationForbidden | ApplicationUnknown
  >
}

export type ApplicationStatus = 'active' | 'disabled'
export type ClientType = 'public' | 'confidential'
export type TokenEndpointAuthMethod =
  | 'none'
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'private_key_jwt'
  /** A JWT-SVID of a trusted issuer (docs/guides/oauth/workload-identity.md). */
  | 'spiffe_jwt'

/** A JWK Set (RFC 7517 section 5) as sent by the client. */
export type ClientJwks = { readonly keys: readonly Readonly<Record<string, unknown>>[] }

export type Application = {
  readonly id: ApplicationId
  /** Equal to the id: an application is its own OAuth client. */
  readonly clientId: string
  readonly tenantId: TenantId
  readonly name: string
  readonly status: ApplicationStatus
  readonly clientType: ClientType
  readonly tokenEndpointAuthMethod: TokenEndpointAuthMethod
  readonly audience: string
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  /** Where logout tokens go (OpenID Connect Back-Channel Logout 1.0). */
  readonly backchannelLogoutUri: string | null
  readonly backchannelLogoutSessionRequired: boolean
  /** What a frame of the sign-out page loads (OpenID Connect Front-Channel Logout 1.0). */
  readonly frontchannelLogoutUri: string | null
  readonly frontchannelLogoutSessionRequired: boolean
  readonly allowedOrigins: readonly string[]
  readonly grantTypes: readonly string[]
  readonly responseTypes: readonly string[]
  readonly scopes: readonly string[]
  /**
   * The scopes of client_credentials without `scope`, all among `scopes`. Null selects the service
   * default (`defaultScopesOf`).
   */
  readonly defaultScopes: readonly string[] | null
  readonly jwks: ClientJwks | null
  /** URL of the keys, instead of `jwks`. */
  readonly jwksUri: string | null
  readonly dpopBoundAccessTokens: boolean
  /** False: refresh tokens stay as they are. */
  readonly rotateRefreshTokens: boolean
  readonly requirePushedAuthorizationRequests: boolean
  readonly idTokenSignedResponseAlg: SigningAlgorithm
  /** The signature of authorization responses as a JWT. Null: RS256. */
  readonly authorizationSignedResponseAlg: SigningAlgorithm | null
  /** Null: userinfo is JSON, and not signed. */
  readonly userinfoSignedResponseAlg: SigningAlgorithm | null
  /** The signature of introspection responses as a JWT. Null: RS256. */
  readonly introspectionSignedResponseAlg: SigningAlgorithm | null
  /** Authorization requests are pushed as signed request objects (RFC 9101). */
  readonly requireSignedRequestObject: boolean
  /** Null: any algorithm of its keys. */
  readonly requestObjectSigningAlg: RequestObjectAlgorithm | null
  readonly logoUri: string | null
  /** Requires PKCE of a confidential client too (RFC 7636). */
  readonly requirePkce: boolean
  /** The port of loopback redirect URIs is free (RFC 8252 section 7.3). */
  readonly loopbackAnyPort: boolean
  /** Allowed types of authorization_details (RFC 9396 section 10). */
  readonly authorizationDetailsTypes: readonly string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type ListApplications = Page & {
  readonly principal: Principal
}
export type ApplicationsListed = {
  readonly tag: 'listed'
  readonly applications: readonly Application[]
  /** Position of the next page. Null on the last page. */
  readonly next: ListCursor | null
}

export type ReadApplication = { readonly principal: Principal; readonly applicationId: string }
export type ApplicationFound = { readonly tag: 'found'; readonly application: Application }
/**
 * The owners of all workspaces share the control-plane tenant, so an agent's control-plane token cannot
 * manage applications there.
 */
export type ApplicationUnknown = { readonly tag: 'unknown' }

/** A new or changed application. Absent members get the defaults of docs/reference/oauth.md. */
/** Algorithms of request objects. */
export const REQUEST_OBJECT_ALGORITHMS = ['ES256', 'EdDSA'] as const
type RequestObjectAlgorithm = (typeof REQUEST_OBJECT_ALGORITHMS)[number]

export type ApplicationDraft = {
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly clientType?: ClientType | undefined
  readonly tokenEndpointAuthMethod?: TokenEndpointAuthMethod | undefined
  readonly audience?: string | undefined
  readonly postLogoutRedirectUris?: readonly string[] | undefined
  readonly backchannelLogoutUri?: string | undefined
  readonly backchannelLogoutSessionRequired?: boolean | undefined
  readonly frontchannelLogoutUri?: string | undefined
  readonly frontchannelLogoutSessionRequired?: boolean | undefined
  readonly allowedOrigins?: readonly string[] | undefined
  readonly grantTypes?: readonly string[] | undefined
  readonly responseTypes?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
  readonly defaultScopes?: readonly string[] | undefined
  readonly jwks?: ClientJwks | undefined
  readonly jwksUri?: string | undefined
  readonly dpopBoundAccessTokens?: boolean | undefined
  readonly rotateRefreshTokens?: boolean | undefined
  readonly requirePushedAuthorizationRequests?: boolean | undefined
  readonly idTokenSignedResponseAlg?: SigningAlgorithm | undefined
  readonly authorizationSignedResponseAlg?: SigningAlgorithm | undefined
  readonly userinfoSignedResponseAlg?: SigningAlgorithm | undefined
  readonly introspectionSignedResponseAlg?: SigningAlgorithm | undefined
  readonly requireSignedRequestObject?: boolean | undefined
  readonly requestObjectSigningAlg?: RequestObjectAlgorithm | undefined
  readonly logoUri?: string | undefined
  readonly requirePkce?: boolean | undefined
  readonly loopbackAnyPort?: boolean | undefined
  readonly authorizationDetailsTypes?: readonly string[] | undefined
}
export type CreateApplication = {
  readonly caller: Caller
  readonly draft: ApplicationDraft
  readonly idempotency: IdempotencyClaim | null
}
export type ApplicationCreated = {
  readonly tag: 'created'
  readonly application: Application
  /** Returned once. Null for a client without a secret, and on an idempotent replay. */
  readonly clientSecret: string | null
  readonly replayed: boolean
}
/** One member of the draft is invalid. */
export type ApplicationInvalid = {
  readonly tag: 'invalid'
  readonly error: 'bad_request' | 'invalid_redirect_uri' | 'invalid_scope'
  /** JSON pointer into the request body, with wire names. */
  readonly pointer: string
  readonly detail: string
}
/** The draft has scopes that the creator lacks. */
export type ApplicationForbidden = {
  readonly tag: 'forbidden'
  /** The scopes that the creator lacks. */
  readonly scopes: readonly string[]
}
export type ReplaceApplication = {
  readonly caller: Caller
  readonly applicationId: string
  readonly draft: ApplicationDraft
  /** Default active. A disabled application cannot authenticate, and its tokens are refused. */
  readonly status?: ApplicationStatus | undefined
}
export type ApplicationReplaced = {
  readonly tag: 'replaced'
  readonly application: Application
  /** Returned once, if the replacement created a secret. */
  readonly clientSecret: string | null
}
export type RemoveApplication = { readonly caller: Caller; readonly applicationId: string }
export type ApplicationRemoved = { readonly tag: 'removed' }

export type RotateSecret = {
  readonly caller: Caller
  readonly applicationId: string
  /** How long the previous secrets stay valid, in seconds: 0 to 86400. */
  readonly overlapSecs: number
}
export type SecretRotated = {
  readonly tag: 'rotated'
  readonly clientId: string
  readonly clientSecret: string
  readonly rotatedAt: Date
}
/** The application authenticates without a secret. */
export type NoSecretToRotate = { readonly tag: 'no_secret' }

/** Another application or API resource has the audience, or it is this service's. */
export type AudienceTaken = { readonly tag: 'audience_taken' }
export type ApplicationRefused =
  | AudienceTaken
  | Extract<AudienceRefused, { tag: 'domain_not_verified' }>

export const applications = address<ApplicationsProtocol>('applications', {
  idempotent: ['listApplications', 'getApplication'],
})
