/** ES256 signatures, and their second spelling: (r, s) and (r, n - s) verify alike (FIPS 186-5 section 6.4). */
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Json } from '../api.js'

/** The order of the group of P-256. */
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

export type EcKey = { readonly jwk: Json; readonly privateKey: KeyObject }

export function ecJwk(): EcKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' })
  return {
    jwk: { kty: kty!, crv: crv!, x: x!, y: y!, alg: 'ES256', use: 'sig' },
    privateKey: createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' })),
  }
}

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWT of the claims. */
export function signed({ privateKey }: EcKey, claims: Json): string {
  const input = `${encoded({ alg: 'ES256' })}.${encoded(claims)}`
  const signature = sign('sha256', Buffer.from(input), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${input}.${signature.toString('base64url')}`
}

/** The same JWT with the other spelling of its signature. */
export function signatureTwin(jwt: string): string {
  const at = jwt.lastIndexOf('.')
  const raw = Buffer.from(jwt.slice(at + 1), 'base64url')
  const s = BigInt(`0x${raw.subarray(32).toString('hex')}`)
  const twin = Buffer.from((N - s).toString(16).padStart(64, '0'), 'hex')
  return `${jwt.slice(0, at)}.${Buffer.concat([raw.subarray(0, 32), twin]).toString('base64url')}`
}
