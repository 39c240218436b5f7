/**
 * Takes a secret out of what an upstream sends back: as it is, in base64, percent-encoded and as a
 * JSON string, in each way that these are commonly written (decisions.md section 5). Across the borders of chunks too: the end of a chunk is held
 * back as long as it may be the beginning of an occurrence, and no longer.
 */
import { escaped } from './injection.js'

export const REDACTED = '[redacted]'
const SHOWN = Buffer.from(REDACTED)
/** Shorter encodings would be found in everything. */
const ENCODED_CHARS_MIN = 4
const PASSWORD_CHARS_MIN = 4

export interface Redactor {
  /** What may go on of the bytes so far, in order. */
  push(chunk: Uint8Array): readonly Uint8Array[]
  /** What was held back. */
  end(): readonly Uint8Array[]
  /** A field value without the secret. */
  text(value: string): string
  /** Occurrences so far. */
  readonly count: number
}

/** Every spelling of a secret that is looked for. One may serve many answers. */
export class Needles {
  static readonly NONE = new Needles(new Uint8Array(0), 'none')
  readonly list: readonly Buffer[]

  constructor(secret: Uint8Array, authScheme: string) {
    this.list = needlesOf(secret, authScheme)
  }

  /** Forgets the secret. */
  wipe(): void {
    for (const needle of this.list) needle.fill(0)
  }
}

export function createRedactor(needles: Needles): Redactor {
  return new NeedleRedactor(needles.list)
}

/** The longest first: a short one may be part of a long one. */
function needlesOf(secret: Uint8Array, authScheme: string): Buffer[] {
  const raw = received(Buffer.from(secret), authScheme)
  const found = new Map<string, Buffer>()
  const add = (bytes: Buffer) => {
    if (bytes.length > 0) found.set(bytes.toString('latin1'), bytes)
  }
  add(Buffer.from(raw))
  for (const text of spellings(raw)) add(Buffer.from(text, 'latin1'))
  const colon = authScheme === 'basic' ? raw.indexOf(':') : -1
  if (colon >= 0 && raw.length - colon > PASSWORD_CHARS_MIN) {
    const password = raw.subarray(colon + 1)
    add(Buffer.from(password))
    for (const text of spellings(password)) add(Buffer.from(text, 'latin1'))
  }
  raw.fill(0)
  return [...found.values()].sort((a, b) => b.length - a.length)
}

/** As the upstream gets it: a field value loses the white space around it (RFC 9110 section 5.5). */
function received(secret: Buffer, authScheme: string): Buffer {
  if (authScheme === 'basic' || authScheme.startsWith('query:')) return secret
  const isSpace = (at: number) => secret[at] === 0x20 || secret[at] === 0x09
  let from = 0
  let to = secret.length
  while (from < to && isSpace(from)) from += 1
  while (to > from && isSpace(to - 1)) to -= 1
  return from === to ? secret : secret.subarray(from, to)
}

function spellings(raw: Buffer): string[] {
  // Without its padding, which is not known to come until it is there.
  const base64 = raw.toString('base64').replace(/=+$/, '')
  const base64url = raw.toString('base64url')
  const text = raw.toString('utf8')
  // RFC 3986 to the letter, what browsers and Node leave as it is, and the form of HTML forms.
  const percent = [
    escaped(text),
    encodeURIComponent(text),
    new URLSearchParams([[text, '']]).toString().slice(0, -1),
  ]
  const all = [
    base64,
    base64url,
    ...percent,
    ...percent.map((each) => each.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())),
    ...jsonSpellings(text),
    // Bytes that were taken for Latin-1, as Node takes those of a field, and written as UTF-8.
    Buffer.from(raw.toString('latin1')).toString('latin1'),
  ]
  return all.filter((each) => each.length >= ENCODED_CHARS_MIN)
}

/** As serializers write a string: the least, with `/` escaped, safe for HTML, and in ASCII only. */
function jsonSpellings(text: string): string[] {
  const least = JSON.stringify(text).slice(1, -1)
  const ascii = (json: string) => json.replaceAll(/[^\x20-\x7e]/g, codeUnit)
  return [least, least.replaceAll('/', '\\/'), least.replaceAll(/[<>&]/g, codeUnit)]
    .flatMap((json) => [json, ascii(json)])
    .map((json) => Buffer.from(json).toString('latin1'))
}

function codeUnit(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

class NeedleRedactor implements Redactor {
  count = 0
  readonly #needles: readonly Buffer[]
  #held: Buffer | null = null

  constructor(needles: readonly Buffer[]) {
    this.#needles = needles
  }

  push(chunk: Uint8Array): readonly Uint8Array[] {
    const bytes = viewOf(chunk)
    const whole = this.#held === null ? bytes : Buffer.concat([this.#held, bytes])
    const out: Uint8Array[] = []
    const rest = this.#replace(whole, out)
    const kept = this.#undecided(rest)
    // A copy: the chunk it is cut from belongs to the reader.
    this.#held = kept === 0 ? null : Buffer.from(rest.subarray(rest.length - kept))
    if (rest.length > kept) out.push(rest.subarray(0, rest.length - kept))
    return out
  }

  end(): readonly Uint8Array[] {
    const held = this.#held
    this.#held = null
    return held === null ? [] : [held]
  }

  text(value: string): string {
    const out: Uint8Array[] = []
    const rest = this.#replace(Buffer.from(value, 'latin1'), out)
    return out.length === 0 ? value : Buffer.concat([...out, rest]).toString('latin1')
  }

  /** Moves everything up to the last occurrence to `out`; what follows is answered. */
  #replace(whole: Buffer, out: Uint8Array[]): Buffer {
    const at = this.#needles.map((needle) => whole.indexOf(needle))
    let from = 0
    for (;;) {
      let next = -1
      let length = 0
      for (let each = 0; each < at.length; each += 1) {
        const needle = this.#needles[each]!
        if (at[each]! >= 0 && at[each]! < from) at[each] = whole.indexOf(needle, from)
        const place = at[each]!
        if (place >= 0 && (next < 0 || place < next)) {
          next = place
          length = needle.length
        }
      }
      if (next < 0) return whole.subarray(from)
      if (next > from) out.push(whole.subarray(from, next))
      out.push(SHOWN)
      this.count += 1
      from = next + length
    }
  }

  /** How many bytes at the end may be the beginning of an occurrence. */
  #undecided(bytes: Buffer): number {
    let longest = 0
    for (const needle of this.#needles) {
      const most = Math.min(needle.length - 1, bytes.length)
      let at = bytes.indexOf(needle[0]!, bytes.length - most)
      while (at >= 0 && bytes.length - at > longest) {
        const length = bytes.length - at
        if (bytes.compare(needle, 0, length, at) === 0) {
          longest = length
          break
        }
        at = bytes.indexOf(needle[0]!, at + 1)
      }
    }
    return longest
  }
}

function viewOf(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
