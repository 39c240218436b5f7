/** Content codings that the relay decodes, so that redaction sees the decoded bytes. */
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { createZstdDecoder } from './zstd.js'

/** The decoders of `deflate` whose first byte has not arrived yet. */
const inflates = new WeakSet<Transform>()

function inflate(): Transform {
  const decoder = createInflate()
  inflates.add(decoder)
  return decoder
}

const DECODERS: Readonly<Record<string, () => Transform | null>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: inflate,
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

/**
 * The decoder for a body that begins with this byte. Some upstreams send deflate without its zlib header, as RFC 9110
 * section 8.4.1.2 warns. A header has 8 in the lower half of its first byte; no encoder begins a raw stream so.
 */
export function decoderFor(decoder: Transform, firstByte: number): Transform {
  if (!inflates.has(decoder) || (firstByte & 0x0f) === 8) return decoder
  decoder.destroy()
  return createInflateRaw()
}

/** The caller's Accept-Encoding without the codings that the relay does not offer. */
export function acceptedEncodings(value: string): string {
  const kept = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => ACCEPTED.has(item.split(';')[0]!.trim().toLowerCase()))
  return kept.length === 0 ? 'identity' : kept.join(', ')
}
