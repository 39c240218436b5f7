/** Content codings that the relay decodes, so that redaction sees the decoded bytes. */
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { createZstdDecoder } from './zstd.js'

const DECODERS: Readonly<Record<string, () => Transform | null>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecoder,
}
/** Accept-Encoding of the proxy. It does not offer zstd, which costs a thread, but decodes it. */
const ACCEPTED = new Set(['gzip', 'x-gzip', 'deflate', 'br'])

/**
 * The decoder of a Content-Encoding: null for none; `unknown` for an unsupported coding, for several
 * codings, or when too many zstd decoders run.
 */
export function decoderOf(encoding: string | undefined): Transform | null | 'unknown' {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return null
  return DECODERS[name]?.() ?? 'unknown'
}

/** The caller's Accept-Encoding without the codings that the relay does not offer. */
export function acceptedEncodings(value: string): string {
  const kept = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => ACCEPTED.has(item.split(';')[0]!.trim().toLowerCase()))
  return kept.length === 0 ? 'identity' : kept.join(', ')
}
