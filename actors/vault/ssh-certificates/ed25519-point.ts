/**
 * Validates Ed25519 public keys (RFC 8032 sections 5.1.3 and 5.1.7), because OpenSSL accepts any 32
 * bytes. A point of small order verifies forged signatures, and a non-canonical encoding lets a revoked
 * key pass a revocation list under another name.
 */

const POINT_BYTES = 32
const P = 2n ** 255n - 19n
/** -121665 / 121666 (RFC 8032 section 5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
/** y of four points of order 8; the other four have -y. Points of order 4, 1 and 2 have y = 0, 1, -1. */
const ORDER_8_Y = 2707385501144840649318225287225658788936804267575313519463743609750303402022n
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([0n, 1n, P - 1n, ORDER_8_Y, P - ORDER_8_Y])

/** True for a point on the curve, in its canonical encoding, whose order is not 1, 2, 4 or 8. */
export function isSoundPoint(encoded: Uint8Array): boolean {
  if (encoded.length !== POINT_BYTES) return false
  // Little-endian; the highest bit is the sign of x.
  const hex = Buffer.from(encoded.toReversed()).toString('hex')
  const y = BigInt(`0x${hex}`) & (2n ** 255n - 1n)
  if (y >= P || SMALL_ORDER_Y.has(y)) return false
  // x^2 = (y^2 - 1) / (d y^2 + 1): a square, or zero. Its sign is free as x = 0 is of small order.
  const square = (y * y) % P
  const ratio = ((square - 1n) * (D * square + 1n)) % P
  return power(ratio, (P - 1n) / 2n) === 1n
}

/** Modular exponentiation. Not constant-time, because all values are public. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % P
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}
