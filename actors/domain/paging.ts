/** Pages of lists that are ordered by creation, newest first (docs/reference/http.md). */

/** The position of the last row of a page. The next page starts after it. */
export type ListCursor = { readonly createdAt: Date; readonly id: string }

export type Page = {
  /** 1 to 200. */
  readonly limit: number
  /** Null for the first page. */
  readonly after: ListCursor | null
}

/** The outcome of a list: a page of it. */
export type Listed<Row, Next = ListCursor> = {
  readonly tag: 'listed'
  readonly rows: readonly Row[]
  /** Position of the next page. Null on the last page. */
  readonly next: Next | null
}
