/**
 * Stamps of sealed columns that are rewritten in place. A value is sealed with a fresh stamp as associated data, and its row
 * has the stamp in a second column, which each rewrite replaces too: a value of an older copy of the row does not open with
 * the stamp of the present one. Values from before stamps have none, and open.
 *
 *     in the row       sealed value | stamp, or null
 *     outside of it    2 | stamp 8 | sealed value, or the sealed value alone
 */

/** The first byte of a value with a stamp. A sealed value begins with 1. */
const STAMPED = 2
export const STAMP_BYTES = 8
const HEAD_BYTES = 1 + STAMP_BYTES

/** Names row and column of a value that is rewritten in place. */
export type RewrittenContext = { readonly rewritten: string }

type Parts = { readonly sealed: Buffer; readonly stamp: Buffer | null }

/** The two columns of a value. */
export function partsOf(value: Uint8Array): Parts {
  const bytes = Buffer.from(value)
  return bytes[0] === STAMPED
    ? { sealed: bytes.subarray(HEAD_BYTES), stamp: bytes.subarray(1, HEAD_BYTES) }
    : { sealed: bytes, stamp: null }
}

export const withStamp = (stamp: Uint8Array, sealed: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.of(STAMPED), stamp, sealed])

/** The value of a column, with its stamp. @param of the alias of the table, with a dot. */
export const stamped = (column: string, of = ''): string =>
  `coalesce('\\x02'::bytea || ${of}${column}_stamp, '') || ${of}${column}`
