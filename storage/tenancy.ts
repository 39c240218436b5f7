/** Binds a transaction to what row-level security lets it see. */
import type { Statement, TransactionOptions } from './sql.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * The statements that open a transaction, in one text and so in one round trip. SET LOCAL ends
 * with the transaction: the next user of the connection, or of a pooler's, sees nothing of it.
 * @param tenantId null for a transaction that crosses tenants.
 * @param statementTimeoutMs replaces the session's limit where given.
 */
export function openingStatements(
  tenantId: string | null,
  isolation: TransactionOptions['isolation'],
  statementTimeoutMs?: number,
): string {
  // SET takes no parameters, so the id is part of the text: nothing but a UUID may be.
  if (tenantId !== null && !UUID.test(tenantId)) throw new Error('a tenant id is a lower-case UUID')
  const begin = isolation === 'serializable' ? 'begin isolation level serializable' : 'begin'
  const sight =
    tenantId === null ? `set local svc.scope = 'system'` : `set local svc.tenant_id = '${tenantId}'`
  const limit =
    statementTimeoutMs === undefined ? '' : `; set local statement_timeout = ${statementTimeoutMs}`
  return `${begin}; ${sight}${limit}`
}

/** What binds a transaction that is sent as a whole: the same, with the id as a parameter. */
export function sightStatement(tenantId: string | null): Statement {
  if (tenantId === null) {
    return { name: 'tenancy.system', text: `select set_config('svc.scope', 'system', true)` }
  }
  if (!UUID.test(tenantId)) throw new Error('a tenant id is a lower-case UUID')
  const text = `select set_config('svc.tenant_id', $1, true)`
  return { name: 'tenancy.tenant', text, values: [tenantId] }
}
