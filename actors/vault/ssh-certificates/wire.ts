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
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** A non-negative big-endian integer, without leading zeros except a sign byte. */
export function mpint(value: Uint8Array): Buffer {
  const from = value.findIndex((byte) => byte !== 0)
  if (from < 0) return string('')
  const bare = value.subarray(from)
  return string(bare[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bare]) : bare)
}

/** An OpenSSH public key line: type and base64, without a comment. */
export function publicKeyLine(type: string, blob: Uint8Array): string {
  return `${type} ${Buffer.from(blob).toString('base64')}`
}

/** The key blob of an OpenSSH public key line. */
export function publicKeyBlob(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64')
}
