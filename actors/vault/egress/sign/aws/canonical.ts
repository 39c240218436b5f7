/** Signature Version 4: the canonical request, and the signature over it. Pure. */
import { createHash, createHmac } from 'node:crypto'
import type { HeaderPair } from '../../protocol.js'
import { byName } from '../hmac.js'

export type Scope = { readonly region: string; readonly service: string }
export type Keys = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | null
}

export type Canonical = {
  readonly method: string
  /** Path and query, as on the wire. */
  readonly path: string
  /** The fields that are signed, lower case, with `host` and `x-amz-date`. */
  readonly headers: readonly HeaderPair[]
  /** SHA-256 of the body in hex, or what stands for it. */
  readonly payloadHash: string
}

export const ALGORITHM = 'AWS4-HMAC-SHA256'
/** Services with the path rules of S3. */
const S3: ReadonlySet<string> = new Set(['s3', 's3-outposts', 's3-object-lambda', 's3express'])
export const isS3 = ({ service }: Scope) => S3.has(service)

/** `20150830T123600Z`. */
export const amzDate = (now: Date) => now.toISOString().replace(/[-:]|\.\d{3}/g, '')

export function canonicalRequest(
  { method, path, headers, payloadHash }: Canonical,
  scope: Scope,
): { readonly text: string; readonly signedHeaders: string } {
  const at = path.indexOf('?')
  const uri = at < 0 ? path : path.slice(0, at)
  const query = at < 0 ? '' : path.slice(at + 1)
  const values = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const text = value.replace(/^[ \t]+|[ \t]+$/g, '').replace(/[ \t]+/g, ' ')
    values.set(name, [...(values.get(name) ?? []), text])
  }
  const names = [...values.keys()].toSorted()
  const lines = names.map((name) => `${name}:${values.get(name)!.join(',')}\n`).join('')
  const signedHeaders = names.join(';')
  const text = [
    method,
    isS3(scope) ? encodedOnce(uri) : encodedTwice(uri),
    canonicalQuery(query),
    lines,
    signedHeaders,
    payloadHash,
  ].join('\n')
  return { text, signedHeaders }
}

/** The fields of the signature for a canonical request. */
export function signatureOf(canonical: string, keys: Keys, scope: Scope, date: string) {
  const day = date.slice(0, 8)
  const { region, service } = scope
  const credentialScope = `${day}/${region}/${service}/aws4_request`
  const toSign = [ALGORITHM, date, credentialScope, sha256(latin1(canonical))].join('\n')
  const key = signingKey(keys.secretAccessKey, day, scope)
  const signature = hmac(key, toSign)
  return { key, signature, credential: `${keys.accessKeyId}/${credentialScope}` }
}

export function signingKey(secretAccessKey: string, day: string, { region, service }: Scope) {
  return [day, region, service, 'aws4_request'].reduce(
    (key, text) => hmac(key, text),
    Buffer.from(`AWS4${secretAccessKey}`),
  )
}

const hmac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest()
export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
/** Field values are bytes. */
const latin1 = (text: string) => Buffer.from(text, 'latin1')

/** What is on the wire is encoded once; the canonical path encodes it again, without empty segments. */
function encodedTwice(path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '')
  const end = path.endsWith('/') && segments.length > 0 ? '/' : ''
  return `/${segments.map((segment) => encoded(latin1(segment))).join('/')}${end}`
}

/** S3 compares the object key, in one encoding. A slash of the key is a slash, also where it is escaped. */
const encodedOnce = (path: string) => encoded(decoded(path)).replaceAll('%2F', '/')

function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs = query.split('&').filter((part) => part !== '')
  return pairs
    .map((part) => {
      const at = part.indexOf('=')
      const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
      return `${encoded(decoded(name))}=${encoded(decoded(value))}`
    })
    .toSorted(byName)
    .join('&')
}

/** The bytes that a text with percent escapes means. */
function decoded(text: string): Buffer {
  const plain = text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return latin1(plain)
}

/** Percent-encodes bytes, except unreserved characters (RFC 3986 section 2.3). */
function encoded(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replaceAll(
      /[^A-Za-z0-9._~-]/g,
      (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
}
