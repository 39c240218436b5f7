/**
 * A software authenticator for dishonest behaviour: it signs for any origin and claims any counter and any flags.
 * WebAuthn Level 3 sections 6.1 and 6.5.
 */
import { createHash, randomBytes, sign } from 'node:crypto'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'

export type CreationOptions = { readonly challenge: string; readonly user: { readonly id: string } }
export type RequestOptions = { readonly challenge: string }

/** Claims of a response; absent members are true values. */
export type Claims = {
  readonly origin?: string
  readonly rpId?: string
  readonly counter?: number
  readonly userVerified?: boolean
  readonly userPresent?: boolean
  readonly userHandle?: string | null
  readonly type?: string
  readonly challenge?: string
  readonly crossOrigin?: boolean
}

export interface SoftAuthenticator {
  readonly credentialId: string
  create(options: CreationOptions, claims?: Claims): string
  get(options: RequestOptions, claims?: Claims): string
}

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest()

const UP = 0x01
const UV = 0x04
const BE = 0x08
const BS = 0x10
const AT = 0x40

export function softAuthenticator({
  origin,
  rpId = 'localhost',
  synced = false,
}: {
  readonly origin: string
  readonly rpId?: string
  /** The key is synced by a password manager. */
  readonly synced?: boolean
}): SoftAuthenticator {
  const id = randomBytes(32)
  const { privateKey, publicKey } = freshKeyPair('P-256')
  const { x, y } = publicKey.export({ format: 'jwk' })
  let handle: string | null = null
  let counter = 0

  const clientData = (type: string, challenge: string, claims: Claims) =>
    Buffer.from(
      JSON.stringify({
        type: claims.type ?? type,
        challenge: claims.challenge ?? challenge,
        origin: claims.origin ?? origin,
        crossOrigin: claims.crossOrigin ?? false,
      }),
    )
  function authenticatorData(claims: Claims, more = 0): Buffer {
    const verified = claims.userVerified === false ? 0 : UV
    const present = claims.userPresent === false ? 0 : UP
    const flags = present | verified | (synced ? BE | BS : 0) | more
    const counted = Buffer.alloc(4)
    counted.writeUInt32BE(claims.counter ?? counter)
    return Buffer.concat([sha256(claims.rpId ?? rpId), Buffer.of(flags), counted])
  }
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
  const credential = (response: object) =>
    JSON.stringify({
      id: text(id),
      rawId: text(id),
      type: 'public-key',
      clientExtensionResults: {},
      response,
    })

  return {
    credentialId: text(id),
    create({ challenge, user }, claims = {}) {
      handle = user.id
      const key = map([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x!, 'base64url')],
        [-3, Buffer.from(y!, 'base64url')],
      ])
      const length = Buffer.alloc(2)
      length.writeUInt16BE(id.length)
      const authData = Buffer.concat([
        authenticatorData(claims, AT),
        Buffer.alloc(16),
        length,
        id,
        key.bytes,
      ])
      const attestationObject = map([
        ['fmt', 'none'],
        ['attStmt', map([])],
        ['authData', authData],
      ])
      return credential({
        clientDataJSON: text(clientData('webauthn.create', challenge, claims)),
        attestationObject: text(attestationObject.bytes),
        transports: ['usb'],
      })
    },
    get({ challenge }, claims = {}) {
      counter += 1
      const data = clientData('webauthn.get', challenge, claims)
      const authData = authenticatorData(claims)
      const signature = sign('sha256', Buffer.concat([authData, sha256(data)]), privateKey)
      return credential({
        clientDataJSON: text(data),
        authenticatorData: text(authData),
        signature: text(signature),
        userHandle: claims.userHandle === undefined ? handle : claims.userHandle,
      })
    },
  }
}

/** The few kinds of CBOR (RFC 8949) that WebAuthn uses; a map is already encoded. */
class CborMap {
  readonly bytes: Buffer
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }
}
type Value = number | string | Buffer | CborMap

function map(entries: readonly (readonly [Value, Value])[]): CborMap {
  const parts = entries.flatMap(([key, value]) => [encode(key), encode(value)])
  return new CborMap(Buffer.concat([head(5, entries.length), ...parts]))
}

function encode(value: Value): Buffer {
  if (value instanceof CborMap) return value.bytes
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  const bytes = Buffer.from(value as string)
  return Buffer.concat([head(typeof value === 'string' ? 3 : 2, bytes.length), bytes])
}

function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.of((major << 5) | length)
  if (length < 256) return Buffer.of((major << 5) | 24, length)
  return Buffer.of((major << 5) | 25, length >> 8, length & 0xff)
}
