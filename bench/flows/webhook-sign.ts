/** Target 16: webhook MACs through the signer, compared with a bare HMAC with a cached key. */
import { createHmac, randomBytes } from 'node:crypto'
import { deriveKey, suiteMac } from '../../actors/domain/webhooks/signature.js'
import { sign, signingKeysOf } from '../../actors/webhooks/signer/signing.js'
import { localSigner, UNSEALED } from '../../runtime/cli/webhooks/local-signer.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const payload = new Uint8Array(randomBytes(2048))
const secrets = Array.from({ length: 100 }, () => `whsec_${randomBytes(32).toString('base64')}`)
/** Attempts at one receiver. */
const IN_FLIGHT = 4
let count = 0
const signer = localSigner()
const keys = secrets.map(signingKeysOf)
const sealed = secrets.map((secret) => Buffer.from(secret))
const delivery = {
  timestampSecs: 1_767_225_600,
  maxAgeSecs: 300,
  deliveryId: '7b1c3b52-0000-4000-8000-000000000001',
  eventType: 'webhook.test',
  payload,
}
const fields = {
  timestamp: '1767225600',
  maxAge: '300',
  deliveryId: '7b1c3b52-0000-4000-8000-000000000001',
  eventType: 'webhook.test',
}

const key = deriveKey(secrets[0]!)

await publish(
  await compare({
    name: 'webhook signatures over 2 KiB',
    reference: {
      name: 'HMAC with a cached key, bare loop',
      run: (ms) => repeat(ms, () => createHmac('sha256', key).update(payload).digest('hex')),
    },
    contenders: [
      {
        name: 'our suite: the MAC alone',
        run: (ms) => repeat(ms, () => suiteMac(key, fields, payload).digest('hex')),
      },
      {
        name: 'signature with keys at hand, per MAC (two a delivery)',
        run: (ms) => {
          const { operations } = repeat(ms, () => sign(delivery, keys[count++ % keys.length]!))
          return { operations: operations * 2 }
        },
      },
      {
        name: 'signer, per MAC (two a delivery)',
        target: 0.6,
        run: async (ms) => {
          const { operations } = await saturate(ms, IN_FLIGHT, () => {
            const secret = sealed[count++ % sealed.length]!
            return signer.signDelivery({ ...UNSEALED, ...delivery, secret, previousSecret: null })
          })
          return { operations: operations * 2 }
        },
      },
      {
        name: 'HKDF for every delivery, no cache',
        run: (ms) =>
          repeat(ms, () => suiteMac(deriveKey(secrets[0]!), fields, payload).digest('hex')),
      },
    ],
  }),
)
