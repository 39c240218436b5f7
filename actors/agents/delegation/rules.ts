/** What polls deserve, what people can give, and who sees which delegation. All of it is pure. */
import type { DelegationsOf, DelegationRow } from '../../../storage/agents/delegations.js'
import type { PolledRequest } from '../../../storage/agents/delegation-requests.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import { HUMAN_SCOPES, type OrganizationRole, parseScope, SCOPES } from '../../domain/scopes.js'
import type { DelegationRecord, PollOutcome } from './protocol.js'

export const MANAGE_SCOPE = 'delegations:manage'

/**
 * What a poll deserves, given the request as the poll found it. A decision is told however fast the
 * agent asks; `approved` is to be redeemed.
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

/** A request may say `ssh` for the scope that signs SSH certificates (decisions.md 24, ssh-sign). */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([['ssh', 'vault:sign']])

/** The scopes of a request in catalogue order, or those that are in no catalogue; none is a fault. */
export function askedScopes(
  scope: string,
): { readonly scopes: readonly string[] } | { readonly unknown: readonly string[] } {
  const asked = parseScope(scope).map((one) => SHORT_NAMES.get(one) ?? one)
  const known: readonly string[] = SCOPES
  const unknown = asked.filter((one) => !known.includes(one))
  if (unknown.length > 0 || asked.length === 0) return { unknown }
  return { scopes: known.filter((one) => asked.includes(one)) }
}

/** What of it the person may give (interface.md, Authentication 6). */
export function heldScopes(asked: readonly string[], role: OrganizationRole): readonly string[] {
  const held: readonly string[] = HUMAN_SCOPES[role]
  return asked.filter((scope) => held.includes(scope))
}

/**
 * Whose delegations the caller may see; null when none. `role` is that of a person. With
 * delegations:manage an agent or application that speaks for itself sees those of the tenant, and so
 * does an admin; a person without it, or whoever acts for them, sees what is theirs (decisions.md 21).
 */
export function visibleTo(
  principal: Principal,
  role: OrganizationRole | null,
): DelegationsOf | null {
  const { subject, subjectType, actors, scopes } = principal
  const manages = scopes.includes(MANAGE_SCOPE)
  const everybody = { agentId: null, subject: null }
  if (subjectType === 'service') return manages ? everybody : null
  if (subjectType === 'agent') return manages ? everybody : { agentId: subject, subject: null }
  if (!isDirect(principal)) {
    return { agentId: manages ? null : (actors[0]?.sub ?? null), subject }
  }
  return manages && role !== null && role !== 'member' ? everybody : { agentId: null, subject }
}

/**
 * Whether a token shows that its person is there: at the level, and not long ago. decisions.md 3,
 * revoke not stepped up.
 */
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

export function recordOf(row: DelegationRow, now: Date): DelegationRecord {
  const { level, organizationId: _organization, revokedReason: _reason, ...rest } = row
  const running = row.expiresAt > now ? 'active' : 'expired'
  return { ...rest, acr: `aal${level}`, status: row.revokedAt === null ? running : 'revoked' }
}
