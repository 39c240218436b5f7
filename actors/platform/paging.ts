/** Cuts a page out of the rows of a list statement. */
import type { ListCursor } from '../domain/paging.js'

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
