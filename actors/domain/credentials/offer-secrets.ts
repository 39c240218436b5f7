/** The secrets of a credential offer. The URL has the only one that is stored nowhere; the others follow from it. */
import { createHash, timingSafeEqual } from 'node:crypto'

/** 32 bytes in base64url. */
const HANDLE = /^[A-Za-z0-9_-]{43}$/
export const OFFER_HANDLE_BYTES = 32

export function isOfferHandle(text: string): boolean {
  return HANDLE.test(text)
}

/** The pre-authorized code or issuer_state of an offer, from the secret of its URL. */
export function codeOfOffer(
  grant: 'pre-authorized_code' | 'authorization_code',
  handle: string,
): string {
  return createHash('sha256').update(`${grant}:${handle}`, 'utf8').digest('base64url')
}

/** The stored form of a transaction code. */
export function txCodeSha256(offerId: string, txCode: string): Uint8Array {
  return createHash('sha256').update(`${offerId}:${txCode}`, 'utf8').digest()
}

/** Compares in constant time. */
export function isTxCode(offerId: string, txCode: string, expected: Uint8Array): boolean {
  return timingSafeEqual(txCodeSha256(offerId, txCode), expected)
}
