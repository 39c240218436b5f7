/** Secrets while calls use them: shared by those side by side, wiped after the last. */
import test from 'ava'
import { createOpenings } from '../../../../actors/vault/egress/inject/unsealed-credential.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
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
  const openings = createOpenings(
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
  return { openings, given, row, pass: (ms: number) => void (nowMs += ms) }
}

test('calls side by side share one opening, which is wiped when the last ends', async (t) => {
  const { openings, given, row } = stage()
  const [one, two] = await Promise.all([
    openings.open(TENANT, row('a secret')),
    openings.open(TENANT, row('a secret')),
  ])
  t.is(one, two)
  t.is(given.length, 1)
  t.true(given[0]!.every((byte) => byte === 0))
  t.deepEqual(one!.injection.header, ['authorization', 'Bearer a secret'])
  const { needles } = one!
  one!.release()
  t.true(needles.list.some((needle) => needle.bytes.toString() === 'a secret'))
  two!.release()
  t.true(needles.list.every(({ bytes }) => bytes.every((byte) => byte === 0)))
  t.is(one!.injection.header, null)
  t.is(openings.size, 0)
})

test('a replaced secret and a later call are opened anew', async (t) => {
  const { openings, given, row, pass } = stage()
  const first = await openings.open(TENANT, row('before'))
  const replaced = await openings.open(TENANT, row('after'))
  t.deepEqual(replaced.injection.header, ['authorization', 'Bearer after'])
  t.deepEqual(first.injection.header, ['authorization', 'Bearer before'])
  pass(1_000)
  const later = await openings.open(TENANT, row('after'))
  t.not(later, replaced)
  t.is(given.length, 3)
  for (const each of [replaced, first, later]) each.release()
  t.is(openings.size, 0)
})

test('what does not open is not kept', async (t) => {
  const { openings, row } = stage()
  const tries = [openings.open(TENANT, row('')), openings.open(TENANT, row(''))]
  for (const each of tries) await t.throwsAsync(each, { message: 'does not open' })
  t.is(openings.size, 0)
  const opened = await openings.open(TENANT, row('opens'))
  opened.release()
  t.is(openings.size, 0)
})
