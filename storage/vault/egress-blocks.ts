/**
 * Blocks of egress calls. A block lets one process send a number of calls of a grant or lease before they are
 * recorded. It is committed before the first of these calls, so a killed process leaves a record of how many calls may
 * be missing (docs/reference/vault.md).
 */
import type { DelegationFacts } from '../../actors/domain/agents/delegation-intent.js'
import { delegationFacts } from '../agents/delegations.js'
import { allRows, firstRow, type Statement, type Transaction } from '../platform/sql.js'
import type { AuthorityRef, AuthorityRow } from './egress-authorities.js'

/** Notified with the tenant's id when a credential, a grant or a lease changes. */
export const EGRESS_CHANNEL = 'svc_egress'

/** A block that was not renewed for this long belonged to a killed process. */
const SILENCE = '2 minutes'

export type EgressBlockRow = {
  tenantId: string
  id: string
  credentialId: string
  /** The grant or lease. */
  authorityId: string
  agentId: string | null
  delegationId: string | null
  /** The most calls that are sent and not recorded at one time. */
  callsMax: number
  /** Requests that are taken from the limit and not used by a recorded call. Null without such a limit. */
  requestsHeld: number | null
  /** The same of bytes. Bytes that a running call has taken are not held any more. */
  bytesHeld: number | null
}

/** Opens blocks with the commit. */
export function openEgressBlocks(tx: Transaction, blocks: readonly EgressBlockRow[]): void {
  if (blocks.length === 0) return
  tx.atCommit({
    name: 'egress_block.open',
    text: `insert into egress_blocks (tenant_id, id, credential_id, authority_id, agent_id, delegation_id, calls_max,
             requests_held, bytes_held)
           select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::integer[],
             $8::bigint[], $9::bigint[])`,
    values: [
      blocks.map(({ tenantId }) => tenantId),
      blocks.map(({ id }) => id),
      blocks.map(({ credentialId }) => credentialId),
      blocks.map(({ authorityId }) => authorityId),
      blocks.map(({ agentId }) => agentId),
      blocks.map(({ delegationId }) => delegationId),
      blocks.map(({ callsMax }) => callsMax),
      blocks.map(({ requestsHeld }) => requestsHeld),
      blocks.map(({ bytesHeld }) => bytesHeld),
    ],
  })
}

/** Renews blocks. @returns the ids of those that still exist. */
export async function renewEgressBlocks(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'egress_block.renew',
    text: `update egress_blocks set renewed_at = statement_timestamp()
           where tenant_id = $1 and id = any($2::uuid[]) returning id`,
    values: [tenantId, ids],
  })
  return new Set(rows.map(({ id }) => id))
}

/** What a block holds of the limits of its grant or lease, or takes from them. */
export type Holding = { readonly requests: number; readonly bytes: number }

/** A block holds at most this part of what is left, so that other processes find the rest. */
const PART = 16
/** Smaller holdings are not worth their statement. */
const REQUESTS_MIN = 4
const BYTES_MIN = 64 * 1024

/** True if enough is left of the limits for a block to hold a part. */
export function holdsPart(row: AuthorityRow): boolean {
  const { maxRequests, requestsUsed, maxBytes, bytesUsed, budget } = row
  return (
    budget === null &&
    (maxRequests === null || maxRequests - requestsUsed >= REQUESTS_MIN * PART) &&
    (maxBytes === null || maxBytes - bytesUsed >= BYTES_MIN * PART)
  )
}

/** Takes part of what is left, as `taken`. Parameters: tenant, id, most requests, most bytes, time. */
function takingPart(kind: AuthorityRef['kind']): string {
  return kind === 'lease'
    ? `with before as (
         select 0::bigint as requests, least($4::bigint, (byte_budget - bytes_used) / ${PART}) as bytes
         from vault_leases
         where tenant_id = $1 and id = $2 and $3::bigint >= 0 and revoked_at is null and spent_at is null
           and (expires_at is null or expires_at > $5)
           and (byte_budget - bytes_used) / ${PART} >= ${BYTES_MIN} for update),
       taken as (
         update vault_leases l set bytes_used = l.bytes_used + before.bytes
         from before where l.tenant_id = $1 and l.id = $2
         returning before.requests, before.bytes)`
    : `with before as (
         select coalesce(least($3::bigint, (max_requests - requests_used) / ${PART}), 0) as requests,
           coalesce(least($4::bigint, (max_bytes - bytes_used) / ${PART}), 0) as bytes
         from vault_grants
         where tenant_id = $1 and id = $2 and revoked_at is null and spent_at is null
           and (expires_at is null or expires_at > $5)
           and (max_requests is null or (max_requests - requests_used) / ${PART} >= ${REQUESTS_MIN})
           and (max_bytes is null or (max_bytes - bytes_used) / ${PART} >= ${BYTES_MIN}) for update),
       taken as (
         update vault_grants g set requests_used = g.requests_used + before.requests,
           bytes_used = g.bytes_used + before.bytes
         from before where g.tenant_id = $1 and g.id = $2
         returning before.requests, before.bytes)`
}

/**
 * Takes a part of what is left of a grant or lease for a block that the same transaction opens.
 * @param most a block never takes more. @returns undefined when too little is left or the authority has ended.
 */
export const takeForBlock = (
  tx: Transaction,
  tenantId: string,
  { kind, id }: AuthorityRef,
  most: Holding,
  now: Date,
) =>
  firstRow<Holding>(tx, {
    name: kind === 'lease' ? 'egress_block.take_from_lease' : 'egress_block.take_from_grant',
    text: `${takingPart(kind)} select requests, bytes from taken`,
    values: [tenantId, id, most.requests, most.bytes, now],
  })

/**
 * Takes another part for an open block, in one statement with its row.
 * @returns undefined when too little is left, or when the authority or the block has ended.
 */
export async function refillBlock(
  tx: Transaction,
  tenantId: string,
  block: { readonly id: string; readonly authority: AuthorityRef },
  most: Holding,
  now: Date,
): Promise<Holding | undefined> {
  const { kind, id } = block.authority
  // The block is locked first, as everywhere, so that it cannot end in between.
  const { rows: open } = await tx.query({
    name: 'egress_block.hold',
    text: 'select from egress_blocks where tenant_id = $1 and id = $2 for update',
    values: [tenantId, block.id],
  })
  if (open.length === 0) return undefined
  return firstRow<Holding>(tx, {
    name: kind === 'lease' ? 'egress_block.refill_from_lease' : 'egress_block.refill_from_grant',
    text: `${takingPart(kind)}
           update egress_blocks b set requests_held = b.requests_held + taken.requests,
             bytes_held = b.bytes_held + taken.bytes
           from taken where b.tenant_id = $1 and b.id = $6
           returning taken.requests, taken.bytes`,
    values: [tenantId, id, most.requests, most.bytes, now, block.id],
  })
}

/** Requests and bytes that calls have used from a block. Negative bytes are those that a call gives back. */
export type Settlement = Holding & { readonly blockId: string }

/**
 * Takes from blocks what their recorded calls have used. Commit it with the records. A settlement that is applied twice
 * counts too much as used, never too little.
 */
export function settlingBlocks(tenantId: string, settlements: readonly Settlement[]): Statement {
  return {
    name: 'egress_block.settle',
    text: `update egress_blocks b set
             requests_held = case when b.requests_held is not null then greatest(b.requests_held - s.requests, 0) end,
             bytes_held = case when b.bytes_held is not null then greatest(b.bytes_held - s.bytes, 0) end
           from unnest($2::uuid[], $3::bigint[], $4::bigint[]) as s (id, requests, bytes)
           where b.tenant_id = $1 and b.id = s.id`,
    values: [
      tenantId,
      settlements.map(({ blockId }) => blockId),
      settlements.map(({ requests }) => requests),
      settlements.map(({ bytes }) => bytes),
    ],
  }
}

/** Closes blocks whose calls are all recorded. @returns what each of them held, to give back in this transaction. */
export const closeEgressBlocks = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<Settlement>(tx, {
    name: 'egress_block.close_held',
    text: `delete from egress_blocks where tenant_id = $1 and id = any($2::uuid[])
           returning id as "blockId", coalesce(requests_held, 0) as requests, coalesce(bytes_held, 0) as bytes`,
    values: [tenantId, ids],
  })

/** True if blocks hold a part of the limits of these grants or leases. */
export async function isHeldByBlocks(
  tx: Transaction,
  tenantId: string,
  authorityIds: readonly string[],
): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'egress_block.holds',
    text: `select from egress_blocks
           where tenant_id = $1 and authority_id = any($2::uuid[]) and (requests_held > 0 or bytes_held > 0) limit 1`,
    values: [tenantId, authorityIds],
  })
  return rows.length > 0
}

/** Asks all processes to give back what their blocks hold of the tenant's limits. They read their callers again too. */
export function recallBlocks(tx: Transaction, tenantId: string): void {
  tx.atCommit({
    name: 'egress_block.recall',
    text: `select svc_announce('${EGRESS_CHANNEL}', $1::text)`,
    values: [tenantId],
  })
}

/** Closes blocks whose calls are all recorded, and that hold nothing of a limit. */
export function closingEgressBlocks(tenantId: string, ids: readonly string[]): Statement {
  return {
    name: 'egress_block.close',
    text: 'delete from egress_blocks where tenant_id = $1 and id = any($2::uuid[])',
    values: [tenantId, ids],
  }
}

export type LostBlockRow = EgressBlockRow & {
  openedAt: Date
  renewedAt: Date
  delegation: DelegationFacts | null
}

/**
 * Takes blocks of killed processes, at most `limit`. The caller must record them in the same transaction. Concurrent
 * callers take different blocks.
 */
export const takeLostBlocks = (tx: Transaction, limit: number) =>
  allRows<LostBlockRow>(tx, {
    name: 'egress_block.take_lost',
    text: `delete from egress_blocks where (tenant_id, id) in (
             select tenant_id, id from egress_blocks
             where renewed_at < statement_timestamp() - interval '${SILENCE}'
             order by renewed_at limit $1 for update skip locked)
           returning tenant_id as "tenantId", id, credential_id as "credentialId", authority_id as "authorityId",
             agent_id as "agentId", delegation_id as "delegationId",
             ${delegationFacts('egress_blocks.tenant_id', 'egress_blocks.delegation_id::uuid')} as delegation,
             least(calls_max, requests_held)::integer as "callsMax", requests_held as "requestsHeld",
             bytes_held as "bytesHeld", opened_at as "openedAt", renewed_at as "renewedAt"`,
    values: [limit],
  })
