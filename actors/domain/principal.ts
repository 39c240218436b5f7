/** The principal of a request: the verified content of an access token. */
import type { DelegationIntent } from './agents/delegation-intent.js'
import type { DelegationId, OrganizationId, SessionId, TenantId } from './ids.js'

export type SubjectType = 'human' | 'agent' | 'service'

/** One hop of an act chain (RFC 8693 section 4.1). */
export type ActingParty = {
  readonly sub: string
  readonly subjectType: SubjectType
  /** The issuer that knows the actor, if it is another one (RFC 8693 section 4.1). */
  readonly issuer?: string | undefined
}

/** Longest chain of actors in one token. See docs/reference/oauth.md. */
export const ACT_DEPTH_MAX = 5

export type Principal = {
  /** The `sub` claim: agent id, client id, or the user's pairwise subject. */
  readonly subject: string
  readonly subjectType: SubjectType
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  /** True for a user's token that is valid only for that organization. */
  readonly organizationBound?: boolean | undefined
  /** The application or agent the token was issued to. */
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** Outermost actor first. Empty for a direct token. */
  readonly actors: readonly ActingParty[]
  readonly delegationId: DelegationId | null
  /** What the delegation is for. Absent without one, and in tokens of older releases. */
  readonly delegation?: DelegationIntent | undefined
  readonly sessionId: SessionId | null
  /** The consent grant of the user for the application. Revoking it revokes the token. */
  readonly grantId?: string | null | undefined
  /** The API resources that the token is for. Absent for other audiences. */
  readonly resourceIds?: readonly string[] | undefined
  /** aal1, aal2 or aal3 for humans. */
  readonly acr: string | null
  readonly authTimeSecs: number | null
  /** Authentication methods of the user's sign-in (RFC 8176), if the token has them. */
  readonly amr?: readonly string[] | undefined
  /** Thumbprint of the key a DPoP-bound token needs (RFC 9449 section 6.1). */
  readonly jkt: string | null
  /** True for an API key. The subject is the id of the key. */
  readonly apiKey?: boolean | undefined
  readonly tokenId: string
  readonly expiresAtSecs: number
}

/** True for a token without an act chain. */
export function isDirect(principal: Principal): boolean {
  return principal.actors.length === 0
}

/** The `act` claim. Each hop nests the one before it. */
export type ActClaim = {
  readonly sub: string
  readonly iss?: string | undefined
  readonly subject_type: SubjectType
  readonly act?: ActClaim
}

/** The `act` claim of a chain, the most recent actor outermost (RFC 8693 section 4.1). Empty without actors. */
export function actClaim(actors: readonly ActingParty[]): { readonly act?: ActClaim } {
  return actors.reduceRight<{ readonly act?: ActClaim }>(
    (before, { sub, subjectType, issuer }) => ({
      act: { sub, ...(issuer && { iss: issuer }), subject_type: subjectType, ...before },
    }),
    {},
  )
}
