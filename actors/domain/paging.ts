/** Pages of lists that are ordered by creation, newest first (docs/reference/http.md). */

/** The position of the last row of a page. The next page starts after it. */
export type ListCursor = { readonly createdAt: Date; readonly id: string }

export type Page = {
  /** 1 to 200. */
  readonly limit: number
  /** Null for the first page. */
  readonly after: ListCursor | null
}
