/** Fresh key pairs. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  type KeyObject,
  randomFillSync,
} from 'node:crypto'
import { promisify } from 'node:util'

const SPKI = { type: 'spki', format: 'der' } as const
const PKCS8 = { type: 'pkcs8', format: 'der' } as const
const ED25519_SEED_BYTES = 32
/** What stands before the seed in PKCS #8 (RFC 8410 section 7). */
const ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The private key of a seed. Newer versions of Node refuse a JWK whose `x` does not belong to the seed. */
export function ed25519KeyOf(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([ED25519_PREFIX, seed])
  const key = createPrivateKey({ key: der, ...PKCS8 })
  der.fill(0)
  return key
}

/**
 * A fresh private key, imported from its encoding. A generated `KeyObject` shares a lock with the
 * job that generated it, and Node 20 collects that job under the same lock: if the collection
 * happens while the key is exported as a JWK, the thread deadlocks.
 */
export function freshPrivateKey(kind: 'ed25519' | 'P-256'): KeyObject {
  if (kind === 'ed25519') {
    // Any 32 random bytes are a valid seed (RFC 8032 section 5.1.5).
    const seed = randomFillSync(Buffer.alloc(ED25519_SEED_BYTES))
    const key = ed25519KeyOf(seed)
    seed.fill(0)
    return key
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

/** A fresh RSA key of 2048 bits, imported for the same reason. A thread of the pool makes it: it takes a while. */
export async function freshRsaKey(): Promise<KeyObject> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
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
