/**
 * The encodings in which redaction searches for a secret: the bytes as sent, and the encodings that
 * programs commonly apply to values (docs/reference/vault.md).
 */
import type { AuthScheme, SentScheme } from '../../../domain/vault/egress.js'
import { inject } from '../inject/injection.js'

/** A byte string to search for. A prefix is an occurrence too if `ends` contains its length. */
export type SecretEncoding = {
  readonly bytes: Buffer
  /** Lengths that are an occurrence, ascending; the last is the length of `bytes`. */
  readonly ends: readonly number[]
}

/** Shorter encodings occur in ordinary text by chance. */
const ENCODED_CHARS_MIN = 4
const PASSWORD_CHARS_MIN = 4
/**
 * Limit of all encodings of a credential together. Only secrets beyond 16 KiB that consist mostly of
 * escaped characters reach it; then the rarer encodings, which are added last, are omitted.
 */
const SUM_BYTES_MAX = 2 * 1024 * 1024
const BASE64_ALIGNMENTS = [0, 1, 2] as const
/** Of `JSON_BYTES`, the one whose digits are upper case. */
const DOTNET = 4

/** The distinct encodings of secrets, and of the field values that `inject` builds from them. */
export function encodingsOf(
  secrets: Uint8Array | readonly Uint8Array[],
  scheme: AuthScheme,
): SecretEncoding[] {
  const found = new Collection()
  for (const secret of [secrets].flat()) addSecret(secret, scheme, found)
  return found.encodings()
}

function addSecret(secret: Uint8Array, scheme: AuthScheme, found: Collection): void {
  const raw = received(Buffer.from(secret), scheme)
  found.add(raw)
  addEncodings(raw, found)
  const colon = scheme.kind === 'basic' ? raw.indexOf(':') : -1
  if (colon >= 0 && raw.length - colon > PASSWORD_CHARS_MIN) {
    const password = raw.subarray(colon + 1)
    found.add(password)
    addEncodings(password, found)
  }
  if (scheme.kind !== 'signed') addInjected(raw, scheme, found)
  raw.fill(0)
}

/** The secret as the upstream reads it: field values are trimmed (RFC 9110 section 5.5). */
function received(secret: Buffer, { kind }: AuthScheme): Buffer {
  switch (kind) {
    case 'basic':
    case 'query':
    case 'signed':
      return secret
    case 'field':
    case 'token':
      return trimmed(secret)
  }
}

function trimmed(secret: Buffer): Buffer {
  const isSpace = (at: number) => secret[at] === 0x20 || secret[at] === 0x09
  let from = 0
  let to = secret.length
  while (from < to && isSpace(from)) from += 1
  while (to > from && isSpace(to - 1)) to -= 1
  return from === to ? secret : secret.subarray(from, to)
}

/**
 * Adds the field value where it differs from the secret: `Basic`, base64 of several lines, `Bearer`. A byte-wise
 * encoding of `Bearer <secret>` contains the encoded secret, so only its base64 is added.
 */
function addInjected(raw: Buffer, scheme: SentScheme, found: Collection): void {
  if (scheme.kind === 'query' || raw.length === 0) return
  const bytes = Buffer.from(inject(scheme, raw).header![1], 'latin1')
  const sent = bytes.subarray(scheme.prefix.length)
  if (!sent.equals(raw)) {
    found.add(sent)
    addEncodings(sent, found)
  }
  if (scheme.prefix !== '') addBase64(bytes, found)
}

function addEncodings(raw: Buffer, found: Collection): void {
  addBase64(raw, found)
  const add = (each: Buffer) => {
    if (each.length >= ENCODED_CHARS_MIN) found.add(each)
  }
  const hex = raw.toString('hex')
  add(Buffer.from(hex, 'latin1'))
  add(Buffer.from(hex.toUpperCase(), 'latin1'))
  // Invalid UTF-8 is replaced, as programs do that read text.
  const utf8 = raw.toString('utf8')
  const text = Buffer.from(utf8)
  add(text)
  for (const table of [...PERCENT, ...JSON_BYTES, ...HTML]) add(expanded(text, table))
  if (/[^\x20-\x7e]/.test(utf8)) {
    for (const table of JSON_BYTES) add(jsonAscii(utf8, table))
    // Field bytes read as Latin-1, as Node does, and written as UTF-8.
    add(Buffer.from(raw.toString('latin1')))
  }
  for (const upper of [false, true]) add(codeUnits(utf8, upper))
  const wide = Buffer.from(utf8, 'utf16le')
  add(wide)
  if (wide.length > 0) add(Buffer.from(wide).swap16())
}

/** JSON with an escape for every character. */
function codeUnits(text: string, isUpper: boolean): Buffer {
  let out = ''
  for (let at = 0; at < text.length; at += 1) out += codeUnit(text.charCodeAt(at), isUpper)
  return Buffer.from(out, 'latin1')
}

/**
 * Base64 of the value within a longer text, at each of the three alignments. Characters that encode
 * neighbouring bytes too are excluded, except when the text ends with the value: then the last character
 * is known, with and without padding.
 */
function addBase64(value: Buffer, found: Collection): void {
  for (const before of BASE64_ALIGNMENTS) {
    const padded = Buffer.concat([Buffer.alloc(before), value])
    const text = padded.toString('base64')
    padded.fill(0)
    const from = Math.ceil((before * 8) / 6)
    const known = Math.floor((padded.length * 8) / 6)
    const unpadded = Math.ceil((padded.length * 8) / 6)
    const ends = [...new Set([known, unpadded, text.length])].map((end) => end - from)
    const counted = ends.filter((end) => end >= ENCODED_CHARS_MIN)
    if (counted.length === 0) continue
    const bytes = Buffer.from(text.slice(from), 'latin1')
    found.add(bytes, counted)
    if (!/[+/]/.test(text)) continue
    const url = text.slice(from).replaceAll('+', '-').replaceAll('/', '_')
    found.add(Buffer.from(url, 'latin1'), counted)
  }
}

/** By UTF-8 byte: its escaped form. */
type Table = readonly Buffer[]

const SAME: Table = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte))

function tableOf(write: (char: string, byte: number) => string | undefined): Table {
  return SAME.map((same, byte) => {
    const written = write(String.fromCharCode(byte), byte)
    return written === undefined ? same : Buffer.from(written, 'latin1')
  })
}

/** Percent-encoding by RFC 3986, by encodeURIComponent, and of HTML forms; upper and lower case hex. */
const PERCENT: readonly Table[] = [/[\w.~-]/, /[\w.~!'()*-]/, /[\w.*-]/].flatMap((left, form) =>
  [false, true].map((isLower) =>
    tableOf((char, byte) => {
      if (byte < 0x80 && left.test(char)) return undefined
      if (form === 2 && char === ' ') return '+'
      const hex = byte.toString(16).padStart(2, '0')
      return `%${isLower ? hex : hex.toUpperCase()}`
    }),
  ),
)

/** JSON strings: minimal escapes, with `/` escaped, and safe in HTML as Go, Gson and .NET write them. */
const JSON_BYTES: readonly Table[] = ['', '/', '<>&', "<>&='", `<>&'"+\``].map((more, form) =>
  tableOf((char, byte) => {
    if (byte >= 0x80) return undefined
    if (char === '/') return more === '/' ? '\\/' : char
    return more.includes(char) ? codeUnit(byte, form === DOTNET) : JSON.stringify(char).slice(1, -1)
  }),
)

/** ASCII-only JSON with the escapes of a table. */
function jsonAscii(text: string, table: Table): Buffer {
  const digits = table === JSON_BYTES[DOTNET] ? UPPER_DIGITS : HEX_DIGITS
  const out = Buffer.allocUnsafe(6 * text.length)
  let to = 0
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < 0x7f) {
      const written = table[unit]!
      for (let each = 0; each < written.length; each += 1) out[to++] = written[each]!
      continue
    }
    out[to++] = 0x5c
    out[to++] = 0x75
    for (let shift = 12; shift >= 0; shift -= 4) out[to++] = digits[(unit >> shift) & 15]!
  }
  return out.subarray(0, to)
}

const HEX_DIGITS = Buffer.from('0123456789abcdef')
const UPPER_DIGITS = Buffer.from('0123456789ABCDEF')

function codeUnit(unit: number, isUpper: boolean): string {
  const hex = unit.toString(16).padStart(4, '0')
  return `\\u${isUpper ? hex.toUpperCase() : hex}`
}

/** HTML escapes; each line is the variant of some template engines. */
const HTML: readonly Table[] = [
  { '"': '&quot;', "'": '&#39;' },
  { '"': '&#34;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#x27;' },
  {},
  { '"': '&quot;' },
  { '"': '&quot;', "'": '&#039;' },
  { '"': '&quot;', "'": '&apos;' },
  { '"': '&#34;', "'": '&#39;', '+': '&#43;' },
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;', '=': '&#x3D;' },
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;', '+': '&#x2B;' },
  { '"': '&quot;', "'": '&#39;', '/': '&#x2F;', '`': '&#x60;', '=': '&#x3D;' },
].map((variant: Readonly<Record<string, string>>) => {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    ...variant,
  }
  return tableOf((char) => entities[char])
})

function expanded(text: Buffer, table: Table): Buffer {
  let length = 0
  for (let at = 0; at < text.length; at += 1) length += table[text[at]!]!.length
  if (length === text.length && !text.some((byte) => table[byte] !== SAME[byte])) return text
  const out = Buffer.allocUnsafe(length)
  let to = 0
  for (let at = 0; at < text.length; at += 1) {
    const written = table[text[at]!]!
    for (let each = 0; each < written.length; each += 1) out[to++] = written[each]!
  }
  return out
}

/** Collects distinct encodings up to the size limit. */
class Collection {
  readonly #ends = new Map<string, Set<number>>()
  #sumBytes = 0

  /** Copies the bytes. Ignores empty ones. */
  add(bytes: Buffer, ends: readonly number[] = [bytes.length]): void {
    if (bytes.length === 0) return
    const key = bytes.toString('latin1')
    const known = this.#ends.get(key)
    if (known !== undefined) {
      for (const end of ends) known.add(end)
      return
    }
    if (this.#sumBytes + bytes.length > SUM_BYTES_MAX) return
    this.#sumBytes += bytes.length
    this.#ends.set(key, new Set(ends))
  }

  encodings(): SecretEncoding[] {
    return [...this.#ends].map(([key, ends]) => ({
      bytes: Buffer.from(key, 'latin1'),
      ends: [...ends].sort((a, b) => a - b),
    }))
  }
}
