/** The content of a status list token (draft-ietf-oauth-status-list sections 4 and 5). */
import { deflateSync } from 'node:zlib'
import type { StatusPurpose } from '../../../storage/oauth/status-lists.js'

export const STATUS_LIST_TYPE = 'statuslist+jwt'

/**
 * How long a verifier may use a list, in seconds. It is the longest time until a revocation is seen
 * everywhere, so it is short for access tokens.
 */
export const STATUS_TTL_SECS: Readonly<Record<StatusPurpose, number>> = {
  credential: 3_600,
  access_token: 60,
}

/** Bits of an entry: 0 is VALID, 1 is INVALID. */
const BITS = 1

/**
 * Packs entries of 1, 2, 4 or 8 bits into bytes, the first entry in the least significant bits
 * (section 4.1).
 * @param statuses pairs of index and status. All other entries are 0.
 */
export function packStatuses(
  size: number,
  bits: 1 | 2 | 4 | 8,
  statuses: Iterable<readonly [idx: number, status: number]>,
): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((size * bits) / 8))
  const perByte = 8 / bits
  for (const [idx, status] of statuses) {
    if (idx < 0 || idx >= size || status < 0 || status >= 2 ** bits)
      throw new RangeError('the index or status is out of range')
    bytes[Math.floor(idx / perByte)]! |= status << ((idx % perByte) * bits)
  }
  return bytes
}

/** The member `lst`: DEFLATE in the ZLIB format (RFC 1950), in base64url (section 4.2). */
export function encodeList(bytes: Uint8Array): string {
  return deflateSync(bytes, { level: 9 }).toString('base64url')
}

type ListClaims = {
  readonly uri: string
  readonly issuer: string
  readonly purpose: StatusPurpose
  readonly size: number
  readonly invalid: readonly number[]
  readonly aggregationUri: string
  readonly nowSecs: number
}

/** The claims of a list token (section 5.1). `exp` is twice the `ttl`, so that a cached list is never expired. */
export function listClaims(list: ListClaims): Readonly<Record<string, unknown>> {
  const ttl = STATUS_TTL_SECS[list.purpose]
  const bytes = packStatuses(
    list.size,
    BITS,
    list.invalid.map((idx) => [idx, 1] as const),
  )
  return {
    iss: list.issuer,
    sub: list.uri,
    iat: list.nowSecs,
    exp: list.nowSecs + 2 * ttl,
    ttl,
    status_list: { bits: BITS, lst: encodeList(bytes), aggregation_uri: list.aggregationUri },
  }
}
