/** Bodies that many answers share: encoded, hashed and compressed once, and never copied for an answer. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import Negotiator from 'negotiator'

/** Shorter bodies stay strings, which transports write together with the head. */
const SHORT_CHARS = 16 * 1024

const CODINGS = ['br', 'gzip'] as const
type Coding = (typeof CODINGS)[number]
/** Values of Accept-Encoding whose choice is kept. Clients send few. */
const CHOICES_MAX = 64

/** The compressed forms of each body, each as `compressedFor` returns it. */
const shared = new WeakMap<Uint8Array, Map<Coding, Compressed | null | Promise<void>>>()
const choices = new Map<string, Coding | null>()

const compressors: { readonly [C in Coding]: (body: Uint8Array) => Promise<Uint8Array> } = {
  br: (body) =>
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (body) => promisify(gzip)(body),
}

export type SharedBody = {
  readonly body: string | Uint8Array
  /** Strong entity tag with quotes. */
  readonly etag: string
}

/** Encodes and hashes a document. Keep the result for all its answers. */
export function sharedBody(text: string | Uint8Array): SharedBody {
  const etag = strongTag(text)
  if (typeof text === 'string' && text.length < SHORT_CHARS) return { body: text, etag }
  const body = typeof text === 'string' ? Buffer.from(text) : text
  shared.set(body, new Map())
  return { body, etag }
}

/** The same, made at the first request. */
export function sharedOnce(make: () => string | Uint8Array): () => SharedBody {
  let made: SharedBody | null = null
  return () => (made ??= sharedBody(make()))
}

type Compressed = { readonly coding: Coding; readonly body: Uint8Array }

/**
 * The form of a shared body that a client prefers, or null for the plain one. The first request for a form waits until it
 * is made, in another thread.
 */
export function compressedFor(
  body: Uint8Array,
  acceptEncoding: string,
): Compressed | null | Promise<void> {
  const forms = shared.get(body)
  const coding = forms === undefined ? null : choiceOf(acceptEncoding)
  if (forms === undefined || coding === null) return null
  const form = forms.get(coding)
  if (form !== undefined) return form
  const making = compress(body, coding)
    .catch(() => null)
    .then((made) => void forms.set(coding, made))
  forms.set(coding, making)
  return making
}

/** @returns null if the compressed form is not shorter. */
async function compress(body: Uint8Array, coding: Coding): Promise<Compressed | null> {
  const short = await compressors[coding](body)
  if (short.byteLength >= body.byteLength) return null
  shared.set(short, new Map())
  return { coding, body: short }
}

function choiceOf(acceptEncoding: string): Coding | null {
  const known = choices.get(acceptEncoding)
  if (known !== undefined) return known
  const negotiator = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } })
  const chosen = negotiator.encoding([...CODINGS, 'identity'])
  const coding = CODINGS.find((one) => one === chosen) ?? null
  if (choices.size >= CHOICES_MAX) choices.clear()
  choices.set(acceptEncoding, coding)
  return coding
}

/** The entity tags of a body in each of its forms. */
export function tagsOf(etag: string): readonly string[] {
  return [etag, ...CODINGS.map((coding) => tagOf(etag, coding))]
}

export function tagOf(etag: string, coding: Coding): string {
  return etag.replace(/"$/, `-${coding}"`)
}

/** True for bytes that do not belong to one answer. */
export function isShared(body: Uint8Array): boolean {
  return shared.has(body)
}

/** The strong entity tag of a body. */
export function strongTag(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}
