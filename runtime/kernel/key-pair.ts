/** Fresh key pairs. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

const SPKI = { type: 'spki', format: 'der' } as const
const PKCS8 = { type: 'pkcs8', format: 'der' } as const

/**
 * A fresh private key, imported from its encoding. A generated `KeyObject` shares a lock with the
 * job that generated it, and Node 20 collects that job under the same lock: if the collection
 * happens while the key is exported as a JWK, the thread deadlocks.
 */
export function freshPrivateKey(kind: 'ed25519' | 'P-256'): KeyObject {
  if (kind === 'ed25519') {
    // Any 32 random bytes are a valid seed (RFC 8032 section 5.1.5). A private JWK must have an `x`
    // member. Node does not read it but derives it from `d`.
    const seed = randomBytes(32)
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: '', d: seed.toString('base64url') }
    seed.fill(0)
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

/** Both halves of a fresh key. */
export function freshKeyPair(kind: 'ed25519' | 'P-256'): {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
} {
  const privateKey = freshPrivateKey(kind)
  return { privateKey, publicKey: createPublicKey(privateKey) }
}
