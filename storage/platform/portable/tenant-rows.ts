/** Column lists, and the two statements that read rows of a tenant: one by its id, and a page of them. */
import { camelCase } from '../../../actors/domain/entities/entity.js'
import type { Page } from '../../../actors/domain/paging.js'
import { allRows, firstRow, type Transaction } from '../sql.js'

export type TenantRows<Row> = {
  find: (tx: Transaction, tenantId: string, id: string) => Promise<Row | undefined>
  /** Up to `limit` rows, newest first. */
  list: (tx: Transaction, tenantId: string, limit: number, after: Page['after']) => Promise<Row[]>
}

/** Lists that were made before: some statements are composed for each call. */
const written = new Map<string, string>()

/**
 * What a statement selects: each column in the name of TypeScript, `p.tenant_id as "tenantId"`.
 * @param columns with spaces between them, and with casts: `tenant_id amount::text`.
 */
export function columnsOf(columns: string, alias = ''): string {
  const key = `${alias} ${columns}`
  const known = written.get(key)
  if (known !== undefined) return known
  const named = columns.split(/\s+/).map((column) => {
    const name = camelCase(column.split('::')[0]!)
    return `${prefix(alias)}${column}${column === name ? '' : ` as "${name}"`}`
  })
  const list = named.join(', ')
  written.set(key, list)
  return list
}

/**
 * Writes the statements. Their names begin with `name`: `payout.find`.
 * @param from the table with its alias, and what it is joined with.
 * @param alias of the table, needed only in a join.
 * @param only which rows exist for callers.
 */
export function tenantRows<Row>(
  name: string,
  from: string,
  columns: string,
  alias = '',
  only = '',
): TenantRows<Row> {
  const of = prefix(alias)
  const kept = only === '' ? '' : ` and ${only}`
  return {
    find: (tx, tenantId, id) =>
      firstRow<Row>(tx, {
        name: `${name}.find`,
        text: `select ${columns} from ${from} where ${of}tenant_id = $1 and ${of}id = $2${kept}`,
        values: [tenantId, id],
      }),
    list: listing(
      `${name}.list`,
      `select ${columns} from ${from} where ${of}tenant_id = $1${kept}`,
      alias,
    ),
  }
}

/**
 * Lists rows of a tenant or an organization, newest first.
 * @param rows selects them: `select ... from ... where tenant_id = $1`.
 */
export const listing =
  <Row>(name: string, rows: string, alias = ''): TenantRows<Row>['list'] =>
  (tx, tenantId, limit, after) => {
    const of = prefix(alias)
    return allRows<Row>(tx, {
      name,
      text: `${rows}
             and ($3::timestamptz is null or (${of}created_at, ${of}id) < ($3, $4::uuid))
           order by ${of}created_at desc, ${of}id desc limit $2`,
      values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
    })
  }

const prefix = (alias: string) => (alias === '' ? '' : `${alias}.`)
