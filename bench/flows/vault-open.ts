/**
 * Opening and sealing 1 KiB under a tenant's cached data key, compared with bare AES-256-GCM with
 * the same associated data.
 */
import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto'
import { systemClock } from '../../runtime/kernel/clock.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { memoryKms } from '../../storage/platform/kms/memory.js'
import { createSealer } from '../../storage/platform/sealing/seal.js'
import type { Rows, Statement, Transaction } from '../../storage/platform/sql.js'
import { credentialSecretContext } from '../../storage/vault/vault-credentials.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const BYTES = 1024
const random = systemRandom(systemClock)
const tenantId = random.uuid()
const context = credentialSecretContext(random.uuid())
const secret = new Uint8Array(randomBytes(BYTES))

/** Has no rows: each data key is new, and is cached from its first use on. */
const none: Transaction = {
  tenantId: null,
  query: async <Row>({ name }: Statement): Promise<Rows<Row>> => ({
    rows: [],
    rowCount: name === 'data_key.insert' ? 1 : 0,
  }),
  atCommit: () => undefined,
  afterCommit: () => undefined,
  forget: () => undefined,
}
const database = {
  tenant: async <T>(_: string, work: (tx: Transaction) => Promise<T> | T) => work(none),
  system: async <T>(work: (tx: Transaction) => Promise<T> | T) => work(none),
  together: async () => [],
  among: async () => [],
  ping: async () => undefined,
  close: async () => undefined,
}
const kms = memoryKms({ random })
const sealer = createSealer({ database, kms, random, clock: systemClock })
const sealed = await sealer.seal(tenantId, context, secret)

const key = createSecretKey(randomBytes(32))
const nonce = randomBytes(12)
const associated = Buffer.from(`${tenantId}\0${context}`)
const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated)
const body = Buffer.concat([cipher.update(secret), cipher.final()])
const tag = cipher.getAuthTag()

function bareOpen(): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce)
  decipher.setAAD(associated).setAuthTag(tag)
  const plaintext = decipher.update(body)
  decipher.final()
  return plaintext
}
function bareSeal(): Buffer {
  const one = createCipheriv('aes-256-gcm', key, randomBytes(12)).setAAD(associated)
  const out = one.update(secret)
  one.final()
  return Buffer.concat([out, one.getAuthTag()])
}

await publish(
  await compare({
    name: 'opening a sealed secret of 1 KiB',
    reference: { name: 'AES-256-GCM, bare loop', run: (ms) => repeat(ms, bareOpen) },
    contenders: [
      {
        name: 'sealer, data key in memory',
        target: 0.6,
        run: (ms) => saturate(ms, 64, () => sealer.open(tenantId, context, sealed)),
      },
    ],
  }),
)
await publish(
  await compare({
    name: 'sealing a secret of 1 KiB',
    reference: { name: 'AES-256-GCM, bare loop', run: (ms) => repeat(ms, bareSeal) },
    contenders: [
      {
        name: 'sealer, data key in memory',
        run: (ms) => saturate(ms, 64, () => sealer.seal(tenantId, context, secret)),
      },
    ],
  }),
)
