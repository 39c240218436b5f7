import test, { type ExecutionContext } from 'ava'
import * as jose from 'jose'
import { signingKeysActor } from '../../../../actors/oauth/signing-keys/actor.js'
import { SIGNING_KEYS_CHANNEL } from '../../../../actors/oauth/signing-keys/protocol.js'
import { ownPublicKey, verifyOwnJwt } from '../../../../actors/platform/jose/own-jwt.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { type HeldClock, heldClock } from '../../../support/held-clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { memoryKms } from '../../../../storage/platform/kms/memory.js'
import { type Kms, KmsUnavailable } from '../../../../storage/platform/kms/kms.js'
import { createSealer, SYSTEM_TENANT_ID } from '../../../../storage/platform/sealing/seal.js'
import type { OpenDatabase } from '../../../../storage/platform/database.js'
import { freshDatabase } from '../../../support/storage/database.js'

const random = systemRandom(systemClock)
const DAY_MS = 86_400_000
const claims = JSON.stringify({
  iss: 'https://id.example',
  sub: 'a',
  aud: 'b',
  iat: 1,
  exp: 4_000_000_000,
})

/** A kms that can be made unavailable. */
function switchedKms(): { kms: Kms; setDown: (down: boolean) => void } {
  const real = memoryKms({ random })
  let isDown = false
  const guard = async <T>(work: () => Promise<T>) => {
    if (isDown) throw new KmsUnavailable('the kms is away')
    return work()
  }
  return {
    kms: {
      wrap: (context, plaintext) => guard(() => real.wrap(context, plaintext)),
      unwrap: (context, wrapped) => guard(() => real.unwrap(context, wrapped)),
      health: async () => (isDown ? { state: 'down', reason: 'away' } : real.health()),
      close: real.close,
    },
    setDown: (down) => {
      isDown = down
    },
  }
}

type Process = { database: OpenDatabase; kms: Kms; clock: HeldClock }

/** The signing keys actor of one process, with messages copied as between threads. */
function keysOf(t: ExecutionContext, { database, kms, clock }: Process) {
  const sealer = createSealer({ database, kms, random, clock })
  const settings = { default_algorithm: 'ES256', key_rotation_days: 30 } as const
  const { ref, stop } = spawnInline(
    signingKeysActor,
    { database, sealer, kms, clock, random, settings },
    { cloneMessages: true, log: silentLogger },
  )
  t.teardown(stop)
  return ref
}
type Keys = ReturnType<typeof keysOf>

async function fresh(t: ExecutionContext) {
  const { database, superuserUrl } = await freshDatabase(t)
  const { kms, setDown } = switchedKms()
  const clock = heldClock(new Date('2030-01-01T00:00:00Z'))
  return { database, superuserUrl, kms, setDown, clock }
}

async function published(keys: Keys) {
  const outcome = await keys.keySet(null)
  if (outcome.tag !== 'key_set') throw new Error(outcome.tag)
  const { keys: list } = JSON.parse(Buffer.from(outcome.bytes).toString()) as jose.JSONWebKeySet
  return { ...outcome, list, kids: list.map(({ kid }) => kid) }
}

async function signed(keys: Keys, algorithm?: 'ES256' | 'EdDSA') {
  const outcome = await keys.sign({
    typ: 'at+jwt',
    claims,
    algorithm,
  })
  if (outcome.tag !== 'signed') throw new Error(outcome.tag)
  return outcome
}

test.serial(
  'a new service creates its keys, and jose verifies its tokens with the published set',
  async (t) => {
    const keys = keysOf(t, await fresh(t))
    t.is((await keys.sign({ typ: 'at+jwt', claims })).tag, 'keys_unavailable')
    t.deepEqual(await keys.maintain(null), {
      tag: 'maintained',
      created: 4,
      promoted: 0,
      removed: 0,
    })
    const { list } = await published(keys)
    t.is(list.length, 4)
    const keySet = jose.createLocalJWKSet({ keys: list })
    for (const [algorithm, used] of [
      [undefined, 'ES256'],
      ['ES256', 'ES256'],
      ['EdDSA', 'EdDSA'],
    ] as const) {
      const { token, kid } = await signed(keys, algorithm)
      const { payload, protectedHeader } = await jose.jwtVerify(token, keySet, { typ: 'at+jwt' })
      t.deepEqual(protectedHeader, { alg: used, typ: 'at+jwt', kid })
      t.deepEqual(payload, JSON.parse(claims))
    }
  },
)

test.serial(
  'every published key has exactly the documented members and its thumbprint as kid',
  async (t) => {
    const keys = keysOf(t, await fresh(t))
    await keys.maintain(null)
    const { list, etag, maxAgeSecs } = await published(keys)
    for (const jwk of list) {
      const members =
        jwk.kty === 'EC'
          ? ['kty', 'crv', 'x', 'y', 'use', 'alg', 'kid']
          : ['kty', 'crv', 'x', 'use', 'alg', 'kid']
      t.deepEqual(Object.keys(jwk), members)
      t.is(jwk.alg, jwk.kty === 'EC' ? 'ES256' : 'EdDSA')
      t.is(jwk.use, 'sig')
      t.is(jwk.kid, await jose.calculateJwkThumbprint(jwk))
    }
    t.regex(etag, /^"[A-Za-z0-9_-]{22}"$/)
    t.is(maxAgeSecs, 300)
    t.is((await published(keys)).etag, etag)
  },
)

test.serial(
  'verificationKey returns the key of a token, and unknown for made-up kids',
  async (t) => {
    const keys = keysOf(t, await fresh(t))
    await keys.maintain(null)
    const { token, kid } = await signed(keys, 'EdDSA')
    const found = await keys.verificationKey({ kid })
    if (found.tag !== 'found') throw new Error(found.tag)
    t.is(found.algorithm, 'EdDSA')
    const key = { algorithm: found.algorithm, publicKey: ownPublicKey(found.jwk) }
    t.is((await verifyOwnJwt(token, 'at+jwt', async () => key))?.kid, kid)
    for (const made of [
      '',
      '../../etc/passwd',
      "' or 1=1 --",
      '\0',
      'x'.repeat(10_000),
      '__proto__',
    ]) {
      t.is((await keys.verificationKey({ kid: made })).tag, 'unknown')
    }
  },
)

test.serial('private keys are sealed in the database, and deleted for retired keys', async (t) => {
  const process = await fresh(t)
  const keys = keysOf(t, process)
  await keys.maintain(null)
  process.clock.advance(31 * DAY_MS)
  await keys.maintain(null)
  const { rows } = await process.database.tenant(SYSTEM_TENANT_ID, (tx) =>
    tx.query<{ state: string; sealed: Uint8Array | null }>({
      name: 'test.private',
      text: 'select state, private_sealed as sealed from signing_keys',
    }),
  )
  t.is(rows.length, 6)
  for (const { state, sealed } of rows) {
    if (state === 'retired') t.is(sealed, null)
    // PKCS #8 begins with a sequence and its version.
    else t.true(sealed !== null && !Buffer.from(sealed).includes(Buffer.from('020100', 'hex')))
  }
})

test.serial(
  'keys rotate by age with overlap, and a token outlives the key that signed it',
  async (t) => {
    const process = await fresh(t)
    const keys = keysOf(t, process)
    await keys.maintain(null)
    const first = await signed(keys)
    const early = await published(keys)
    process.clock.advance(30 * DAY_MS - 1_000)
    t.like(await keys.maintain(null), { created: 0, promoted: 0 })
    const last = await signed(keys)
    t.is(last.kid, first.kid)
    process.clock.advance(1_000)
    t.like(await keys.maintain(null), { created: 2, promoted: 2, removed: 0 })
    const second = await signed(keys)
    t.not(second.kid, first.kid)
    t.true(early.kids.includes(second.kid), 'the new key was published before its first use')
    const overlap = await published(keys)
    t.is(overlap.list.length, 6)
    t.true(overlap.kids.includes(first.kid))
    t.not(overlap.etag, early.etag)
    await t.notThrowsAsync(
      jose.jwtVerify(last.token, jose.createLocalJWKSet({ keys: overlap.list })),
      'the last token of the old key still verifies',
    )
    process.clock.advance(DAY_MS)
    t.true((await published(keys)).kids.includes(first.kid), 'a day later it may be needed still')
    process.clock.advance(15 * 60_000)
    t.false((await published(keys)).kids.includes(first.kid))
    process.clock.advance(365 * DAY_MS)
    t.like(await keys.maintain(null), { removed: 2 })
    t.is((await keys.verificationKey({ kid: first.kid })).tag, 'unknown')
  },
)

test.serial('processes that start and rotate concurrently agree on the keys', async (t) => {
  const process = await fresh(t)
  const all = Array.from({ length: 6 }, () => keysOf(t, process))
  const made = await Promise.all(all.map((keys) => keys.maintain(null)))
  const created = made.map((each) => (each.tag === 'maintained' ? each.created : -1))
  t.deepEqual(created.toSorted(), [0, 0, 0, 0, 0, 4])
  process.clock.advance(31 * DAY_MS)
  const rotated = await Promise.all(all.map((keys) => keys.maintain(null)))
  const promoted = rotated.map((each) => (each.tag === 'maintained' ? each.promoted : -1))
  t.deepEqual(promoted.toSorted(), [0, 0, 0, 0, 0, 2])
  const sets = await Promise.all(all.map(published))
  t.is(new Set(sets.map(({ etag }) => etag)).size, 1)
  t.is(new Set(await Promise.all(all.map(async (keys) => (await signed(keys)).kid))).size, 1)
})

test.serial('of concurrent rotations one succeeds, the others are too early', async (t) => {
  const process = await fresh(t)
  const all = Array.from({ length: 5 }, () => keysOf(t, process))
  await all[0]!.maintain(null)
  process.clock.advance(700_000)
  const outcomes = await Promise.all(
    all.map((keys) => keys.rotateSigningKeys({ compromised: false })),
  )
  const tags = outcomes.map(({ tag }) => tag).toSorted()
  t.deepEqual(tags, ['rotated', ...Array.from({ length: 4 }, () => 'rotated_too_recently')])
})

test.serial(
  'a rotation keeps existing tokens valid, a compromised key invalidates them',
  async (t) => {
    const process = await fresh(t)
    const keys = keysOf(t, process)
    await keys.maintain(null)
    const first = await signed(keys)
    t.like(await keys.rotateSigningKeys({ compromised: false }), { tag: 'rotated_too_recently' })
    process.clock.advance(600_000)
    const rotated = await keys.rotateSigningKeys({ compromised: false, algorithm: 'ES256' })
    t.true(rotated.tag === 'rotated' && rotated.current.length === 2)
    const second = await signed(keys)
    t.not(second.kid, first.kid)
    t.true((await published(keys)).kids.includes(first.kid))
    t.is((await keys.rotateSigningKeys({ compromised: true, algorithm: 'ES256' })).tag, 'rotated')
    const { kids } = await published(keys)
    t.false(kids.includes(second.kid), 'the compromised key is gone immediately')
    t.not((await signed(keys)).kid, second.kid)
  },
)

test.serial(
  'another process learns of a rotation by notification, or by its own read after a while',
  async (t) => {
    const process = await fresh(t)
    const [here, there] = [keysOf(t, process), keysOf(t, process)]
    await here.maintain(null)
    const before = await signed(there)
    let told = 0
    const unlisten = await process.database.listener.listen(SIGNING_KEYS_CHANNEL, {
      notified: () => {
        told += 1
        there.send('changed', null)
      },
    })
    t.teardown(async () => unlisten())
    process.clock.advance(601_000)
    await here.rotateSigningKeys({ compromised: false })
    await eventually(async () => (await signed(there)).kid !== before.kid)
    await eventually(async () => told > 0)
    t.true(told > 0)
  },
)

test.serial('without a notification the limit of 30 s applies', async (t) => {
  const process = await fresh(t)
  const [here, there] = [keysOf(t, process), keysOf(t, process)]
  await here.maintain(null)
  process.clock.advance(601_000)
  const before = await signed(there)
  await here.rotateSigningKeys({ compromised: false })
  process.clock.advance(29_000)
  t.is((await signed(there)).kid, before.kid, 'what was seen 29 s ago is not looked at again')
  process.clock.advance(2_000)
  await eventually(async () => (await signed(there)).kid !== before.kid)
})

test.serial('without the kms loaded keys still sign, and the state reports it', async (t) => {
  const process = await fresh(t)
  const keys = keysOf(t, process)
  await keys.maintain(null)
  t.deepEqual(await keys.state(null), {
    tag: 'keys_state',
    signing: true,
    kms: 'up',
    reason: null,
  })
  process.setDown(true)
  process.clock.advance(2 * 60 * 60_000)
  t.is((await signed(keys)).tag, 'signed')
  t.is((await signed(keys, 'EdDSA')).tag, 'signed')
  t.deepEqual(await keys.state(null), {
    tag: 'keys_state',
    signing: true,
    kms: 'down',
    reason: 'away',
  })
  t.is((await keys.rotateSigningKeys({ compromised: false })).tag, 'keys_unavailable')
})

test.serial(
  'a process that starts without the kms publishes and verifies, and signs when the kms is back',
  async (t) => {
    const process = await fresh(t)
    await keysOf(t, process).maintain(null)
    process.setDown(true)
    const keys = keysOf(t, process)
    t.is((await keys.sign({ typ: 'at+jwt', claims })).tag, 'keys_unavailable')
    const { kids } = await published(keys)
    t.is(kids.length, 4)
    t.is((await keys.verificationKey({ kid: kids[0]! })).tag, 'found')
    t.like(await keys.state(null), {
      signing: false,
      kms: 'down',
      reason: 'the kms is away',
    })
    process.setDown(false)
    process.clock.advance(1_000)
    t.is((await signed(keys)).tag, 'signed')
    t.like(await keys.state(null), { signing: true, kms: 'up', reason: null })
  },
)

test.serial('without the database a process signs for 300 s and still publishes', async (t) => {
  const process = await fresh(t)
  const isCut = { now: false }
  const database: OpenDatabase = {
    ...process.database,
    listener: process.database.listener,
    tenant: (id, work, options) =>
      isCut.now ? Promise.reject(new Error('cut off')) : process.database.tenant(id, work, options),
  }
  const keys = keysOf(t, { ...process, database })
  await keys.maintain(null)
  isCut.now = true
  process.clock.advance(299_000)
  t.is((await signed(keys)).tag, 'signed')
  process.clock.advance(2_000)
  t.is((await keys.sign({ typ: 'at+jwt', claims })).tag, 'keys_unavailable')
  process.clock.advance(DAY_MS)
  t.is((await published(keys)).kids.length, 4)
  isCut.now = false
  process.clock.advance(1_000)
  t.is((await signed(keys)).tag, 'signed')
})

test.serial('a private key that was moved to another row does not open', async (t) => {
  const process = await fresh(t)
  await keysOf(t, process).maintain(null)
  await process.database.tenant(SYSTEM_TENANT_ID, (tx) =>
    tx.query({
      name: 'test.swap',
      text: `update signing_keys a set private_sealed = b.private_sealed from signing_keys b
             where a.algorithm = b.algorithm and a.kid <> b.kid`,
    }),
  )
  const keys = keysOf(t, process)
  t.is((await keys.sign({ typ: 'at+jwt', claims })).tag, 'keys_unavailable')
  t.like(await keys.state(null), { signing: false })
})

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 15_000
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about')
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
}
