/**
 * Blocks of egress calls. A block lets one process send a number of calls of a grant or lease before they are
 * recorded. It is committed before the first of these calls, so a killed process leaves a record of how many calls may
 * be missing (docs/reference/vault.md).
 */
import type { Statement, Transaction } from '../platform/sql.js'

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
}

/** Opens blocks with the commit. */
export function openEgressBlocks(tx: Transaction, blocks: readonly EgressBlockRow[]): void {
  if (blocks.length === 0) return
  tx.atCommit({
    name: 'egress_block.open',
    text: `insert into egress_blocks (tenant_id, id, credential_id, authority_id, agent_id, delegation_id, calls_max)
           select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::integer[])`,
    values: [
      blocks.map(({ tenantId }) => tenantId),
      blocks.map(({ id }) => id),
      blocks.map(({ credentialId }) => credentialId),
      blocks.map(({ authorityId }) => authorityId),
      blocks.map(({ agentId }) => agentId),
      blocks.map(({ delegationId }) => delegationId),
      blocks.map(({ callsMax }) => callsMax),
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

/** Closes blocks whose calls are all recorded. */
export function closingEgressBlocks(tenantId: string, ids: readonly string[]): Statement {
  return {
    name: 'egress_block.close',
    text: 'delete from egress_blocks where tenant_id = $1 and id = any($2::uuid[])',
    values: [tenantId, ids],
  }
}

export type LostBlockRow = EgressBlockRow & { openedAt: Date; renewedAt: Date }

/**
 * Takes blocks of killed processes, at most `limit`. The caller must record them in the same transaction. Concurrent
 * callers take different blocks.
 */
export async function takeLostBlocks(tx: Transaction, limit: number): Promise<LostBlockRow[]> {
  const { rows } = await tx.query<LostBlockRow>({
    name: 'egress_block.take_lost',
    text: `delete from egress_blocks where (tenant_id, id) in (
             select tenant_id, id from egress_blocks
             where renewed_at < statement_timestamp() - interval '${SILENCE}'
             order by renewed_at limit $1 for update skip locked)
           returning tenant_id as "tenantId", id, credential_id as "credentialId", authority_id as "authorityId",
             agent_id as "agentId", delegation_id as "delegationId", calls_max as "callsMax",
             opened_at as "openedAt", renewed_at as "renewedAt"`,
    values: [limit],
  })
  return rows
}
