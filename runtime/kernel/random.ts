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

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

export function systemRandom(clock: Clock): Random {
  const pool = new Uint8Array(16 * 256)
  let used = pool.length
  return {
    bytes: (count) => new Uint8Array(randomBytes(count)),
    token: (count) => randomBytes(count).toString('base64url'),
    uuid() {
      if (used === pool.length) {
        randomFillSync(pool)
        used = 0
      }
      const bytes = pool.subarray(used, used + 16)
      used += 16
      return formatUuidV7(clock.now().getTime(), bytes)
    },
  }
}

function formatUuidV7(ms: number, random: Uint8Array): string {
  const b = (index: number) => hex[random[index]!]!
  const time = ms.toString(16).padStart(12, '0')
  const version = hex[(random[6]! & 0x0f) | 0x70]!
  const variant = hex[(random[8]! & 0x3f) | 0x80]!
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-${version}${b(7)}-${variant}${b(9)}-` +
    b(10) +
    b(11) +
    b(12) +
    b(13) +
    b(14) +
    b(15)
  )
}
