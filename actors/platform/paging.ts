/** Cuts a page out of the rows of a list statement. */
import type { MessageContext } from '../../runtime/kernel/actor.js'
import type { Database, Transaction } from '../../storage/platform/sql.js'
import type { ListCursor, Listed, Page } from '../domain/paging.js'
import { inTenant } from './in-tenant.js'

/** A page of what a tenant has. `list` is the statement. */
export async function pageOf<Row extends ListCursor>(
  { database }: { readonly database: Database },
  tenantId: string,
  { limit, after }: Page,
  context: MessageContext,
  list: (
    tx: Transaction,
    tenantId: string,
    limit: number,
    after: ListCursor | null,
  ) => Promise<readonly Row[]>,
) {
  const rows = await inTenant(database, tenantId, context, (tx) =>
    list(tx, tenantId, limit + 1, after),
  )
  return page(rows, limit)
}

/** The same, as the outcome of a list, each row shown by `show`. */
export async function listOf<Row extends ListCursor, Shown>(
  needs: Parameters<typeof pageOf>[0],
  tenantId: string,
  asked: Page,
  context: MessageContext,
  { list, show }: { list: Parameters<typeof pageOf<Row>>[4]; show: (row: Row) => Shown },
): Promise<Listed<Shown>> {
  const { items, next } = await pageOf(needs, tenantId, asked, context, list)
  return { tag: 'listed', rows: items.map(show), next }
}

/**
 * @param rows up to `limit + 1` rows: the one above the limit shows that another page follows.
 * @returns the rows of the page, and the cursor of the next page or null on the last one.
 */
export function page<Row extends ListCursor>(
  rows: readonly Row[],
  limit: number,
): { readonly items: readonly Row[]; readonly next: ListCursor | null } {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const isLastPage = rows.length <= limit || last === undefined
  return { items, next: isLastPage ? null : { createdAt: last.createdAt, id: last.id } }
}

/** The same, as the outcome of a list. */
export function listed<Row extends ListCursor>(rows: readonly Row[], limit: number): Listed<Row> {
  return listedOf(rows, limit, (row) => row)
}

/** The same, each row shown by `show`. */
export function listedOf<Row extends ListCursor, Shown>(
  rows: readonly Row[],
  limit: number,
  show: (row: Row) => Shown,
): Listed<Shown> {
  const { items, next } = page(rows, limit)
  return { tag: 'listed', rows: items.map(show), next }
}
