/** A `Random` whose values follow from a seed. For test data only: its values can be predicted. */
import { createCipheriv, createHash } from 'node:crypto'
import type { Random } from '../../kernel/random.js'

const BLOCK_BYTES = 4_096

/**
 * @param label names the stream. Streams of other labels have other values.
 * @param timeMs the time in the UUIDs.
 */
export function seededRandom(seed: string, label: string, timeMs: number): Random {
  const key = createHash('sha256').update(`svc-seed\0${seed}\0${label}`).digest()
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16))
  const zeros = Buffer.alloc(BLOCK_BYTES)
  let block = Buffer.alloc(0)
  let used = 0
  const bytes = (count: number): Uint8Array => {
    const taken = new Uint8Array(count)
    for (let at = 0; at < count; ) {
      if (used === block.length) {
        block = cipher.update(zeros)
        used = 0
      }
      const part = block.subarray(used, used + count - at)
      taken.set(part, at)
      at += part.length
      used += part.length
    }
    return taken
  }
  const time = timeMs.toString(16).padStart(12, '0')
  return {
    bytes,
    token: (count) => Buffer.from(bytes(count)).toString('base64url'),
    uuid() {
      const raw = Buffer.from(bytes(10))
      raw[0] = (raw[0]! & 0x0f) | 0x70
      raw[2] = (raw[2]! & 0x3f) | 0x80
      const digits = raw.toString('hex')
      return (
        `${time.slice(0, 8)}-${time.slice(8)}-${digits.slice(0, 4)}-` +
        `${digits.slice(4, 8)}-${digits.slice(8)}`
      )
    },
  }
}
