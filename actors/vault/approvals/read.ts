/** Who sees which approvals. Agents may have another home tenant, so the transactions cross tenants. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  type ApprovalsOf,
  type ApprovalView,
  findApproval,
  isOwnerOfTenant,
  listApprovalRows,
} from '../../../storage/vault/call-approvals.js'
import { granteeOf } from '../../domain/grantee.js'
import { isUuid } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import type { CallApprovalRecord } from '../../domain/vault/approvals.js'
import { page } from '../../platform/paging.js'
import type { ApprovalsHandler, ApprovalsNeeds } from './needs.js'
import type { UnknownApproval } from './protocol.js'

export const UNKNOWN: UnknownApproval = { tag: 'unknown_approval' }
const MANAGE_SCOPE = 'vault:manage'
/** Shown on the account page. */
const WAITING_MAX = 100

export const getCallApproval: ApprovalsHandler<'getCallApproval'> = async (
  needs,
  { principal, approvalId },
  context,
) => {
  const view = await viewOf(needs, approvalId, context)
  const { agentId, delegationId } = granteeOf(principal)
  const isAsker = agentId === null ? delegationId : agentId
  const asker = agentId === null ? view?.delegationId : view?.agentId
  if (view?.tenantId !== principal.tenantId || isAsker === null || isAsker !== asker) return UNKNOWN
  const { id, status, expiresAt } = view
  return { tag: 'state', approvalId: id, status, expiresAt }
}

export const listCallApprovals: ApprovalsHandler<'listCallApprovals'> = async (
  { database, clock },
  { principal, status, limit, after },
  context,
) => {
  const rows = await database.system(async (tx) => {
    const of = { tenantId: principal.tenantId, approver: await visibleTo(tx, principal), status }
    return listApprovalRows(tx, of, clock.now(), limit + 1, after)
  }, context)
  const { items, next } = page(rows, limit)
  return { tag: 'listed', approvals: items.map(recordOf), next }
}

export const readCallApproval: ApprovalsHandler<'readCallApproval'> = async (
  needs,
  { caller: { principal }, approvalId },
  context,
) => {
  const view = await viewOf(needs, approvalId, context)
  if (view === undefined || view.tenantId !== principal.tenantId) return UNKNOWN
  const of = await needs.database.system((tx) => visibleTo(tx, principal), context)
  return of === null || mayAnswer(view, of) ? { tag: 'found', approval: recordOf(view) } : UNKNOWN
}

export const waitingFor: ApprovalsHandler<'waitingFor'> = async (
  { database, clock },
  { session: { tenantId, sub, role } },
  context,
) => {
  const approver = { sub, isOwner: role === 'owner' }
  const of = { tenantId, approver, status: 'pending' } as const
  const rows = await database.system(
    (tx) => listApprovalRows(tx, of, clock.now(), WAITING_MAX, null),
    context,
  )
  return { tag: 'listed', approvals: rows.map(recordOf) }
}

/** An approval of any tenant. */
export async function viewOf(
  { database, clock }: ApprovalsNeeds,
  approvalId: string,
  context: MessageContext,
): Promise<ApprovalView | undefined> {
  if (!isUuid(approvalId)) return undefined
  return database.system((tx) => findApproval(tx, approvalId, clock.now()), context)
}

/** Null: all of the tenant. */
async function visibleTo(
  tx: Transaction,
  { tenantId, subject: sub, scopes }: Principal,
): Promise<ApprovalsOf['approver']> {
  if (scopes.includes(MANAGE_SCOPE)) return null
  return { sub, isOwner: await isOwnerOfTenant(tx, tenantId, sub) }
}

/** The approver of the approval, or any owner of the tenant where it names none. */
export const mayAnswer = (
  { approver }: ApprovalView,
  { sub, isOwner }: NonNullable<ApprovalsOf['approver']>,
): boolean => (approver === null ? isOwner : approver === sub)

const NO_CALL = {
  method: null,
  host: null,
  path: null,
  query: null,
  bodySha256: null,
  bodyBytes: null,
  server: null,
  tool: null,
  argumentsSha256: null,
}

export function recordOf({
  approver: _approver,
  matchSha256: _match,
  tenantName: _name,
  tenantSettings: _settings,
  grantExpiresAt: _ends,
  shown,
  ...rest
}: ApprovalView): CallApprovalRecord {
  const query = 'query' in shown && shown.query !== '' ? shown.query : null
  return { ...NO_CALL, ...rest, ...shown, query }
}
