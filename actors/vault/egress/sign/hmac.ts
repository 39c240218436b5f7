/** `hmac`: the template of a secret says what is signed, and which fields and parameters carry the signature. */
import { createHash, createHmac } from 'node:crypto'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type HmacSecret,
  type HmacTemplate,
  keyBytes,
  templateOf,
  TOKEN,
  tokensOf,
} from '../../../domain/vault/secret-documents/hmac.js'
import { escaped, withoutParameters, withQuery } from '../inject/injection.js'
import type { HeaderPair } from '../protocol.js'
import { type SignedCall, type Signer, type UnsignedCall, withoutSignature } from './signer.js'

export const hmacSigner = (random: Random): Signer<'hmac'> => ({
  sign: (call, secret) => signed(call, secret, random),
})

function signed(call: UnsignedCall, secret: HmacSecret, random: Random): SignedCall {
  const template = templateOf(secret)
  const key = keyBytes(secret.key, template)!
  const values = new Values(call, template, secret.key_id, random)
  const fields = template.set.flatMap(({ header }) => header ?? [])
  const parameters = template.set.flatMap(({ query }) => query ?? [])
  values.headers = withoutSignature(call.headers, fields)
  values.path = withoutParameters(call.path, parameters)
  const [last, first] = partition(template.set, ({ value }) =>
    tokensOf(value).includes('signature'),
  )
  // The signature covers a timestamp in the query.
  for (const each of first) values.add(each)
  const mac = createHmac(template.algorithm, key).update(values.message(template.string)).digest()
  values.signature = shown(mac, template.output)
  for (const each of last) values.add(each)
  const { path, headers, signature } = values
  return { tag: 'signed', path, headers, secrets: [secret.key, key, mac, signature] }
}

/** What the tokens of a template stand for, in the call as it is built. */
class Values {
  path = ''
  headers: readonly HeaderPair[] = []
  signature = ''
  readonly #call: UnsignedCall
  readonly #template: HmacTemplate
  readonly #keyId: string
  readonly #timestamp: string
  readonly #nonce: string

  constructor(call: UnsignedCall, template: HmacTemplate, keyId = '', random: Random) {
    this.#call = call
    this.#template = template
    this.#keyId = keyId
    this.#timestamp = timestampOf(call.now, template.timestamp)
    const { nonceField } = template
    const sent = call.headers.find(([name]) => name === nonceField)?.[1]
    this.#nonce = sent ?? nonceOf(template.nonce, random)
  }

  /** Adds a field or a parameter of the template. */
  add({ header, query, value }: HmacTemplate['set'][number]): void {
    const text = this.message(value).toString('latin1')
    if (header !== undefined) this.headers = [...this.headers, [header.toLowerCase(), text]]
    else this.path = withQuery(this.path, `${escaped(query!)}=${escaped(text)}`)
  }

  /** The bytes of a text with its tokens replaced. */
  message(text: string): Buffer {
    const parts: Buffer[] = []
    let at = 0
    for (const { 0: whole, 1: token, index } of text.matchAll(TOKEN)) {
      parts.push(Buffer.from(text.slice(at, index), 'utf8'), this.#bytesOf(token!))
      at = index + whole.length
    }
    return Buffer.concat([...parts, Buffer.from(text.slice(at), 'utf8')])
  }

  #bytesOf(token: string): Buffer {
    if (token === 'body') return this.#body()
    return Buffer.from(this.#textOf(token), 'latin1')
  }

  #textOf(token: string): string {
    const { method, host, body } = this.#call
    const [path = '', query = ''] = splitOnce(this.path, '?')
    switch (token) {
      case 'method':
        return method.toLowerCase()
      case 'METHOD':
        return method
      case 'scheme':
        return 'https'
      case 'host':
        return host
      case 'path':
        return path
      case 'query':
        return query
      case 'sorted_query':
        return query.split('&').toSorted(byName).join('&')
      case 'path_with_query':
        return this.path
      case 'body_sha256':
        return hash('sha256', body).toString('hex')
      case 'timestamp':
        return this.#timestamp
      case 'nonce':
        return this.#nonce
      case 'key_id':
        return this.#keyId
      case 'signature':
        return this.signature
      default:
        return this.#field(token.slice('header:'.length).toLowerCase())
    }
  }

  #body(): Buffer {
    const { body } = this.#call
    switch (this.#template.body_hash) {
      case 'none':
        return Buffer.from(body ?? [])
      case 'sha256_hex':
        return Buffer.from(hash('sha256', body).toString('hex'))
      case 'md5_base64':
        return Buffer.from(hash('md5', body).toString('base64'))
    }
  }

  /** A field, or the list of several with one name (RFC 9110 section 5.3). */
  #field(name: string): string {
    if (name === 'host') return this.#call.host
    return this.headers.flatMap(([other, value]) => (other === name ? value : [])).join(', ')
  }
}

const hash = (algorithm: string, body: Uint8Array | null) =>
  createHash(algorithm)
    .update(body ?? '')
    .digest()

function timestampOf(now: Date, form: HmacTemplate['timestamp']): string {
  switch (form) {
    case 'unix':
      return String(Math.floor(now.getTime() / 1000))
    case 'unix_ms':
      return String(now.getTime())
    case 'rfc3339':
      return now.toISOString()
    case 'http_date':
      return now.toUTCString()
    case 'none':
      return ''
  }
}

function nonceOf(form: HmacTemplate['nonce'], random: Random): string {
  switch (form) {
    case 'uuid':
      return random.uuid()
    case 'hex16':
      return Buffer.from(random.bytes(16)).toString('hex')
    case 'none':
      return ''
  }
}

function shown(mac: Buffer, output: HmacTemplate['output']): string {
  return output === 'hex_upper' ? mac.toString('hex').toUpperCase() : mac.toString(output)
}

/** The order of parameters by name, and then by value. */
export function byName(left: string, right: string): number {
  const [name = '', value = ''] = splitOnce(left, '=')
  const [otherName = '', otherValue = ''] = splitOnce(right, '=')
  return compared(name, otherName) || compared(value, otherValue)
}

const compared = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0)

function splitOnce(text: string, at: string): readonly string[] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}

function partition<T>(all: readonly T[], is: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(is), all.filter((each) => !is(each))]
}
