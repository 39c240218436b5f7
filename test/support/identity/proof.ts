/** DPoP proofs by new keys, for tests (RFC 9449 section 4.2). */
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'

export type ProofKey = {
  /** `cnf.jkt` of a token bound to the key. */
  readonly jkt: string
  /** A proof for one request, with additional claims such as a nonce. */
  proof(htm: string, htu: string, claims?: Readonly<Record<string, unknown>>): Promise<string>
}

export async function proofKey(): Promise<ProofKey> {
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const jwk = await exportJWK(publicKey)
  return {
    jkt: await calculateJwkThumbprint(jwk),
    proof(htm, htu, claims = {}) {
      const iat = Math.floor(Date.now() / 1000)
      return new SignJWT({ htm, htu, iat, jti: crypto.randomUUID(), ...claims })
        .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
        .sign(privateKey)
    },
  }
}

/** A proof by a new key. */
export async function proofFor(
  htm: string,
  htu: string,
  claims: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return (await proofKey()).proof(htm, htu, claims)
}
