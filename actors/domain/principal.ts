/** Who is asking: the verified content of an access token. interface.md, Authentication. */
import type { DelegationId, OrganizationId, SessionId, TenantId } from './ids.js'

export type SubjectType = 'human' | 'agent' | 'service'

/** One hop of an act chain (RFC 8693 section 4.1). */
export type ActingParty = { readonly sub: string; readonly subjectType: SubjectType }

export type Principal = {
  /** The `sub` claim: agent id, client id, or the human's pairwise subject. */
  readonly subject: string
  readonly subjectType: SubjectType
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  /** Speaks for that organization alone: a person's token, narrowed to it (decisions.md 2.3). */
  readonly organizationBound?: boolean | undefined
  /** The application or agent the token was issued to. */
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** Outermost actor first; empty for a direct token. */
  readonly actors: readonly ActingParty[]
  readonly delegationId: DelegationId | null
  readonly sessionId: SessionId | null
  /** What a person allowed an application, as one: revoking it ends the token. */
  readonly grantId?: string | null | undefined
  /** aal1, aal2 or aal3 for humans. */
  readonly acr: string | null
  readonly authTimeSecs: number | null
  /** How a person had signed in (RFC 8176); left out where the token does not say. */
  readonly amr?: readonly string[] | undefined
  /** Thumbprint of the key a DPoP-bound token needs (RFC 9449 section 6.1). */
  readonly jkt: string | null
  readonly tokenId: string
  readonly expiresAtSecs: number
}

/** A direct token has no act chain; device delegation and SSH signing ask for one. */
export function isDirect(principal: Principal): boolean {
  return principal.actors.length === 0
}

/** The `act` claim as it is written: each hop nests the one before it. */
export type ActClaim = {
  readonly sub: string
  readonly subject_type: SubjectType
  readonly act?: ActClaim
}

/** A chain as RFC 8693 section 4.1 nests it, the most recent actor outermost; empty without one. */
export function actClaim(actors: readonly ActingParty[]): { readonly act?: ActClaim } {
  return actors.reduceRight<{ readonly act?: ActClaim }>(
    (before, { sub, subjectType }) => ({ act: { sub, subject_type: subjectType, ...before } }),
    {},
  )
}
