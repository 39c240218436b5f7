/** Proof of work: SHA-256 over `{challenge_token}:{nonce}` (docs/reference/agents.md). */
import { createHash } from 'node:crypto'
import type { WorkVerdict } from './protocol.js'

const NONCE_SYNTAX = /^(?:0|[1-9][0-9]{0,19})$/
const NONCE_DIGITS_MAX = 20
const NONCE_LARGEST = '18446744073709551615'

/** Whether `nonce` is a decimal number below 2^64, without sign or leading zeros. */
export function isNonce(nonce: string): boolean {
  if (!NONCE_SYNTAX.test(nonce)) return false
  return nonce.length < NONCE_DIGITS_MAX || nonce <= NONCE_LARGEST
}

/** Zero bits before the first one, counted from the most significant bit of byte 0. */
export function leadingZeroBits(digest: Uint8Array): number {
  let bits = 0
  for (const byte of digest) {
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

/** The digest whose leading zero bits count. */
export function workDigest(challengeToken: string, nonce: string): Uint8Array {
  return createHash('sha256').update(`${challengeToken}:${nonce}`, 'utf8').digest()
}

/** Verifies that `nonce` proves `difficultyBits` of work for `challengeToken`. */
export function judgeWork(
  challengeToken: string,
  nonce: string,
  difficultyBits: number,
): WorkVerdict['tag'] {
  if (!isNonce(nonce)) return 'malformed'
  return leadingZeroBits(workDigest(challengeToken, nonce)) >= difficultyBits ? 'valid' : 'invalid'
}
