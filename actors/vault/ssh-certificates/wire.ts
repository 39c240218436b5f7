/** SSH data types (RFC 4251 section 5) for keys, certificates and KRLs. */

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

/** A length-prefixed string. */
export function string(value: string | Uint8Array): Buffer {
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + length)
  bytes.writeUInt32BE(length)
  if (typeof value === 'string') bytes.write(value, LENGTH_BYTES)
  else bytes.set(value, LENGTH_BYTES)
  return bytes
}

const LENGTH_BYTES = 4

/** A non-negative big-endian integer, without leading zeros except a sign byte. */
export function mpint(value: Uint8Array): Buffer {
  const from = value.findIndex((byte) => byte !== 0)
  if (from < 0) return string('')
  const bare = value.subarray(from)
  return string(bare[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bare]) : bare)
}

/** The members of a blob after its first string, which names its type. */
export function afterType(blob: Buffer): Buffer {
  return blob.subarray(LENGTH_BYTES + blob.readUInt32BE())
}

/** An OpenSSH public key line: type and base64, without a comment. */
export function publicKeyLine(type: string, blob: Uint8Array): string {
  return `${type} ${Buffer.from(blob).toString('base64')}`
}

/** The key blob of an OpenSSH public key line. */
export function publicKeyBlob(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64')
}
