/**
 * Agents of registries on chains that are anchors, and up to which block the registries were read. A cursor moves in the
 * transaction that writes the events of its blocks, and only if nothing changed it since it was read.
 */
import { allRows, firstRow, isChanged, LOOKED_UP, type Transaction } from '../platform/sql.js'

/** An agent of a registry, and the block at which its owner was read. */
export type OnChainAgent = {
  /** CAIP-2 id of the chain. */
  readonly network: string
  /** `network` and the address of the registry. */
  readonly registry: string
  /** ERC-721 token id, decimal. */
  readonly token: string
  readonly block: number
}

/** The value of an anchor. */
export function onChainName({ registry, token }: Pick<OnChainAgent, 'registry' | 'token'>): string {
  return `${registry}:${token}`
}

/** The agent that a value names. */
export function onChainAgent(value: string, block: number): OnChainAgent {
  const [namespace, reference, address, token] = value.split(':')
  const network = `${namespace}:${reference}`
  return { network, registry: `${network}:${address}`, token: token!, block }
}

/**
 * Records the anchor of an agent. The cursor of the chain goes back to the block at which the owner was read: a later
 * block may have been read before the agent was registered.
 */
export async function insertChainAnchor(
  tx: Transaction,
  agent: { readonly tenantId: string; readonly id: string; readonly createdAt: Date },
  onChain: OnChainAgent,
): Promise<void> {
  const { network, registry, token, block } = onChain
  await tx.query({
    name: 'chain_anchor.insert',
    text: `with anchor as (
             insert into agent_anchors (tenant_id, agent_id, type, value, verified_at)
             values ($1, $2, 'erc8004', $6, $7))
           insert into chain_anchors (tenant_id, agent_id, registry, token, from_block)
           values ($1, $2, $3, $4, $5)`,
    values: [
      agent.tenantId,
      agent.id,
      registry,
      token,
      block,
      onChainName(onChain),
      agent.createdAt,
    ],
  })
  await tx.query({
    name: 'registry_cursor.rewind',
    text: `insert into registry_cursors as c (network, block, version, read_at)
           values ($1, $2, 0, '-infinity')
           on conflict (network) do update set version = c.version + 1,
             block = least(c.block, excluded.block),
             block_hash = case when excluded.block < c.block then null else c.block_hash end`,
    values: [network, block],
  })
}

/** Claims the next reading of a chain. @returns false if a process read it within the last `secs`. */
export const claimReading = (tx: Transaction, network: string, secs: number) =>
  isChanged(tx, {
    name: 'registry_cursor.claim',
    text: `update registry_cursors set read_at = clock_timestamp()
           where network = $1 and read_at < clock_timestamp() - make_interval(secs => $2)`,
    values: [network, secs],
  })

export type RegistryCursor = {
  readonly block: number
  /** Null: not known. */
  readonly hash: string | null
  readonly version: number
}

/** The cursor of a chain. Undefined if no agent of the chain was ever an anchor. */
export const findRegistryCursor = (tx: Transaction, network: string) =>
  firstRow<RegistryCursor>(tx, {
    name: 'registry_cursor.find',
    text: `select block, block_hash as hash, version from registry_cursors where network = $1`,
    values: [network],
  })

/** @returns false if the cursor was changed since the version. */
export const moveRegistryCursor = (
  tx: Transaction,
  network: string,
  version: number,
  to: { readonly block: number; readonly hash: string | null },
) =>
  isChanged(tx, {
    name: 'registry_cursor.move',
    text: `update registry_cursors set block = $3, block_hash = $4, version = version + 1
           where network = $1 and version = $2`,
    values: [network, version, to.block, to.hash],
  })

const ACTIVE = `chain_anchors c join agent_anchors n on n.tenant_id = c.tenant_id
    and n.type = 'erc8004' and n.value = c.registry || ':' || c.token and n.status = 'active'`

/** The agents of a registry that are active anchors, with the first block of each. Crosses tenants. */
export const anchoredTokens = (tx: Transaction, registry: string) =>
  allRows<{ token: string; fromBlock: number }>(tx, {
    name: 'chain_anchor.tokens',
    text: `select c.token, min(c.from_block) as "fromBlock" from ${ACTIVE}
           where c.registry = $1 group by c.token order by c.token`,
    values: [registry],
  })

/** An agent that has an anchor. */
type AnchorHolder = {
  readonly token: string
  readonly fromBlock: number
  readonly homeTenantId: string
  readonly agentId: string
  /** Who learns of it: the home tenant, or where that is the control plane the tenants of its organizations. */
  readonly tenantIds: readonly string[]
}

/** The agents whose active anchors are these. Crosses tenants. */
export const anchorHolders = (tx: Transaction, registry: string, tokens: readonly string[]) =>
  allRows<AnchorHolder>(tx, {
    name: 'chain_anchor.holders',
    text: `select c.token, c.from_block as "fromBlock", c.tenant_id as "homeTenantId",
             c.agent_id as "agentId",
             case when h.control_plane then array(
               select t.id from organization_members m
                 join tenants t on t.organization_id = m.organization_id
               where m.member_type = 'agent' and m.member_id = c.agent_id order by t.id)
             else array[c.tenant_id] end as "tenantIds"
           from ${ACTIVE} join tenants h on h.id = c.tenant_id
           where c.registry = $1 and c.token = any($2::text[]) order by c.tenant_id`,
    values: [registry, tokens],
  })

/** A log that is about an agent. */
type LogOfAgent = Pick<AnchorHolder, 'homeTenantId' | 'agentId'> & {
  /** SHA-256. */
  readonly log: Uint8Array
  readonly block: number
}

/** Records logs, each once. Crosses tenants. @returns the indexes of those that were not recorded before. */
export async function recordLogs(
  tx: Transaction,
  logs: readonly LogOfAgent[],
): Promise<ReadonlySet<number>> {
  const { rows } = await tx.query<{ index: number }>({
    name: 'chain_log.record',
    text: `with given as (
             select * from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bigint[]) with ordinality
               as g (tenant_id, agent_id, log, block, place) where ${LOOKED_UP}),
           fresh as (
             insert into chain_logs (tenant_id, agent_id, log, block)
             select tenant_id, agent_id, log, block from given
             on conflict do nothing returning tenant_id, agent_id, log)
           select (g.place - 1)::integer as index
           from given g join fresh f using (tenant_id, agent_id, log)`,
    values: [
      logs.map(({ homeTenantId }) => homeTenantId),
      logs.map(({ agentId }) => agentId),
      logs.map(({ log }) => Buffer.from(log)),
      logs.map(({ block }) => block),
    ],
  })
  return new Set(rows.map(({ index }) => index))
}
