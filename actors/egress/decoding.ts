/** Content codings that are undone on the way, so that a secret is found in what they hide. */
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** What is decoded per input byte and on top of it: beyond, it is a bomb. */
const RATIO_MAX = 200
const ALLOWANCE_BYTES = 8 * 1024 * 1024

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}
const NAMES = Object.keys(DECODERS)

/**
 * The decoder of a Content-Encoding: null for none, `unknown` for one that cannot be undone here, or
 * for several on top of each other.
 */
export function decoderOf(encoding: string | undefined): Transform | null | 'unknown' {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return null
  return DECODERS[name]?.() ?? 'unknown'
}

/** Whether so much output of so much input can be honest. */
export function isBomb(inputBytes: number, outputBytes: number): boolean {
  return outputBytes > ALLOWANCE_BYTES + inputBytes * RATIO_MAX
}

/** The caller's Accept-Encoding without codings that could not be undone. */
export function acceptedEncodings(value: string): string {
  const kept = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => NAMES.includes(item.split(';')[0]!.trim().toLowerCase()))
  return kept.length === 0 ? 'identity' : kept.join(', ')
}
