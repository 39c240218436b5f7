/** Sets the tenant of a transaction for row-level security. */
import type { Statement, TransactionOptions } from './sql.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * The statements that open a transaction. They are sent with its first statement. Their settings are local to the
 * transaction, so they do not affect the next user of the connection or of a pooler's connection.
 * @param tenantId null for a transaction that crosses tenants.
 * @param statementTimeoutMs replaces the limit of the connection.
 */
export function openingStatements(
  tenantId: string | null,
  isolation: TransactionOptions['isolation'],
  statementTimeoutMs?: number,
): readonly Statement[] {
  const sight = sightStatement(tenantId)
  const begin = isolation === 'serializable' ? SERIALIZABLE : BEGIN
  if (statementTimeoutMs === undefined) return [begin, sight]
  const limit = {
    name: 'transaction.limit',
    text: `select set_config('statement_timeout', $1, true)`,
    values: [String(statementTimeoutMs)],
  }
  return [begin, sight, limit]
}

const BEGIN: Statement = { name: 'transaction.begin', text: 'begin' }
const SERIALIZABLE: Statement = {
  name: 'transaction.begin_serializable',
  text: 'begin isolation level serializable',
}

/** Sets the visible tenant, null for all. @throws if the id is not a UUID. */
export function sightStatement(tenantId: string | null): Statement {
  if (tenantId === null) {
    return { name: 'tenancy.system', text: `select set_config('svc.scope', 'system', true)` }
  }
  if (!UUID.test(tenantId)) throw new Error('a tenant id must be a lower-case UUID')
  const text = `select set_config('svc.tenant_id', $1, true)`
  return { name: 'tenancy.tenant', text, values: [tenantId] }
}
