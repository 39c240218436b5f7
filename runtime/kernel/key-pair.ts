/** Fresh key pairs. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'

const SPKI = { type: 'spki', format: 'der' } as const
const PKCS8 = { type: 'pkcs8', format: 'der' } as const

/**
 * A fresh private key, read back from its encoding. A key as it was generated shares a lock with the
 * job that generated it, and Node 20 collects that job under the same lock: where the collection comes
 * while the key is exported as a JWK, the thread waits for itself for good.
 */
export function freshPrivateKey(kind: 'ed25519' | 'P-256'): KeyObject {
  if (kind === 'ed25519') {
    const pair = generateKeyPairSync('ed25519', {
      publicKeyEncoding: SPKI,
      privateKeyEncoding: PKCS8,
    })
    // Both end in the 32 bytes of the key (RFC 8410), which are read much faster than their encoding.
    const [x, d] = [pair.publicKey, pair.privateKey].map((der) =>
      der.subarray(-32).toString('base64url'),
    )
    pair.privateKey.fill(0)
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: x!, d: d! }
    return createPrivateKey({ key: jwk, format: 'jwk' })
  }
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: SPKI,
    privateKeyEncoding: PKCS8,
  })
  const key = createPrivateKey({ key: privateKey, ...PKCS8 })
  privateKey.fill(0)
  return key
}
