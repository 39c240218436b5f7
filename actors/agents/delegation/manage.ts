/** Reading, listing and revoking delegations. */
import { highestRole } from '../../domain/scopes.js'
import { reachOf } from '../../domain/assurance.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findDelegationApproval } from '../../../storage/agents/delegation-approvals.js'
import {
  activeDelegations,
  type DelegationRow,
  type DelegationsOf,
  findDelegation,
  lastUsesOfDelegations,
  listDelegationRows,
  revokeDelegationRow,
} from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { personFactors } from '../../../storage/identity/passkeys.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findPersonRoles, shownUsers } from '../../../storage/identity/tenant-users.js'
import { byBrowser, byCaller, delegationsRevoked, type RevokedBy } from '../../domain/revocation.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import { page } from '../../platform/paging.js'
import type { DelegationNeeds, DelegationHandler } from './needs.js'
import type { DelegationRecord, UnknownDelegation } from './protocol.js'
import { isSteppedUp, MANAGE_SCOPE, recordOf, visibleTo } from './rules.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN: UnknownDelegation = { tag: 'unknown_delegation' }

export const listDelegations: DelegationHandler<'listDelegations'> = async (
  needs,
  { principal, limit, after },
  context,
) => {
  const { tenantId } = principal
  const of = await visible(needs, principal, context)
  if (of === null) return { tag: 'may_not_see' }
  const { items, next } = await inTenant(needs.database, tenantId, context, async (tx) => {
    const rows = page(await listDelegationRows(tx, tenantId, of, limit + 1, after), limit)
    return { ...rows, items: await recordsOf(tx, tenantId, rows.items, needs.clock.now()) }
  })
  return {
    tag: 'listed',
    delegations: await withUsers(needs, tenantId, of, items, context),
    next,
  }
}

export const readDelegation: DelegationHandler<'readDelegation'> = async (
  needs,
  { caller, delegationId },
  context,
) => {
  const { tenantId } = caller.principal
  const of = await visible(needs, caller.principal, context)
  if (of === null) return { tag: 'may_not_see' }
  if (!isUuid(delegationId)) return UNKNOWN
  const found = await inTenant(needs.database, tenantId, context, async (tx) => {
    const row = await findDelegation(tx, tenantId, delegationId, of)
    if (row === undefined) return null
    const records = await recordsOf(tx, tenantId, [row], needs.clock.now())
    return { records, approval: (await findDelegationApproval(tx, tenantId, row.id)) ?? null }
  })
  if (found === null) return UNKNOWN
  const [delegation] = await withUsers(needs, tenantId, of, found.records, context)
  return { tag: 'found', delegation: delegation!, approval: found.approval }
}

export const revokeDelegation: DelegationHandler<'revokeDelegation'> = async (
  needs,
  message,
  context,
) => {
  const maxAgeSecs = needs.settings.approval_max_auth_age_secs
  const { caller } = message
  const { principal } = caller
  const found = await readDelegation(needs, message, context)
  if (found.tag !== 'found') return UNKNOWN
  const level = await highestLevel(needs, principal, context)
  if (!isSteppedUp(principal, level, needs.clock.nowSecs(), maxAgeSecs))
    return { tag: 'step_up_needed', level, maxAgeSecs }
  const by = byCaller(caller, context.requestId)
  const { subject } = found.delegation
  const of = { agentId: null, subject }
  return revokeOnce(needs, principal.tenantId, message.delegationId, of, by)
}

export const ofPerson: DelegationHandler<'ofPerson'> = async (
  { database, clock },
  { tenantId, sub },
  context,
) => {
  const now = clock.now()
  const delegations = await inTenant(database, tenantId, context, async (tx) => {
    const rows = await activeDelegations(tx, tenantId, sub, now)
    return recordsOf(tx, tenantId, rows, now)
  })
  return { tag: 'listed', delegations }
}

export const revokeOwnDelegation: DelegationHandler<'revokeOwnDelegation'> = async (
  needs,
  { session, token, delegationId, address },
  context,
) => {
  const { tenantId, sub } = session
  const verdict = await needs.browserSessions.demand(
    {
      token,
      tenantId,
      sub,
      demand: { level: 'highest', maxAgeSecs: needs.settings.approval_max_auth_age_secs },
      flow: { returnTo: '/auth/account', reason: { tag: 'sensitive' } },
    },
    context,
  )
  if (verdict.tag === 'sign_in') return verdict
  const by = byBrowser(sub, address, context.requestId)
  const of = { agentId: null, subject: sub }
  const outcome = await revokeOnce(needs, tenantId, delegationId, of, by)
  return outcome.tag === 'revoked' ? { tag: 'revoked' } : outcome
}

/** A person's roles depend on their account, which spans tenants: hence the system transaction. */
async function visible(
  { database }: DelegationNeeds,
  principal: Principal,
  context: MessageContext,
): Promise<DelegationsOf | null> {
  const { tenantId, subject, subjectType, scopes } = principal
  const person = subjectType === 'human' && isDirect(principal)
  if (!person || !scopes.includes(MANAGE_SCOPE)) return visibleTo(principal, null)
  const roles = await database.system((tx) => findPersonRoles(tx, tenantId, subject), context)
  return visibleTo(principal, roles === undefined ? null : highestRole(roles))
}

/** The highest assurance level that the person's factors reach. An account spans tenants. */
async function highestLevel(
  { database }: DelegationNeeds,
  { tenantId, subject }: Principal,
  context: MessageContext,
): Promise<2 | 3> {
  const factors = await database.system((tx) => personFactors(tx, tenantId, subject), context)
  return reachOf(factors) === 3 ? 3 : 2
}

/** Revokes a delegation; a repeated call returns the first revocation. */
async function revokeOnce(
  needs: DelegationNeeds,
  tenantId: string,
  delegationId: string,
  of: DelegationsOf,
  by: RevokedBy,
): Promise<{ tag: 'revoked'; id: string; revokedAt: Date } | UnknownDelegation> {
  if (!isUuid(delegationId)) return UNKNOWN
  // Not cancelled when the client disconnects: a revocation must complete.
  return needs.database.tenant(tenantId, async (tx) => {
    const row = await findDelegation(tx, tenantId, delegationId, of)
    if (row === undefined) return UNKNOWN
    const first = row.revokedAt === null ? await revokeIn(tx, needs, row, by) : undefined
    // Undefined when a concurrent call revoked it; that call has committed, as its row lock is gone.
    const revokedAt = first ?? (await findDelegation(tx, tenantId, delegationId))?.revokedAt
    if (revokedAt == null) throw new Error('a revoked delegation has a revocation time')
    tx.forget([delegationId])
    if (first !== undefined) needs.metrics.countStep('revoked')
    return { tag: 'revoked' as const, id: delegationId, revokedAt }
  })
}

async function revokeIn(
  tx: Transaction,
  { clock, random }: DelegationNeeds,
  { tenantId, id }: DelegationRow,
  by: RevokedBy,
): Promise<Date | undefined> {
  const revoked = await revokeDelegationRow(tx, tenantId, id, 'revoked', clock.now())
  if (revoked === undefined) return undefined
  appendEvents(tx, delegationsRevoked(random, [revoked], by))
  return revoked.revokedAt ?? undefined
}

async function recordsOf(
  tx: Transaction,
  tenantId: string,
  rows: readonly DelegationRow[],
  now: Date,
): Promise<DelegationRecord[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const uses = await lastUsesOfDelegations(tx, tenantId, ids)
  return rows.map((row) => recordOf(row, uses.get(row.id) ?? null, now))
}

/** Adds the people, for callers who may know them: administrators, and people who see their own delegations. */
async function withUsers(
  { database }: Pick<DelegationNeeds, 'database'>,
  tenantId: string,
  { agentId }: DelegationsOf,
  records: readonly DelegationRecord[],
  context: MessageContext,
): Promise<DelegationRecord[]> {
  const subjects = agentId === null ? [...new Set(records.map(({ subject }) => subject))] : []
  const found =
    subjects.length === 0
      ? []
      : await database.system((tx) => shownUsers(tx, tenantId, subjects), context)
  const bySubject = new Map(found.map(({ sub, ...user }) => [sub, user]))
  return records.map((record) => {
    const user = bySubject.get(record.subject)
    return { ...record, ...(user === undefined ? {} : { user }) }
  })
}
