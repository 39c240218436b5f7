/** Sets the tenant and the settings of a transaction. */
import type { Rows, Statement, TransactionOptions } from './sql.js'
import { ServerIsStandby } from './unavailable.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What the transactions of a pool set besides their tenant. */
export interface TransactionSettings {
  /** Replaces the limit of the connection, for background work and behind a pooler. */
  readonly statementTimeoutMs: number | undefined
  /** Sent after the tenant, in the same round trip. */
  readonly statements: readonly Statement[]
}

/**
 * The settings of a pool's transactions.
 * @param pooled true if connections go through a pooler, which drops what is set at their start.
 * @param announce `table` if the triggers of the schema write announcements into a table.
 */
export function transactionSettings(
  { statementTimeoutMs, idleTimeoutMs }: { statementTimeoutMs?: number; idleTimeoutMs: number },
  pooled: boolean,
  announce: 'notify' | 'table',
): TransactionSettings {
  const statements: Statement[] = []
  if (pooled) {
    // Each transaction can get another server, so each one asks whether it is a standby.
    statements.push({
      name: 'transaction.pooled',
      text: `select set_config('statement_timeout', $1, true),
               set_config('idle_in_transaction_session_timeout', $2, true), pg_is_in_recovery() as standby`,
      values: [String(statementTimeoutMs ?? 0), String(idleTimeoutMs)],
    })
  } else if (statementTimeoutMs !== undefined) {
    statements.push({
      name: 'transaction.limit',
      text: `select set_config('statement_timeout', $1, true)`,
      values: [String(statementTimeoutMs)],
    })
  }
  if (announce === 'table') {
    statements.push({
      name: 'transaction.announce',
      text: `select set_config('svc.announce', 'table', true)`,
    })
  }
  return { statementTimeoutMs, statements }
}

/**
 * The statements that open a transaction. They are sent with its first statement. Their settings are local to the
 * transaction, so they do not affect the next user of the connection or of a pooler's connection.
 * @param tenantId null for a transaction that crosses tenants.
 */
export function openingStatements(
  tenantId: string | null,
  isolation: TransactionOptions['isolation'],
  { statements }: TransactionSettings,
): readonly Statement[] {
  const begin = isolation === 'serializable' ? SERIALIZABLE : BEGIN
  return [begin, sightStatement(tenantId), ...statements]
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

/**
 * Sets what the next statements of a transaction of several tenants see: the rows of the only tenant, or with several
 * tenants no rows, and they can record events of these (migration 0110). @throws if an id is not a UUID.
 */
export function partStatement(tenantIds: readonly string[]): Statement {
  if (!tenantIds.every((id) => UUID.test(id))) {
    throw new Error('a tenant id must be a lower-case UUID')
  }
  const values = tenantIds.length === 1 ? [tenantIds[0], ''] : ['', tenantIds.join(',')]
  const text = `select set_config('svc.tenant_id', $1, true), set_config('svc.tenant_ids', $2, true)`
  return { name: 'tenancy.part', text, values }
}

/** Limits the time that each statement of a transaction waits for locks. */
export function lockTimeoutStatement(ms: number): Statement {
  const text = `select set_config('lock_timeout', $1, true)`
  return { name: 'transaction.lock_timeout', text, values: [String(ms)] }
}

/** The error of a pooled transaction that reached a standby, from the results of its opening statements. */
export function standbyError(opening: readonly Rows<unknown>[]): Error | null {
  const isStandby = opening.some(({ rows }) => {
    const [row] = rows as { readonly standby?: boolean }[]
    return row?.standby === true
  })
  return isStandby ? new ServerIsStandby() : null
}
