/** The stored key of an agent as a JWK (RFC 7517). */
import { ECDH } from 'node:crypto'

export type StoredAgentKey = {
  readonly algorithm: 'ed25519' | 'es256'
  /** Raw in hexadecimal: 32 bytes (ed25519), or 33 bytes of a compressed P-256 point (es256). */
  readonly publicKey: string
}

export function agentKeyJwk({ algorithm, publicKey }: StoredAgentKey): Record<string, string> {
  const raw = Buffer.from(publicKey, 'hex')
  if (algorithm === 'ed25519') return { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }
  const point = ECDH.convertKey(raw, 'prime256v1', undefined, undefined, 'uncompressed') as Buffer
  return {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
}
