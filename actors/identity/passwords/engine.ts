/**
 * Two argon2 engines behind one interface. @node-rs/argon2 hashes synchronously on the calling thread, which keeps the
 * libuv pool free. If its binary does not load, npm argon2 does the same work on the libuv pool.
 */
import type { Argon2Cost } from './phc.js'

const HASH_BYTES = 32

interface Argon2Engine {
  readonly name: '@node-rs/argon2' | 'argon2'
  hash(password: Uint8Array, salt: Uint8Array, cost: Argon2Cost): Promise<string>
  verify(phc: string, password: Uint8Array): Promise<boolean>
}

type EngineLoader = () => Promise<Argon2Engine>

/** The first engine that loads. @throws when neither does. */
export async function loadEngine(
  preferred: EngineLoader = loadNodeRs,
  other: EngineLoader = loadNpm,
): Promise<Argon2Engine> {
  try {
    return await preferred()
  } catch {
    return await other()
  }
}

export async function loadNodeRs(): Promise<Argon2Engine> {
  const { hashSync, verifySync } = await import('@node-rs/argon2')
  return {
    name: '@node-rs/argon2',
    hash: async (password, salt, cost) => {
      const { memoryKib: memoryCost, iterations: timeCost, parallelism } = cost
      // Algorithm 2 is argon2id. The package's const enum does not exist at run time.
      return hashSync(password, {
        algorithm: 2,
        memoryCost,
        timeCost,
        parallelism,
        salt,
        outputLen: HASH_BYTES,
      })
    },
    verify: async (phc, password) => verifySync(phc, password),
  }
}

export async function loadNpm(): Promise<Argon2Engine> {
  const { argon2id, hash, verify } = await import('argon2')
  return {
    name: 'argon2',
    hash: (password, salt, cost) => {
      const { memoryKib: memoryCost, iterations: timeCost, parallelism } = cost
      return hash(Buffer.from(password.buffer, password.byteOffset, password.byteLength), {
        type: argon2id,
        memoryCost,
        timeCost,
        parallelism,
        salt: Buffer.from(salt),
        hashLength: HASH_BYTES,
      })
    },
    verify: (phc, password) =>
      verify(phc, Buffer.from(password.buffer, password.byteOffset, password.byteLength)),
  }
}
