/** The data types of the SSH protocol (RFC 4251 section 5), as keys, certificates and KRLs use them. */

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

/** Length, then the bytes. */
export function string(value: string | Uint8Array): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** An unsigned number, big end first: without leading zeros, and never read as a negative one. */
export function mpint(value: Uint8Array): Buffer {
  const from = value.findIndex((byte) => byte !== 0)
  if (from < 0) return string('')
  const bare = value.subarray(from)
  return string(bare[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bare]) : bare)
}

/** A public key as files have it: type and base64, without a comment. */
export function publicKeyLine(type: string, blob: Uint8Array): string {
  return `${type} ${Buffer.from(blob).toString('base64')}`
}

/** The key itself of such a line. */
export function publicKeyBlob(line: string): Buffer {
  return Buffer.from(line.split(' ')[1] ?? '', 'base64')
}
