/** Content codings that are undone on the way, so that a secret is found in what they hide. */
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
/** What is asked for. zstd is decoded where it comes unasked: it costs a thread. */
const ACCEPTED = new Set(['gzip', 'x-gzip', 'deflate', 'br'])

/**
 * The decoder of a Content-Encoding: null for none, `unknown` for one that cannot be undone here, for
 * several on top of each other, or when too much is being decoded already.
 */
export function decoderOf(encoding: string | undefined): Transform | null | 'unknown' {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return null
  return DECODERS[name]?.() ?? 'unknown'
}

/** The caller's Accept-Encoding without codings that could not be undone. */
export function acceptedEncodings(value: string): string {
  const kept = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => ACCEPTED.has(item.split(';')[0]!.trim().toLowerCase()))
  return kept.length === 0 ? 'identity' : kept.join(', ')
}
