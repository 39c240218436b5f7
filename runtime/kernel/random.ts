/** The only code that reads entropy. All other code receives a `Random`. */
import { randomBytes, randomFillSync } from 'node:crypto'
import type { Clock } from './clock.js'

export interface Random {
  /** `count` unpredictable bytes. */
  bytes(count: number): Uint8Array
  /** `count` unpredictable bytes as base64url without padding. */
  token(count: number): string
  /** A UUID version 7 (RFC 9562 section 5.7), lower case. */
  uuid(): string
}

/**
 * Random hexadecimal digits of one UUID: 12 bits, 2 bits in the variant digit, and 12 + 48 bits.
 */
const UUID_DIGITS = 20
const UUIDS_DRAWN = 256
/** The variant digit (RFC 9562 section 4.1): two fixed bits and two random ones. */
const VARIANTS = ['8', '9', 'a', 'b']

/** Bytes are drawn in advance, because a draw costs more than its bytes. Longer values are drawn on their own. */
const DRAWN_BYTES = 4_096
const SHORT_BYTES_MAX = 64

function shortDraws(): (count: number) => Buffer {
  const pool = Buffer.alloc(DRAWN_BYTES)
  let used = DRAWN_BYTES
  return (count) => {
    if (count > SHORT_BYTES_MAX) return randomBytes(count)
    if (used + count > DRAWN_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    const drawn = Buffer.alloc(count)
    pool.copy(drawn, 0, used, used + count)
    // Nothing keeps the bytes of a secret but its owner.
    pool.fill(0, used, used + count)
    used += count
    return drawn
  }
}

export function systemRandom(clock: Clock): Random {
  const draw = shortDraws()
  const pool = Buffer.alloc((UUID_DIGITS / 2) * UUIDS_DRAWN)
  let digits = ''
  let used = 0
  /** The time of the last UUID and its prefix: many UUIDs are created within a millisecond. */
  let ms = -1
  let time = ''
  return {
    bytes: (count) => new Uint8Array(draw(count)),
    token: (count) => draw(count).toString('base64url'),
    uuid() {
      if (used === digits.length) {
        digits = randomFillSync(pool).toString('hex')
        used = 0
      }
      const at = used
      used += UUID_DIGITS
      const nowMs = clock.now().getTime()
      if (nowMs !== ms) {
        ms = nowMs
        time = timeOf(nowMs)
      }
      const variant = VARIANTS[Number.parseInt(digits[at + 3]!, 16) & 3]!
      // The parts are short enough for V8 to copy them: no slice keeps the whole digit string
      // alive.
      return (
        `${time}-7${digits.slice(at, at + 3)}-` +
        `${variant}${digits.slice(at + 4, at + 7)}-${digits.slice(at + 8, at + 20)}`
      )
    },
  }
}

function timeOf(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}`
}
