/**
 * Approval of calls, as steps of the transaction that decides a call: ask a person, or use their answer
 * (docs/guides/vault/approvals.md). The services of the calls say what one answer covers.
 */
import { hash } from 'node:crypto'
import type { Random } from '../../runtime/kernel/random.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { appendEvents } from '../../storage/platform/outbox.js'
import {
  type ApprovalRow,
  type AskedCall,
  countApprovals,
  expireApprovalOf,
  findOpenApproval,
  insertApproval,
  takeApprovalRow,
} from '../../storage/vault/call-approvals.js'
import { actorOf, type Caller, doneBy } from '../domain/audit.js'
import { catalogued, type EventContext, type NewEvent } from '../domain/events.js'
import { granteeOf } from '../domain/grantee.js'
import type {
  ApprovalKind,
  ApprovalNeeded,
  ShownCall,
  TooManyApprovals,
} from '../domain/vault/approvals.js'
import { isUuid } from '../domain/ids.js'

/** A call: what identifies it byte for byte, and what a person sees of it. */
export type CallToApprove = { readonly parts: readonly CallPart[]; readonly shown: ShownCall }
type CallPart = string | Uint8Array

export type ApprovalLimits = {
  /** `vault.approval_ttl_secs`. */
  readonly ttlSecs: number
  /** `vault.approvals_per_agent_max`. */
  readonly perAgentMax: number
  /** `vault.approvals_per_tenant_max`. */
  readonly perTenantMax: number
}

/** The grant that a call would use. */
type Asking = {
  readonly kind: ApprovalKind
  readonly grantId: string
  readonly credentialId: string | null
  readonly call: CallToApprove
}

/** Asks a person for a call. The same call while it waits is the same approval. */
export async function askApproval(
  tx: Transaction,
  limits: ApprovalLimits,
  asking: Asking,
  by: EventContext,
): Promise<ApprovalNeeded | TooManyApprovals> {
  const { caller, random, now } = by
  const { kind, grantId, credentialId, call } = asking
  const asked: AskedCall = {
    tenantId: caller.principal.tenantId,
    kind,
    grantId,
    credentialId,
    ...granteeOf(caller.principal),
    matchSha256: matchOf(caller, kind, call),
  }
  const open = await findOpenApproval(tx, asked, now)
  if (open !== undefined) return needed(open)
  appendEvents(tx, approvalsExpired(await expireApprovalOf(tx, asked, now), by))
  const { ofAgent, ofTenant } = await countApprovals(tx, asked, now)
  if (ofAgent >= limits.perAgentMax || ofTenant >= limits.perTenantMax)
    return { tag: 'too_many_approvals' }
  const row = await insertApproval(tx, {
    ...asked,
    id: random.uuid(),
    shown: call.shown,
    createdAt: now,
    expiresAt: new Date(now.getTime() + limits.ttlSecs * 1000),
  })
  // Undefined: another transaction asked in the meantime, and has committed.
  if (row === undefined) return needed((await findOpenApproval(tx, asked, now))!)
  appendEvents(tx, [approvalEvent('vault.approval.requested', row, doerOf(by))])
  return needed(row)
}

/**
 * Uses an approval for a call: once, for the same call by one of these grants. Undefined: it is not approved, was used, has
 * expired, or covers another call. The caller appends `vault.approval.used`, or returns it with `returnApproval`.
 */
export async function takeApproval(
  tx: Transaction,
  id: string,
  {
    kind,
    grantIds,
    call,
  }: Pick<Asking, 'kind' | 'call'> & { readonly grantIds: readonly string[] },
  by: EventContext,
): Promise<ApprovalRow | undefined> {
  if (!isUuid(id)) return undefined
  const { caller, now } = by
  const covered = { matchSha256: matchOf(caller, kind, call), grantIds }
  return takeApprovalRow(tx, caller.principal.tenantId, id, covered, now)
}

/** SHA-256 of who calls and of the parts of the call, each with its length, so that parts cannot move into another. */
function matchOf(caller: Caller, kind: ApprovalKind, { parts }: CallToApprove): string {
  const { agentId, delegationId } = granteeOf(caller.principal)
  const all: CallPart[] = [kind, agentId ?? '', delegationId ?? '', ...parts]
  const bytes = all.flatMap((part) => {
    const value = Buffer.from(part as string)
    return [Buffer.from(`${value.byteLength}:`), value]
  })
  return sha256Hex(Buffer.concat(bytes))
}

export const sha256Hex = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')

function needed({ id, status, expiresAt }: ApprovalRow): ApprovalNeeded {
  const isApproved = status === 'approved'
  return {
    tag: 'approval_needed',
    approvalId: id,
    status: isApproved ? 'approved' : 'pending',
    expiresAt,
  }
}

type ApprovalEvent = `vault.approval.${'requested' | 'approved' | 'denied' | 'expired' | 'used'}`

/** Who does something with an approval, and when. */
export type Doer = {
  readonly actor: { readonly type: string; readonly id: string }
  readonly audit?: NewEvent['audit']
  readonly random: Pick<Random, 'uuid'>
  readonly now: Date
  readonly requestId?: string | undefined
}

/** The caller of a message. */
export const doerOf = ({ caller, ...rest }: EventContext): Doer => ({
  ...rest,
  actor: actorOf(caller),
  audit: doneBy(caller),
})

export function approvalEvent(type: ApprovalEvent, row: ApprovalRow, by: Doer): NewEvent {
  const { id, tenantId, kind, status, agentId, grantId, credentialId, shown, expiresAt } = row
  const { actor, audit, random, now, requestId } = by
  const resource = { type: 'vault_approval', id }
  const call =
    'tool' in shown
      ? { server: shown.server, tool: shown.tool, arguments_sha256: shown.argumentsSha256 }
      : {
          method: shown.method,
          host: shown.host,
          path: shown.path,
          body_sha256: shown.bodySha256,
        }
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(
      type,
      { actor, resource, requestId },
      {
        kind,
        status,
        agent_id: agentId,
        grant_id: grantId,
        credential_id: credentialId,
        ...call,
        expires_at: expiresAt.toISOString(),
      },
    ),
    audit: { ...audit, grantId },
  }
}

const APPROVALS = { type: 'service', id: 'approvals' }

/** No answer came in time, the answer was not used, or what the call would use has ended. */
export const approvalsExpired = (
  rows: readonly ApprovalRow[],
  by: Pick<Doer, 'random' | 'now'>,
): NewEvent[] =>
  rows.map((row) => approvalEvent('vault.approval.expired', row, { ...by, actor: APPROVALS }))
