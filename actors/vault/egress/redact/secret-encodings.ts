/**
 * Every spelling of a secret that an upstream may write back: as it was sent, and in the encodings that programs
 * commonly put around values (decisions.md section 24, 'redaction').
 */
import { inject } from '../inject/injection.js'

/** A text that answers are searched for. A prefix of it counts as an occurrence as well where `ends` has its length. */
export type Needle = {
  readonly bytes: Buffer
  /** Lengths that are an occurrence, ascending; the last one is the length of `bytes`. */
  readonly ends: readonly number[]
}

/** A shorter encoding occurs in ordinary text by chance. */
const ENCODED_CHARS_MIN = 4
const PASSWORD_CHARS_MIN = 4
/**
 * All needles of a credential together. Only secrets beyond 16 KiB that are mostly of characters with escapes come
 * here; then the rarer spellings, which are the later ones, are left out.
 */
const SUM_BYTES_MAX = 2 * 1024 * 1024
const BASE64_ALIGNMENTS = [0, 1, 2] as const

/** The needles of a secret and of the value that `inject` makes of it. No two have the same bytes. */
export function needlesOf(secret: Uint8Array, authScheme: string): Needle[] {
  const raw = received(Buffer.from(secret), authScheme)
  const found = new Collection()
  found.add(raw)
  spell(raw, found)
  const colon = authScheme === 'basic' ? raw.indexOf(':') : -1
  if (colon >= 0 && raw.length - colon > PASSWORD_CHARS_MIN) {
    const password = raw.subarray(colon + 1)
    found.add(password)
    spell(password, found)
  }
  addInjected(raw, authScheme, found)
  raw.fill(0)
  return found.needles()
}

/** The secret as the upstream gets it: a field value loses the white space around it (RFC 9110 section 5.5). */
function received(secret: Buffer, authScheme: string): Buffer {
  if (authScheme === 'basic' || authScheme.startsWith('query:')) return secret
  const isSpace = (at: number) => secret[at] === 0x20 || secret[at] === 0x09
  let from = 0
  let to = secret.length
  while (from < to && isSpace(from)) from += 1
  while (to > from && isSpace(to - 1)) to -= 1
  return from === to ? secret : secret.subarray(from, to)
}

/**
 * The field value where it is not the secret: `Basic` and lines in base64, `Bearer` in front. Encodings that work
 * byte by byte contain those of the secret, so only base64 has spellings of `Bearer <secret>` of its own.
 */
function addInjected(raw: Buffer, authScheme: string, found: Collection): void {
  const value = inject(authScheme, raw).header?.[1]
  if (value === undefined || raw.length === 0) return
  const bytes = Buffer.from(value, 'latin1')
  const token = bytes.subarray(value.indexOf(' ') + 1)
  const isScheme = authScheme === 'bearer' || authScheme === 'basic'
  const sent = isScheme ? token : bytes
  if (!sent.equals(raw)) {
    found.add(sent)
    spell(sent, found)
  }
  if (isScheme) addBase64(bytes, found)
}

function spell(raw: Buffer, found: Collection): void {
  addBase64(raw, found)
  const add = (each: Buffer) => {
    if (each.length >= ENCODED_CHARS_MIN) found.add(each)
  }
  const hex = raw.toString('hex')
  add(Buffer.from(hex, 'latin1'))
  add(Buffer.from(hex.toUpperCase(), 'latin1'))
  // Bytes that are not UTF-8 are replaced, as by a program that reads text.
  const utf8 = raw.toString('utf8')
  const text = Buffer.from(utf8)
  add(text)
  for (const table of [...PERCENT, ...JSON_BYTES, ...HTML]) add(expanded(text, table))
  if (/[^\x20-\x7e]/.test(utf8)) {
    for (const table of JSON_BYTES) add(jsonAscii(utf8, table))
    // Bytes that were taken for Latin-1, as Node takes those of a field, and written as UTF-8.
    add(Buffer.from(raw.toString('latin1')))
  }
}

/**
 * Base64 of text that contains the value: it may begin at any of the three places of a group. A character that the
 * value shares with bytes in front of it or behind it is not part of the needle, unless the text ends with the value:
 * then the last character is known, with its padding and without.
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

/** By byte of UTF-8: what is written for it. */
type Table = readonly Buffer[]

const SAME: Table = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte))

function tableOf(write: (char: string, byte: number) => string | undefined): Table {
  return SAME.map((same, byte) => {
    const written = write(String.fromCharCode(byte), byte)
    return written === undefined ? same : Buffer.from(written, 'latin1')
  })
}

/** RFC 3986 to the letter, what browsers and Node leave as it is, and the form of HTML forms; in both cases of hex. */
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

/** As serializers write a string: the least, with `/` escaped, and safe for HTML. */
const JSON_BYTES: readonly Table[] = ['', '/', '<>&'].map((more) =>
  tableOf((char, byte) => {
    if (byte >= 0x80) return undefined
    if (more.includes(char) && char !== '/') return codeUnit(byte)
    return char === '/' && more === '/' ? '\\/' : JSON.stringify(char).slice(1, -1)
  }),
)

/** JSON in ASCII only, with the escapes of a table. */
function jsonAscii(text: string, table: Table): Buffer {
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
    for (let shift = 12; shift >= 0; shift -= 4) out[to++] = HEX_DIGITS[(unit >> shift) & 15]!
  }
  return out.subarray(0, to)
}

const HEX_DIGITS = Buffer.from('0123456789abcdef')

function codeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}

/** What template engines make of the characters that they escape. Each line is the habit of some of them. */
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
  { '"': '&quot;', "'": '&#39;', '/': '&#x2F;', '`': '&#x60;', '=': '&#x3D;' },
].map((habit: Readonly<Record<string, string>>) => {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    ...habit,
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

/** Needles by their bytes, as many as fit. */
class Collection {
  readonly #ends = new Map<string, Set<number>>()
  #sumBytes = 0

  /** Copies the bytes. Empty ones are ignored. */
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

  needles(): Needle[] {
    return [...this.#ends].map(([key, ends]) => ({
      bytes: Buffer.from(key, 'latin1'),
      ends: [...ends].sort((a, b) => a - b),
    }))
  }
}
