/** Decisions on polls, grantable scopes and visibility. All functions are pure. */
import type { DelegationsOf, DelegationRow } from '../../../storage/agents/delegations.js'
import type { PolledRequest, ShownRequest } from '../../../storage/agents/delegation-requests.js'
import { delegationIntent } from '../../domain/agents/delegation-intent.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import {
  mayAskPersonFor,
  type OrganizationRole,
  parseScope,
  SCOPES,
  sessionScopes,
} from '../../domain/scopes.js'
import type { DelegationRecord, PollOutcome } from './protocol.js'

export const MANAGE_SCOPE = 'delegations:manage'

/**
 * The outcome of a poll. The interval applies to pending requests only: a decided request is answered
 * however fast the agent polls. `approved` means that the caller redeems the request.
 */
export function judgePoll(
  { status, expiresAt, tooFast, interval, revoked }: Omit<PolledRequest, 'id'>,
  now: Date,
): Exclude<PollOutcome, { tag: 'granted' }> | { readonly tag: 'approved' } {
  if (status === 'consumed') return { tag: 'invalid' }
  if (status === 'denied' || revoked) return { tag: 'denied' }
  if (expiresAt <= now) return { tag: 'expired' }
  if (status === 'approved') return { tag: 'approved' }
  return { tag: tooFast ? 'slow_down' : 'pending', intervalSecs: interval }
}

/** `ssh` is short for the scope that signs SSH certificates. */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([['ssh', 'vault:sign']])

/**
 * The requested scopes in catalogue order, or those that the agent may not request. An empty request is refused too.
 * @param held the scopes of the agent.
 */
export function requestedScopes(
  scope: string,
  held: readonly string[],
): { readonly scopes: readonly string[] } | { readonly refused: readonly string[] } {
  const requested = parseScope(scope).map((name) => SHORT_NAMES.get(name) ?? name)
  const known: readonly string[] = SCOPES
  const refused = requested.filter((name) => !known.includes(name) || !mayAskPersonFor(name, held))
  if (refused.length > 0 || requested.length === 0) return { refused }
  return { scopes: known.filter((name) => requested.includes(name)) }
}

/** The requested scopes that the person holds and can therefore grant. */
export function grantableScopes(
  requested: readonly string[],
  session: Parameters<typeof sessionScopes>[0],
): readonly string[] {
  const held: readonly string[] = sessionScopes(session)
  return requested.filter((scope) => held.includes(scope))
}

/** What a person approves, as RFC 8785 JSON: texts in the order of their names. */
export const approvalStatement = (
  request: Pick<ShownRequest, 'id' | 'agentId' | 'audience' | 'purpose' | 'userCode'>,
  subject: string,
  scopes: readonly string[],
): string =>
  JSON.stringify({
    agent_id: request.agentId,
    audience: request.audience,
    delegation_id: request.id,
    match_value: request.userCode,
    purpose: request.purpose ?? undefined,
    scopes,
    subject,
  })

/**
 * The delegations that the caller may see; null for none. With `delegations:manage`, an agent or an
 * application that acts for itself sees all of the tenant, and so does an admin. Everyone else sees
 * their own: a person (or an agent acting for them) those they approved, an agent those it received.
 *
 * @param role the role of a person, null for other principals.
 */
export function visibleTo(
  principal: Principal,
  role: OrganizationRole | null,
): DelegationsOf | null {
  const { subject, subjectType, actors, scopes } = principal
  const manages = scopes.includes(MANAGE_SCOPE)
  const allOfTenant = { agentId: null, subject: null }
  if (subjectType === 'service') return manages ? allOfTenant : null
  if (subjectType === 'agent') return manages ? allOfTenant : { agentId: subject, subject: null }
  if (!isDirect(principal)) {
    return { agentId: manages ? null : (actors[0]?.sub ?? null), subject }
  }
  return manages && role !== null && role !== 'member' ? allOfTenant : { agentId: null, subject }
}

/** True if the token proves a sign-in at the assurance level, within the maximum age (RFC 9470). */
export function isSteppedUp(
  { acr, authTimeSecs }: Principal,
  needed: AssuranceLevel,
  nowSecs: number,
  maxAgeSecs: number,
): boolean {
  const level = /^aal([1-3])$/.exec(acr ?? '')?.[1]
  if (level === undefined || Number(level) < needed || authTimeSecs === null) return false
  return nowSecs - authTimeSecs <= maxAgeSecs
}

export function recordOf(row: DelegationRow, lastUsedAt: Date | null, now: Date): DelegationRecord {
  const { level, organizationId: _organization, revokedReason: _reason, ...rest } = row
  const { purpose_hash: purposeHash, policy_hash: policyHash } = delegationIntent(row)
  const running = row.expiresAt > now ? 'active' : 'expired'
  return {
    ...rest,
    purposeHash,
    policyHash,
    lastUsedAt,
    acr: `aal${level}`,
    status: row.revokedAt === null ? running : 'revoked',
  }
}
