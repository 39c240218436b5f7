/** The messages of an entity. Its actor handles them with `entityHandlers`, and `entityRoutes` declares its operations. */
import type { Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../idempotency.js'
import type { ListCursor, Page } from '../paging.js'
import type { Change, Draft, Members, Row } from './entity.js'

/** `Refused`: why this entity refuses a draft, besides what its schema says and what every entity refuses. */
export type EntityProtocol<M extends Members, Refused extends { readonly tag: string }> = {
  list: Ask<Page & { readonly caller: Caller }, RowsListed<M>>
  read: Ask<OneRow, RowFound<M> | RowUnknown>
  create: Ask<
    {
      readonly caller: Caller
      readonly draft: Draft<M>
      readonly idempotency: IdempotencyClaim | null
    },
    RowCreated<M> | Refused | WriteRefused | RowsFull | IdempotencyRefused
  >
  /** Changes the members of the draft and keeps the others. */
  update: Ask<
    OneRow & { readonly change: Change<M> },
    RowFound<M> | RowUnknown | Refused | WriteRefused
  >
  remove: Ask<OneRow, { readonly tag: 'removed' } | RowUnknown>
}

export type OneRow = { readonly caller: Caller; readonly id: string }
type RowsListed<M extends Members> = {
  readonly tag: 'listed'
  readonly rows: readonly Row<M>[]
  /** Position of the next page. Null on the last page. */
  readonly next: ListCursor | null
}
type RowFound<M extends Members> = { readonly tag: 'found'; readonly row: Row<M> }
export type RowUnknown = { readonly tag: 'unknown' }
export type RowCreated<M extends Members> = {
  readonly tag: 'created'
  readonly row: Row<M>
  readonly replayed: boolean
}
/** The tenant has as many as it may have. */
export type RowsFull = { readonly tag: 'full'; readonly most: number }
export type WriteRefused = MemberInvalid | { readonly tag: 'conflict' }
/** One member of a draft is invalid. */
export type MemberInvalid = {
  readonly tag: 'invalid'
  /** JSON pointer into the request body, with wire names. */
  readonly pointer: string
  readonly detail: string
}

export const invalid = (pointer: string, detail: string): MemberInvalid => ({
  tag: 'invalid',
  pointer,
  detail,
})
