/** The only reader of entropy. Everything else is given a `Random`. */
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

/** Hexadecimal digits that a UUID draws: 12 bits, 2 of one digit for the variant, 12 and 48 bits. */
const UUID_DIGITS = 20
const UUIDS_DRAWN = 256
/** The variant (RFC 9562 section 4.1) and the two random bits beside it. */
const VARIANTS = ['8', '9', 'a', 'b']

export function systemRandom(clock: Clock): Random {
  const pool = Buffer.alloc((UUID_DIGITS / 2) * UUIDS_DRAWN)
  let digits = ''
  let used = 0
  /** The time of the last UUID, and how it begins: many are made in a millisecond. */
  let ms = -1
  let time = ''
  return {
    bytes: (count) => new Uint8Array(randomBytes(count)),
    token: (count) => randomBytes(count).toString('base64url'),
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
      // No part is long enough to be kept as a view of all the digits.
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
