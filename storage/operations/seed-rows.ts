/** Writes generated rows in bulk, for `svc seed`. */
import { changedRows, execute, onlyValue, type Transaction } from '../platform/sql.js'

/** The tables that `svc seed` writes, each after the tables that it refers to. */
export const SEEDED_TABLES = [
  'organizations',
  'tenants',
  'accounts',
  'tenant_users',
  'organization_members',
  'applications',
  'application_secrets',
  'agents',
  'agent_keys',
  'agent_anchors',
  'browser_sessions',
  'sessions',
  'refresh_families',
  'refresh_tokens',
  'consents',
  'webhooks',
  'webhook_lanes',
] as const

export type SeededTable = (typeof SEEDED_TABLES)[number]

/** Values by column. Dates are ISO 8601, bytes are `\x` and hexadecimal digits, arrays are JSON arrays. */
export type SeedRow = Readonly<Record<string, unknown>>

const COLUMN = /^[a-z0-9_]+$/

/**
 * Inserts rows that have the same columns. Columns that the rows do not name get their defaults.
 * @returns the number of rows.
 */
export async function insertRows(
  tx: Transaction,
  table: SeededTable,
  rows: readonly SeedRow[],
): Promise<number> {
  const [first] = rows
  if (first === undefined) return 0
  const columns = Object.keys(first)
  if (!columns.every((column) => COLUMN.test(column))) throw new Error('not the name of a column')
  const list = columns.join(', ')
  return changedRows(tx, {
    name: `seed.${table}`,
    text: `insert into ${table} (${list})
           select ${list} from json_populate_recordset(null::${table}, $1::json)`,
    values: [JSON.stringify(rows)],
  })
}

/** The tenants among these ids that exist. */
export async function existingTenants(
  tx: Transaction,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'seed.existing',
    text: 'select id from tenants where id = any($1::uuid[])',
    values: [ids],
  })
  return new Set(rows.map(({ id }) => id))
}

/** The size of the database with its indexes. */
export const databaseBytes = (tx: Transaction) =>
  onlyValue<number>(tx, {
    name: 'seed.bytes',
    text: 'select pg_database_size(current_database()) as bytes',
  })

/** Collects the statistics of all tables that the role owns, so that plans fit the new rows. */
export const analyze = (tx: Transaction) => execute(tx, { name: 'seed.analyze', text: 'analyze' })
