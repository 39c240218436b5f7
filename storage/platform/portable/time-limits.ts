/** The time limits that a connection has. A pooler can drop those that are set when a connection opens. */
import type { PoolSettings } from '../pool-plan.js'

const LIMITS = ['statement_timeout', 'idle_in_transaction_session_timeout'] as const

type TimeLimit = (typeof LIMITS)[number]

interface Queryable {
  query(text: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
}

/** What to do when a limit has no effect. */
export const TIME_LIMITS_FIX =
  'set database.prepared_statements to "unnamed", or set statement_timeout and ' +
  'idle_in_transaction_session_timeout of the role to the values of the settings'

/** The limits of a connection that differ from the settings. Empty if all have effect. */
export async function droppedTimeLimits(
  connection: Queryable,
  settings: PoolSettings,
  statementTimeoutMs: number,
): Promise<readonly TimeLimit[]> {
  const { rows } = await connection.query(
    `select name, setting::bigint as ms from pg_settings where name in ('${LIMITS.join(`', '`)}')`,
  )
  const set = new Map(rows.map(({ name, ms }) => [name, Number(ms)]))
  const wanted: Readonly<Record<TimeLimit, number>> = {
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: settings.idle_in_transaction_timeout_secs * 1000,
  }
  return LIMITS.filter((name) => set.get(name) !== wanted[name])
}
