/** The keys with which agents sign requests to other services (RFC 9421). */
import { agentInForce } from '../platform/in-force.js'
import { allRows, execute, firstRow, type Transaction } from '../platform/sql.js'

/** The associated data with which the private key of an agent is sealed. */
export const signatureKeyContext = (agentId: string) => `agent:${agentId}:signature_key`

export type AgentSignatureKeyRow = {
  readonly tenantId: string
  readonly agentId: string
  /** Base64url. */
  readonly point: string
  /** The RFC 7638 thumbprint. */
  readonly kid: string
  readonly privateSealed: Uint8Array
}

const COLUMNS = `k.tenant_id as "tenantId", k.agent_id as "agentId", k.point, k.kid,
  k.private_sealed as "privateSealed"`

/**
 * An active agent, and its key if it has one. Crosses tenants: agents sign with a token of a tenant that is not their home,
 * and verifiers fetch the key.
 */
export const findAgentSignatureKey = (tx: Transaction, agentId: string) =>
  firstRow<Partial<AgentSignatureKeyRow> & { readonly homeTenantId: string }>(tx, {
    name: 'agent_signature_key.find',
    text: `select a.tenant_id as "homeTenantId", ${COLUMNS}
           from agents a left join agent_signature_keys k on k.agent_id = a.id
           where a.id = $1 and ${agentInForce('a.id')}`,
    values: [agentId],
  })

/** Keys of active agents, newest first. Crosses tenants. */
export const listAgentSignatureKeys = (tx: Transaction, limit: number) =>
  allRows<AgentSignatureKeyRow>(tx, {
    name: 'agent_signature_key.list',
    text: `select ${COLUMNS} from agent_signature_keys k where ${agentInForce('k.agent_id')}
           order by k.created_at desc, k.agent_id limit $1`,
    values: [limit],
  })

/** Does nothing when another process made the key. */
export const insertAgentSignatureKey = (
  tx: Transaction,
  key: AgentSignatureKeyRow & { readonly createdAt: Date },
) =>
  execute(tx, {
    name: 'agent_signature_key.insert',
    text: `insert into agent_signature_keys (tenant_id, agent_id, point, kid, private_sealed, created_at)
           values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    values: [key.tenantId, key.agentId, key.point, key.kid, key.privateSealed, key.createdAt],
  })
