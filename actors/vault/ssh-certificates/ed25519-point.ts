/**
 * Whether 32 bytes are an Ed25519 public key that one private key stands behind. OpenSSL takes any bytes
 * for a key. A point of small order verifies signatures that no private key made, and a second encoding
 * of a point gives one key two names in a revocation list. RFC 8032 sections 5.1.3 and 5.1.7.
 */

const POINT_BYTES = 32
const P = 2n ** 255n - 19n
/** -121665 / 121666 (RFC 8032 section 5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
/** The y of four of the points of order 8; of the other four it is -y. Points of order 4, 1 and 2: 0, 1, -1. */
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

/** Modulo p. The values are public: the time that it takes says nothing secret. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % P
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}
