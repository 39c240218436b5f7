/** OpenSSH key revocation lists (PROTOCOL.krl, format version 1). */
import { publicKeyBlob, string, uint32, uint64 } from './wire.js'

const MAGIC = 0x5353484b524c0a00n
const FORMAT_VERSION = 1
const SECTION_CERTIFICATES = 1
const SECTION_EXPLICIT_KEY = 2
const SECTION_SERIAL_LIST = 0x20

type Krl = {
  /** Increases with every change. */
  readonly version: bigint
  readonly generatedSecs: number
  readonly comment: string
  /** Revoked serials by the OpenSSH line of the CA key that signed them. */
  readonly serials: ReadonlyMap<string, readonly bigint[]>
  /** OpenSSH lines of revoked keys. A revoked CA key revokes everything it signed. */
  readonly keys: readonly string[]
}

export function encodeKrl({ version, generatedSecs, comment, serials, keys }: Krl): Buffer {
  return Buffer.concat([
    uint64(MAGIC),
    uint32(FORMAT_VERSION),
    uint64(version),
    uint64(BigInt(generatedSecs)),
    // Flags: none are defined.
    uint64(0n),
    string(''),
    string(comment),
    ...[...serials].map(([line, revoked]) =>
      section(SECTION_CERTIFICATES, certificates(line, revoked)),
    ),
    ...(keys.length === 0
      ? []
      : [
          section(
            SECTION_EXPLICIT_KEY,
            Buffer.concat(keys.map((line) => string(publicKeyBlob(line)))),
          ),
        ]),
  ])
}

function certificates(caLine: string, serials: readonly bigint[]): Buffer {
  const ordered = [...new Set(serials)].toSorted((a, b) => (a < b ? -1 : 1))
  return Buffer.concat([
    string(publicKeyBlob(caLine)),
    string(''),
    section(SECTION_SERIAL_LIST, Buffer.concat(ordered.map(uint64))),
  ])
}

function section(type: number, data: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([type]), string(data)])
}
