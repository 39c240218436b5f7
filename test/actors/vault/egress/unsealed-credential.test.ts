/** Unsealed secrets: shared by concurrent calls, wiped after the last one. */
import test from 'ava'
import { createCredentialCache } from '../../../../actors/vault/egress/inject/unsealed-credential.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { until } from '../../../support/service/watch.js'
import type { SecretCredentialRow } from '../../../../storage/vault/vault-credentials.js'

const TENANT = '01890000-0000-7000-8000-000000000001'

function stage() {
  let nowMs = 0
  const given: Uint8Array[] = []
  const sealer: Sealer = {
    seal: async (_tenant, _context, plain) => plain,
    async open(_tenant, _context, sealed) {
      if (sealed.length === 0) throw new Error('does not open')
      const secret = new Uint8Array(sealed)
      given.push(secret)
      return secret
    },
  }
  const credentialCache = createCredentialCache(
    sealer,
    { ...systemClock, monotonicMs: () => nowMs },
    { get: async () => ({ tag: 'gone' }) },
  )
  const row = (secret: string, id = 'one') =>
    ({
      id,
      authScheme: 'bearer',
      secret: Buffer.from(secret),
      tokenOf: null,
    }) as unknown as SecretCredentialRow
  return { credentialCache, given, row, pass: (ms: number) => void (nowMs += ms) }
}

test('calls of one second share an unsealed credential, which is wiped then', async (t) => {
  const { credentialCache, given, row } = stage()
  const [one, two] = await Promise.all([
    credentialCache.unseal(TENANT, row('a secret')),
    credentialCache.unseal(TENANT, row('a secret')),
  ])
  t.is(one, two)
  t.is(given.length, 1)
  t.true(given[0]!.every((byte) => byte === 0))
  t.deepEqual(one!.injection.header, ['authorization', 'Bearer a secret'])
  const { encodings } = one!
  one!.release()
  t.true(encodings.list.some((encoding) => encoding.bytes.toString() === 'a secret'))
  two!.release()
  const joined = await credentialCache.unseal(TENANT, row('a secret'))
  t.is(joined, one!)
  joined.release()
  await until('the secret is wiped', () => credentialCache.size === 0)
  t.true(encodings.list.every(({ bytes }) => bytes.every((byte) => byte === 0)))
  t.is(one!.injection.header, null)
})

test('a change wipes a secret without calls immediately, and others when their last call ends', async (t) => {
  const { credentialCache, row } = stage()
  const idle = await credentialCache.unseal(TENANT, row('idle'))
  const { encodings } = idle
  idle.release()
  const used = await credentialCache.unseal(TENANT, row('used', 'two'))
  credentialCache.forget('another tenant')
  t.is(credentialCache.size, 2)
  credentialCache.forget(TENANT)
  t.is(credentialCache.size, 1)
  t.true(encodings.list.every(({ bytes }) => bytes.every((byte) => byte === 0)))
  t.deepEqual(used.injection.header, ['authorization', 'Bearer used'])
  t.not(await credentialCache.unseal(TENANT, row('used', 'two')), used)
  used.release()
  t.is(used.injection.header, null)
  t.is(credentialCache.size, 1)
})

test('a rotated secret and a later call are unsealed again', async (t) => {
  const { credentialCache, given, row, pass } = stage()
  const first = await credentialCache.unseal(TENANT, row('before'))
  const replaced = await credentialCache.unseal(TENANT, row('after'))
  t.deepEqual(replaced.injection.header, ['authorization', 'Bearer after'])
  t.deepEqual(first.injection.header, ['authorization', 'Bearer before'])
  pass(1_000)
  const later = await credentialCache.unseal(TENANT, row('after'))
  t.not(later, replaced)
  t.is(given.length, 3)
  first.release()
  replaced.release()
  t.is(credentialCache.size, 1, 'only the latest is kept')
  later.release()
  await until('the secret is wiped', () => credentialCache.size === 0)
})

test('a failed unsealing is not cached', async (t) => {
  const { credentialCache, row } = stage()
  const tries = [credentialCache.unseal(TENANT, row('')), credentialCache.unseal(TENANT, row(''))]
  for (const each of tries) await t.throwsAsync(Promise.resolve(each), { message: 'does not open' })
  t.is(credentialCache.size, 0)
  const credential = await credentialCache.unseal(TENANT, row('opens'))
  t.is(credentialCache.size, 1)
  credential.release()
})

test('an unknown scheme sends nothing, and the secret is wiped', async (t) => {
  const { credentialCache, given, row } = stage()
  const unknown = { ...row('a secret'), authScheme: 'digest' }
  await t.throwsAsync(async () => credentialCache.unseal(TENANT, unknown), { message: /digest/ })
  t.true(given[0]!.every((byte) => byte === 0))
  t.is(credentialCache.size, 0)
})
