/** A person answers: pending -> approved | denied, once. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  type ApprovalView,
  decideApprovalRow,
  isOwnerOfTenant,
  openGrant,
} from '../../../storage/vault/call-approvals.js'
import { FRESH_FACTORS_SECS, hasFreshFactors } from '../../domain/assurance.js'
import { eventContext } from '../../domain/events.js'
import { denied } from '../../domain/vault/denied.js'
import { approvalEvent, type Doer, doerOf } from '../../platform/call-approvals.js'
import type { ApprovalsHandler, ApprovalsNeeds } from './needs.js'
import type { ApprovalAnswer, OneApproval } from './protocol.js'
import { mayAnswer, recordOf, UNKNOWN, viewOf } from './read.js'

type Status = 'approved' | 'denied'

const NOT_APPROVER = denied('not_owner', 'Another person answers for this call.')

export const approveCall: ApprovalsHandler<'approveCall'> = (needs, message, context) =>
  answered(needs, message, 'approved', context)

export const denyCall: ApprovalsHandler<'denyCall'> = (needs, message, context) =>
  answered(needs, message, 'denied', context)

async function answered(
  needs: ApprovalsNeeds,
  { caller, approvalId }: OneApproval,
  status: Status,
  context: MessageContext,
): Promise<ApprovalAnswer> {
  const { principal } = caller
  const { tenantId, subject: sub } = principal
  const view = await viewOf(needs, approvalId, context)
  if (view === undefined || view.tenantId !== tenantId) return UNKNOWN
  const isOwner = await needs.database.system((tx) => isOwnerOfTenant(tx, tenantId, sub), context)
  if (!mayAnswer(view, { sub, isOwner })) {
    return principal.scopes.includes('vault:manage') ? NOT_APPROVER : UNKNOWN
  }
  if (!hasFreshFactors(principal, needs.clock.nowSecs()))
    return { tag: 'step_up', maxAgeSecs: FRESH_FACTORS_SECS }
  const by = doerOf(eventContext(needs, caller, context))
  if (!(await decide(needs, view, status, { sub, by }))) {
    const { status: before } = (await viewOf(needs, approvalId, context)) ?? view
    return { tag: 'decided_before', status: before }
  }
  return { tag: 'found', approval: recordOf((await viewOf(needs, approvalId, context))!) }
}

/**
 * Stores the answer and its event. False when a concurrent answer came first, or it has expired. Not cancelled when the
 * client disconnects. Crosses tenants: whether the agent is active stands in its home tenant.
 */
export function decide(
  { database, ttlSecs }: ApprovalsNeeds,
  { tenantId, id }: ApprovalView,
  status: Status,
  { sub, by }: { readonly sub: string; readonly by: Doer },
  holds: (tx: Transaction) => Promise<boolean> = async () => true,
): Promise<boolean> {
  const { now } = by
  return database.system(async (tx) => {
    if (!(await holds(tx))) return false
    const expiresAt = new Date(now.getTime() + ttlSecs * 1000)
    const row = await decideApprovalRow(tx, tenantId, id, { status, by: sub, now, expiresAt })
    if (row === undefined) return false
    if (status === 'approved') await openGrant(tx, row, now)
    appendEvents(tx, [approvalEvent(`vault.approval.${status}`, row, by)])
    return true
  })
}
