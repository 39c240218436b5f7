/** Codes of an authenticator app, implemented independently (RFC 6238), each returned once. */
import { createHmac } from 'node:crypto'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function bytesOf(secret: string): Buffer {
  let bits = ''
  for (const letter of secret) bits += BASE32.indexOf(letter).toString(2).padStart(5, '0')
  const bytes = bits.match(/[01]{8}/g) ?? []
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)))
}

export function codeAt(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeUInt32BE(step, 4)
  const mac = createHmac('sha1', bytesOf(secret)).update(counter).digest()
  const at = mac.at(-1)! % 16
  return String((mac.readUInt32BE(at) % 2 ** 31) % 1_000_000).padStart(6, '0')
}

const STEP_MS = 30_000
/** A code must reach the service before it expires, also on a busy machine. */
const MARGIN_MS = 8_000

/**
 * Codes that the service still accepts: it allows one step to either side and each step once. So the first is the
 * previous one, then the current, then the next: three without waiting. Shortly before a step ends, the previous one is
 * skipped, and a fourth is waited for.
 */
export function loginCodes(secret: string) {
  let last = 0
  return {
    next(): string {
      const step = () => Math.floor(Date.now() / STEP_MS)
      const isEnding = Date.now() % STEP_MS > STEP_MS - MARGIN_MS
      last = Math.max(last + 1, isEnding ? step() : step() - 1)
      if (last > step() + 1) {
        if (!isEnding) throw new Error('the next code is not valid yet')
        const waitMs = STEP_MS - (Date.now() % STEP_MS)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMs)
      }
      return codeAt(secret, last)
    },
  }
}
