/** The claims of access tokens, written and read (RFC 9068). See docs/concepts/tokens.md. */
import { quoted } from '../../../../runtime/kernel/text/json-text.js'
import type { AuthorizationDetails } from '../../../../storage/oauth/authorization-codes.js'
import type { DelegationIntent } from '../../../domain/agents/delegation-intent.js'
import {
  ACT_DEPTH_MAX,
  type ActingParty,
  actClaim,
  type Principal,
  type SubjectType,
} from '../../../domain/principal.js'

/** RFC 9068 section 2.1. */
export const ACCESS_TOKEN_TYPE = 'at+jwt'

export type AccessGrant = {
  readonly subject: string
  readonly subjectType: SubjectType
  readonly tenantId: string
  readonly organizationId: string | null
  /** The token is valid for that organization only. */
  readonly organizationBound?: boolean | undefined
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The API resources among the audience. Absent for other audiences. */
  readonly resourceIds?: readonly string[] | null | undefined
  /** The tokens get an entry in a status list. */
  readonly tokenStatusList?: boolean | undefined
  readonly sessionId: string | null
  /** The refresh family of the same authorization: revoking it revokes the token. */
  readonly grantId: string | null
  /** Assurance level of a user: 1, 2 or 3. Null for agents and services. */
  readonly level: number | null
  readonly amr: readonly string[]
  readonly authTimeSecs: number | null
  readonly jkt: string | null
  /** As granted (RFC 9396 section 9.1). Null without any. */
  readonly authorizationDetails: AuthorizationDetails | null
  /** The actors, the most recent first. Absent for a direct token. */
  readonly actors?: readonly ActingParty[] | undefined
  /** The delegation that permits the actors to act. */
  readonly delegationId?: string | null | undefined
  /** What the delegation is for. */
  readonly delegation?: DelegationIntent | undefined
  /** The agent that may act next (RFC 8693 section 4.4). */
  readonly mayAct?: string | null | undefined
  /** The trusted issuer that authenticated the user, for an identity assertion. */
  readonly idp?: string | undefined
}

/** The values that differ between the tokens of one grant. */
type Issue = {
  readonly tokenId: string
  readonly nowSecs: number
  readonly lifetimeSecs: number
  /** The entry in a status list (draft-ietf-oauth-status-list section 6). Null without one. */
  readonly status?: { readonly idx: number; readonly uri: string } | null | undefined
}

type AccessClaims = Readonly<Record<string, unknown>>

/** The claims that all tokens of a grant share, as JSON. JSON omits the undefined ones. */
export function grantClaims(grant: AccessGrant, issuer: string): string {
  const { audience, organizationBound, level, amr, jkt, mayAct } = grant
  return JSON.stringify({
    iss: issuer,
    sub: grant.subject,
    aud: audience.length === 1 ? audience[0] : audience,
    client_id: grant.clientId,
    scope: grant.scopes.join(' '),
    tenant_id: grant.tenantId,
    organization_id: grant.organizationId ?? undefined,
    organization_bound: organizationBound === true ? true : undefined,
    subject_type: grant.subjectType,
    sid: grant.sessionId ?? undefined,
    grant_id: grant.grantId ?? undefined,
    resource_id: resourceClaim(grant.resourceIds ?? []),
    acr: level === null ? undefined : `aal${level}`,
    aal: level ?? undefined,
    amr: amr.length === 0 ? undefined : amr,
    auth_time: grant.authTimeSecs ?? undefined,
    cnf: jkt === null ? undefined : { jkt },
    authorization_details: grant.authorizationDetails ?? undefined,
    act: actClaim(grant.actors ?? []).act,
    delegation_id: grant.delegationId ?? undefined,
    delegation: grant.delegation,
    idp: grant.idp,
    may_act: mayAct == null ? undefined : { sub: mayAct },
  })
}

/** One id as a string, several as an array, like `aud`. */
function resourceClaim(ids: readonly string[]): string | readonly string[] | undefined {
  return ids.length > 1 ? ids : ids[0]
}

/** The claims of one token, as JSON: the claims of its grant, its times and its id. */
export function accessClaims(
  ofGrant: string,
  { tokenId, nowSecs, lifetimeSecs, status }: Issue,
): string {
  const list = status == null ? '' : `,"status":${JSON.stringify({ status_list: status })}`
  const members = ofGrant.slice(0, -1) + list
  const expSecs = nowSecs + lifetimeSecs
  return `${members},"exp":${expSecs},"iat":${nowSecs},"nbf":${nowSecs},"jti":${quoted(tokenId)}}`
}

/** A verified token: its principal, and the claims that only introspection and validity checks read. */
export type ReadToken = {
  readonly principal: Principal
  readonly issuer: string
  readonly issuedAtSecs: number
  readonly notBeforeSecs: number
  readonly amr: readonly string[]
  /** The id of the next agent that may act. Null if no agent may. */
  readonly mayAct: string | null
  readonly authorizationDetails: AuthorizationDetails | null
}

const SUBJECT_TYPES = new Set<unknown>(['human', 'agent', 'service'])

/** Reads the claims of a token after its signature was verified. Null if they are not ours. */
export function readAccessClaims(claims: AccessClaims, issuer: string): ReadToken | null {
  const { iss, sub, exp, iat, nbf, jti, client_id, scope, tenant_id, subject_type } = claims
  if (iss !== issuer || !isText(sub) || !isText(jti) || !isText(client_id)) return null
  if (!isText(tenant_id) || typeof scope !== 'string' || !SUBJECT_TYPES.has(subject_type))
    return null
  if (!isTime(exp) || !isTime(iat) || !isTime(nbf)) return null
  const audience = readAudience(claims['aud'])
  const actors = readActors(claims['act'])
  if (audience === null || actors === null) return null
  const amr = Array.isArray(claims['amr']) ? claims['amr'].filter(isText) : []
  return {
    principal: {
      subject: sub,
      subjectType: subject_type as SubjectType,
      tenantId: tenant_id,
      organizationId: textOrNull(claims['organization_id']),
      ...(claims['organization_bound'] === true ? { organizationBound: true } : {}),
      clientId: client_id,
      scopes: scope === '' ? [] : scope.split(' '),
      audience,
      actors,
      delegationId: textOrNull(claims['delegation_id']),
      ...delegationIn(claims['delegation']),
      sessionId: textOrNull(claims['sid']),
      grantId: textOrNull(claims['grant_id']),
      ...readResources(claims['resource_id']),
      acr: textOrNull(claims['acr']),
      authTimeSecs: isTime(claims['auth_time']) ? claims['auth_time'] : null,
      amr,
      jkt: readJkt(claims['cnf']),
      tokenId: jti,
      expiresAtSecs: exp,
    },
    issuer: iss,
    issuedAtSecs: iat,
    notBeforeSecs: nbf,
    amr,
    mayAct: readNamed(claims['may_act']),
    authorizationDetails: readDetails(claims['authorization_details']),
  }
}

function readAudience(aud: unknown): readonly string[] | null {
  const list: unknown[] = Array.isArray(aud) ? aud : [aud]
  return list.length > 0 && list.every(isText) ? list : null
}

/** The outermost actor is the most recent one (RFC 8693 section 4.1). */
function readActors(act: unknown): readonly ActingParty[] | null {
  const actors: ActingParty[] = []
  let hop = act
  while (hop !== undefined) {
    if (typeof hop !== 'object' || hop === null || actors.length === ACT_DEPTH_MAX) return null
    const { sub, iss, subject_type, act: next } = hop as Record<string, unknown>
    if (!isText(sub) || !SUBJECT_TYPES.has(subject_type)) return null
    const issuer = textOrNull(iss) ?? undefined
    actors.push({ sub, subjectType: subject_type as SubjectType, ...(issuer && { issuer }) })
    hop = next
  }
  return actors
}

function readDetails(details: unknown): AuthorizationDetails | null {
  return Array.isArray(details) && details.length > 0 ? (details as AuthorizationDetails) : null
}

function readNamed(party: unknown): string | null {
  return typeof party === 'object' && party !== null
    ? textOrNull((party as { sub?: unknown }).sub)
    : null
}

function readResources(claim: unknown): Pick<Principal, 'resourceIds'> {
  const ids = (Array.isArray(claim) ? claim : [claim]).filter(isText)
  return ids.length === 0 ? {} : { resourceIds: ids }
}

function delegationIn(claim: unknown): Pick<Principal, 'delegation'> {
  if (typeof claim !== 'object' || claim === null) return {}
  const { id, purpose_hash: purpose, policy_hash: policy } = claim as Record<string, unknown>
  if (!isText(id) || !isText(policy)) return {}
  return { delegation: { id, purpose_hash: textOrNull(purpose), policy_hash: policy } }
}

function readJkt(cnf: unknown): string | null {
  return typeof cnf === 'object' && cnf !== null ? textOrNull((cnf as { jkt?: unknown }).jkt) : null
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function textOrNull(value: unknown): string | null {
  return isText(value) ? value : null
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
