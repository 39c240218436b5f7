/** Proofs of possession by new keys, for tests. RFC 9449 section 4.2. */
import { exportJWK, SignJWT } from 'jose'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'

/** For one request, with more claims such as a nonce. */
export async function proofFor(
  htm: string,
  htu: string,
  claims: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const jwk = await exportJWK(publicKey)
  const iat = Math.floor(Date.now() / 1000)
  return new SignJWT({ htm, htu, iat, jti: crypto.randomUUID(), ...claims })
    .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
    .sign(privateKey)
}
