/**
 * Wraps data keys under master keys with AES-256-GCM (NIST SP 800-38D). Header and context are associated data, so
 * that neither the version nor the owner of a wrapped key can be changed.
 *
 *     format 1 | version 4 | key id 8 | nonce 12 | ciphertext | tag 16
 */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Random } from '../../../runtime/kernel/random.js'
import { KmsRefused } from './kms.js'

const FORMAT = 1
const ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEADER_BYTES = 5 + ID_BYTES
/** Bytes that wrapping adds to a plaintext. */
export const WRAP_OVERHEAD_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES

type MasterKey = { readonly id: string; readonly header: Buffer; readonly key: KeyObject }

export interface MasterKeys {
  /** Oldest first. The last one wraps. */
  readonly ids: readonly string[]
  wrap(context: string, plaintext: Uint8Array): Uint8Array
  /** @throws {KmsRefused} */
  unwrap(context: string, wrapped: Uint8Array): Uint8Array
}

type MasterKeyBytes = { readonly version: number; readonly bytes: Uint8Array }

/** @param keys at least one. The key with the highest version wraps. */
export function masterKeys(keys: readonly MasterKeyBytes[], random: Random): MasterKeys {
  const ordered = [...keys].sort((a, b) => a.version - b.version).map(masterKey)
  const byId = new Map(ordered.map((entry) => [entry.id, entry]))
  const current = ordered.at(-1)
  if (current === undefined) throw new RangeError('a kms needs at least one master key')
  return {
    ids: ordered.map(({ id }) => id),
    wrap(context, plaintext) {
      const nonce = random.bytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce)
      cipher.setAAD(associated(current.header, context))
      const body = cipher.update(plaintext)
      cipher.final()
      return Buffer.concat([current.header, nonce, body, cipher.getAuthTag()])
    },
    unwrap(context, wrapped) {
      const id = masterKeyIdOf(wrapped)
      if (id === undefined) throw new KmsRefused('malformed')
      const master = byId.get(id)
      if (master === undefined) throw new KmsRefused('unknown_master_key')
      const nonceEnd = HEADER_BYTES + NONCE_BYTES
      const nonce = wrapped.subarray(HEADER_BYTES, nonceEnd)
      const decipher = createDecipheriv('aes-256-gcm', master.key, nonce, {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(associated(master.header, context))
      decipher.setAuthTag(wrapped.subarray(wrapped.length - TAG_BYTES))
      const plaintext = decipher.update(wrapped.subarray(nonceEnd, wrapped.length - TAG_BYTES))
      try {
        decipher.final()
      } catch {
        throw new KmsRefused('does_not_open')
      }
      return plaintext
    },
  }
}

/** The id of the master key of wrapped bytes, such as `2-0a1b2c3d4e5f6071`. Undefined if malformed. */
export function masterKeyIdOf(wrapped: Uint8Array): string | undefined {
  if (wrapped.length < WRAP_OVERHEAD_BYTES || wrapped[0] !== FORMAT) return undefined
  const header = Buffer.from(wrapped.buffer, wrapped.byteOffset, HEADER_BYTES)
  return `${header.readUInt32BE(1)}-${header.toString('hex', 5)}`
}

/** The id is a MAC of a fixed text under the key, so it does not disclose the key. */
function masterKey({ version, bytes }: MasterKeyBytes): MasterKey {
  const digest = createHmac('sha256', bytes).update('svc-kms master key id').digest()
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt8(FORMAT)
  header.writeUInt32BE(version, 1)
  header.set(digest.subarray(0, ID_BYTES), 5)
  const id = `${version}-${header.toString('hex', 5)}`
  return { id, header, key: createSecretKey(bytes) }
}

function associated(header: Buffer, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context)])
}
