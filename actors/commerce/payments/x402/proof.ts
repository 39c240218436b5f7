/**
 * Parses a payment proof from a header field: base64 of JSON, read strictly. x402 v2 section 5.2
 * and transport http; x402 v1.
 */
import { createHash } from 'node:crypto'
import { PAYMENT_IDENTIFIER } from '../../../domain/commerce/x402.js'
import type { Authorization } from '../../../platform/evm/transfer-authorization.js'
import { parseStrictJson } from '../../../platform/jose/strict-json.js'

/**
 * Longer fields are not proofs of scheme `exact`. The transports limit headers to 16 KiB in any
 * case.
 */
const HEADER_CHARS_MAX = 16_384
const JSON_DEPTH_MAX = 16
const UINT256_MAX = 2n ** 256n - 1n

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const BYTES_32 = /^0x[0-9a-fA-F]{64}$/
const HEX = /^0x(?:[0-9a-fA-F]{2})+$/
const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/
/** The id of the payment-identifier extension. */
const PAYMENT_ID = /^[A-Za-z0-9_-]{16,128}$/

export type Version = 1 | 2

/** What the payer accepted. Compared with the offers. */
export type Accepted =
  | {
      readonly version: 2
      readonly scheme: string
      readonly network: string
      readonly amount: string
      readonly asset: string
      readonly payTo: string
      readonly maxTimeoutSeconds: number
      readonly extra: Readonly<Record<string, unknown>>
    }
  | { readonly version: 1; readonly scheme: string; readonly network: string }

export type Proof = {
  readonly version: Version
  readonly accepted: Accepted
  /** Lower-case hex. */
  readonly signature: string
  readonly authorization: Authorization
  /** The client's id of the payment-identifier extension. */
  readonly paymentId: string | null
  /** SHA-256 of the whole payload in canonical order. */
  readonly payloadSha256: Buffer
  /**
   * SHA-256 of the defining members of the payment: version, network, authorization and signature.
   */
  readonly proofSha256: Buffer
}

type ProofRead =
  | { readonly tag: 'proof'; readonly proof: Proof }
  /** `pointer` is a JSON pointer into the payload. Empty for the whole payload. */
  | { readonly tag: 'malformed'; readonly pointer: string; readonly detail: string }

class Malformed extends Error {
  override readonly name = 'Malformed'
  readonly pointer: string

  constructor(pointer: string, detail: string) {
    super(detail)
    this.pointer = pointer
  }
}

/** Parses PAYMENT-SIGNATURE (version 2) or X-PAYMENT (version 1). Never throws. */
export function readProof(field: string, version: Version): ProofRead {
  try {
    return { tag: 'proof', proof: proofOf(decode(field), version) }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { tag: 'malformed', pointer: error.pointer, detail: error.message }
  }
}

function decode(field: string): Members {
  if (field.length > HEADER_CHARS_MAX) throw new Malformed('', 'The proof is too long.')
  const bytes = Buffer.from(field, 'base64')
  const bare = field.replace(/=+$/, '')
  // Refuses characters and bits that the decoder would drop, because they would mean another text.
  if (!BASE64.test(field) || bytes.toString('base64').replace(/=+$/, '') !== bare) {
    throw new Malformed('', 'The proof is not base64.')
  }
  const json = parseStrictJson(bytes, JSON_DEPTH_MAX)
  if (!isMembers(json)) throw new Malformed('', 'The proof is not base64 of a JSON object.')
  return json
}

function proofOf(payload: Members, version: Version): Proof {
  if (payload['x402Version'] !== version) {
    throw new Malformed('/x402Version', `Must be ${version} in this header field.`)
  }
  const accepted = version === 2 ? acceptedV2(payload) : acceptedV1(payload)
  const exact = members(payload, '', 'payload')
  const signature = matching(exact, '/payload', 'signature', HEX, 'hex digits after 0x')
  const authorization = authorizationOf(members(exact, '/payload', 'authorization'))
  const paymentId = version === 2 ? paymentIdOf(payload) : null
  const { network } = accepted
  const proof = { version, network, authorization, signature: signature.toLowerCase() }
  return {
    version,
    accepted,
    signature: proof.signature,
    authorization,
    paymentId,
    payloadSha256: sha256(canonical(payload)),
    proofSha256: sha256(canonical(proof)),
  }
}

function acceptedV2(payload: Members): Accepted {
  const pointer = '/accepted'
  const accepted = members(payload, '', 'accepted')
  const timeout = accepted['maxTimeoutSeconds']
  if (typeof timeout !== 'number') {
    throw new Malformed(`${pointer}/maxTimeoutSeconds`, 'Must be a number.')
  }
  const extra = accepted['extra'] ?? {}
  if (!isMembers(extra)) throw new Malformed(`${pointer}/extra`, 'Must be an object.')
  return {
    version: 2,
    scheme: text(accepted, pointer, 'scheme'),
    network: text(accepted, pointer, 'network'),
    amount: text(accepted, pointer, 'amount'),
    asset: text(accepted, pointer, 'asset'),
    payTo: text(accepted, pointer, 'payTo'),
    maxTimeoutSeconds: timeout,
    extra,
  }
}

function acceptedV1(payload: Members): Accepted {
  return {
    version: 1,
    scheme: text(payload, '', 'scheme'),
    network: text(payload, '', 'network'),
  }
}

function authorizationOf(from: Members): Authorization {
  const pointer = '/payload/authorization'
  const address = (name: string) =>
    matching(from, pointer, name, ADDRESS, 'an address: 0x, 40 digits')
  const decimal = (name: string) => {
    const value = matching(from, pointer, name, DECIMAL, 'a decimal string')
    if (BigInt(value) > UINT256_MAX) throw new Malformed(`${pointer}/${name}`, 'Exceeds 256 bits.')
    return value
  }
  return {
    from: address('from').toLowerCase(),
    to: address('to').toLowerCase(),
    value: decimal('value'),
    validAfter: decimal('validAfter'),
    validBefore: decimal('validBefore'),
    nonce: matching(from, pointer, 'nonce', BYTES_32, '32 bytes: 0x, 64 digits').toLowerCase(),
  }
}

function paymentIdOf(payload: Members): string | null {
  const pointer = `/extensions/${PAYMENT_IDENTIFIER}/info/id`
  const extensions = payload['extensions'] ?? {}
  if (!isMembers(extensions)) throw new Malformed('/extensions', 'Must be an object.')
  const extension = extensions[PAYMENT_IDENTIFIER]
  if (extension === undefined) return null
  const info = isMembers(extension) ? extension['info'] : undefined
  if (!isMembers(info)) throw new Malformed(`/extensions/${PAYMENT_IDENTIFIER}`, 'Has no info.')
  const id = info['id']
  if (id === undefined) return null
  if (typeof id === 'string' && PAYMENT_ID.test(id)) return id
  throw new Malformed(pointer, 'Must be 16 to 128 letters, digits, hyphens or underscores.')
}

type Members = Readonly<Record<string, unknown>>

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function members(from: Members, pointer: string, name: string): Members {
  const value = Object.hasOwn(from, name) ? from[name] : undefined
  if (!isMembers(value)) throw new Malformed(`${pointer}/${name}`, 'Is missing or not an object.')
  return value
}

function text(from: Members, pointer: string, name: string): string {
  const value = Object.hasOwn(from, name) ? from[name] : undefined
  if (typeof value === 'string' && value !== '') return value
  throw new Malformed(`${pointer}/${name}`, 'Is missing or not a string.')
}

function matching(
  from: Members,
  pointer: string,
  name: string,
  form: RegExp,
  words: string,
): string {
  const value = text(from, pointer, name)
  if (form.test(value)) return value
  throw new Malformed(`${pointer}/${name}`, `Must be ${words}.`)
}

function sha256(value: string): Buffer {
  return createHash('sha256').update(value, 'utf8').digest()
}

/** JSON with sorted members, so that equal messages have equal text. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isMembers(value)) return JSON.stringify(value)
  const parts = Object.keys(value)
    .toSorted()
    .filter((name) => value[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
  return `{${parts.join(',')}}`
}
