import { readFileSync } from 'node:fs'
import test from 'ava'
import { everyStatement } from '../../support/storage/every-statement.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { heldClock } from '../../support/held-clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { memoryKms } from '../../../storage/platform/kms/memory.js'
import { type Kms, KmsUnavailable } from '../../../storage/platform/kms/kms.js'
import { masterKeys } from '../../../storage/platform/kms/master-keys.js'
import { partsOf, withStamp } from '../../../storage/platform/sealing/stamps.js'
import { createSealer, SealBroken } from '../../../storage/platform/sealing/seal.js'
import { SEALED_COLUMNS } from '../../../storage/platform/sealing/sealed-columns.js'
import {
  KeyCustodyRefused,
  requireFittingKms,
} from '../../../storage/platform/sealing/key-custody.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { resealAll } from '../../../storage/platform/sealing/reseal.js'
import { freshDatabase } from '../../support/storage/database.js'

const random = systemRandom(systemClock)
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()
const bytes = (words: string) => new Uint8Array(Buffer.from(words))

/** A kms in memory that can be stopped and rotated, and counts calls. */
function inMemoryKms() {
  const keys = [{ version: 1, bytes: random.bytes(32) }]
  let master = masterKeys(keys, random)
  let isDown = false
  const calls = { wrap: 0, unwrap: 0 }
  const answer = async <T>(operation: keyof typeof calls, work: () => T): Promise<T> => {
    if (isDown) throw new KmsUnavailable('down')
    calls[operation] += 1
    return work()
  }
  const kms: Kms = {
    wrap: (context, plaintext) => answer('wrap', () => master.wrap(context, plaintext)),
    unwrap: (context, wrapped) => answer('unwrap', () => master.unwrap(context, wrapped)),
    health: async () =>
      isDown ? { state: 'down', reason: 'down' } : { state: 'up', masterKeyIds: master.ids },
    close: async () => undefined,
  }
  return {
    kms,
    calls,
    setDown: (down: boolean) => {
      isDown = down
    },
    rotate: () => {
      keys.push({ version: keys.length + 1, bytes: random.bytes(32) })
      master = masterKeys(keys, random)
    },
    forgetFirst: () => {
      keys.shift()
      master = masterKeys(keys, random)
    },
  }
}

test('a sealed value opens in its own place and in no other', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const sealer = createSealer({ database, kms, random, clock: systemClock })
  const [tenant, other] = [random.uuid(), random.uuid()]
  const sealed = await sealer.seal(tenant, 'secret:1', bytes('words'))
  t.false(Buffer.from(sealed).includes('words'))
  t.is(text(await sealer.open(tenant, 'secret:1', sealed)), 'words')
  await t.throwsAsync(sealer.open(tenant, 'secret:2', sealed), { instanceOf: SealBroken })
  await t.throwsAsync(sealer.open(other, 'secret:1', sealed), { instanceOf: SealBroken })
  await sealer.seal(other, 'secret:1', bytes('theirs'))
  await t.throwsAsync(sealer.open(other, 'secret:1', sealed), { instanceOf: SealBroken })
})

test('a sealed value with any byte changed or cut does not open', async (t) => {
  const { database } = await freshDatabase(t)
  const sealer = createSealer({ database, kms: inMemoryKms().kms, random, clock: systemClock })
  const tenant = random.uuid()
  const sealed = await sealer.seal(tenant, 'c', bytes('words'))
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = sealed.slice()
    changed[at]! ^= 0x80
    await t.throwsAsync(sealer.open(tenant, 'c', changed), { instanceOf: SealBroken }, `byte ${at}`)
  }
  for (const length of [0, 1, 5, 32, sealed.length - 1]) {
    const cut = sealed.slice(0, length)
    await t.throwsAsync(sealer.open(tenant, 'c', cut), { instanceOf: SealBroken }, `${length}`)
  }
})

test('the same words sealed twice do not look the same, and nothing seals as something', async (t) => {
  const { database } = await freshDatabase(t)
  const sealer = createSealer({ database, kms: inMemoryKms().kms, random, clock: systemClock })
  const tenant = random.uuid()
  const first = await sealer.seal(tenant, 'c', bytes('words'))
  t.notDeepEqual(first, await sealer.seal(tenant, 'c', bytes('words')))
  const empty = await sealer.seal(tenant, 'c', new Uint8Array())
  t.is((await sealer.open(tenant, 'c', empty)).length, 0)
})

test('racing first uses by several processes agree on one data key', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const tenant = random.uuid()
  const sealers = Array.from({ length: 8 }, () =>
    createSealer({ database, kms, random, clock: systemClock }),
  )
  const sealed = await Promise.all(
    sealers.flatMap((sealer) => [
      sealer.seal(tenant, 'c', bytes('words')),
      sealer.seal(tenant, 'c', bytes('words')),
    ]),
  )
  const { rows } = await database.tenant(tenant, (tx) =>
    tx.query({ name: 'test.count', text: 'select version from data_keys' }),
  )
  t.is(rows.length, 1)
  const reader = createSealer({ database, kms, random, clock: systemClock })
  for (const each of sealed) t.is(text(await reader.open(tenant, 'c', each)), 'words')
})

test('a data key is unwrapped once for any number of uses', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms, calls } = inMemoryKms()
  const tenant = random.uuid()
  const sealed = await createSealer({ database, kms, random, clock: systemClock }).seal(
    tenant,
    'c',
    bytes('words'),
  )
  calls.unwrap = 0
  const sealer = createSealer({ database, kms, random, clock: systemClock })
  await Promise.all(Array.from({ length: 50 }, () => sealer.open(tenant, 'c', sealed)))
  t.is(calls.unwrap, 1)
})

test('without the kms what is in memory still opens and seals; what is not says so', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms, setDown } = inMemoryKms()
  const clock = heldClock(new Date())
  const [known, unknown] = [random.uuid(), random.uuid()]
  const sealer = createSealer({ database, kms, random, clock })
  const sealed = await sealer.seal(known, 'c', bytes('words'))
  setDown(true)
  t.is(text(await sealer.open(known, 'c', sealed)), 'words')
  t.is(text(await sealer.open(known, 'd', await sealer.seal(known, 'd', bytes('more')))), 'more')
  await t.throwsAsync(sealer.seal(unknown, 'c', bytes('words')), { instanceOf: KmsUnavailable })
  clock.advance(60 * 60_000)
  await t.throwsAsync(sealer.open(known, 'c', sealed), { instanceOf: KmsUnavailable })
  setDown(false)
  t.is(text(await sealer.open(known, 'c', sealed)), 'words')
})

test('after a rotation a new data key seals, in every process before long, and old ones open', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const clock = heldClock(new Date())
  const tenant = random.uuid()
  const here = createSealer({ database, kms, random, clock })
  const there = createSealer({ database, kms, random, clock })
  const old = await here.seal(tenant, 'c', bytes('old'))
  await there.open(tenant, 'c', old)
  await there.seal(tenant, 'c', bytes('old'))
  t.is(await here.rotate(tenant), 2)
  const renewed = await here.seal(tenant, 'c', bytes('new'))
  t.is(renewed[4], 2)
  t.is(text(await there.open(tenant, 'c', renewed)), 'new', 'a newer key is found when it is met')
  clock.advance(60_000)
  t.is((await there.seal(tenant, 'c', bytes('new')))[4], 2)
  t.is(text(await there.open(tenant, 'c', old)), 'old')
})

test('rewrapping brings every data key under the newest master key', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms, rotate, forgetFirst } = inMemoryKms()
  const sealer = createSealer({ database, kms, random, clock: systemClock })
  const tenants = Array.from({ length: 5 }, () => random.uuid())
  const sealed = await Promise.all(tenants.map((id) => sealer.seal(id, 'c', bytes(id))))
  t.is(await sealer.rewrap(), 0)
  rotate()
  t.is(await sealer.rewrap(), 5)
  forgetFirst()
  const reader = createSealer({ database, kms, random, clock: systemClock })
  for (const [index, id] of tenants.entries()) {
    t.is(text(await reader.open(id, 'c', sealed[index]!)), id)
  }
})

test('one tenant does not see the data key of another', async (t) => {
  const { database } = await freshDatabase(t)
  const sealer = createSealer({ database, kms: inMemoryKms().kms, random, clock: systemClock })
  await sealer.seal(random.uuid(), 'c', bytes('words'))
  const { rows } = await database.tenant(random.uuid(), (tx) =>
    tx.query({ name: 'test.all', text: 'select version from data_keys' }),
  )
  t.is(rows.length, 0)
})

test('keys that ended with their process do not open what they sealed: the next ones are refused', async (t) => {
  const { database } = await freshDatabase(t)
  const kms = memoryKms({ random })
  await t.notThrowsAsync(requireFittingKms(database, kms))
  const sealer = createSealer({ database, kms, random, clock: systemClock })
  await sealer.seal(random.uuid(), 'c', bytes('words'))
  await t.notThrowsAsync(requireFittingKms(database, kms))
  await t.throwsAsync(requireFittingKms(database, memoryKms({ random })), {
    instanceOf: KeyCustodyRefused,
    message: /this kms cannot unwrap/,
  })
})

test('a kms without the master key of this database is refused by the name of the key', async (t) => {
  const { database } = await freshDatabase(t)
  const right = inMemoryKms()
  await createSealer({ database, kms: right.kms, random, clock: systemClock }).seal(
    random.uuid(),
    'c',
    bytes('words'),
  )
  right.rotate()
  await t.notThrowsAsync(requireFittingKms(database, right.kms), 'rotated master keys fit')
  await t.throwsAsync(requireFittingKms(database, inMemoryKms().kms), {
    instanceOf: KeyCustodyRefused,
    message: /1 under 1-[0-9a-f]{16}/,
  })
  right.setDown(true)
  await t.throwsAsync(requireFittingKms(database, right.kms), { instanceOf: KmsUnavailable })
})

/** bytea columns with sealed values that expire within a day. */
const SHORT_LIVED = [
  'authorization_requests.answer',
  'form_answers.answer',
  'refresh_tokens.successor_answer',
  'upstream_sign_ins.sealed',
  'vault_connections.verifier_sealed',
  'vault_revocations.secret',
  'vault_revocations.token',
  'console_sessions.tokens_sealed',
  'console_sessions.pending_sealed',
]
/** bytea columns without sealed values: hashes, public keys, wrapped keys, answers. */
const UNSEALED =
  /_sha256$|^tenant_assets\.sha256$|hash$|registering_network$|^data_keys\.wrapped$|public_key$|^idempotency_keys\.|fingerprint$|^coordination|^passkeys\.|^delegation_approvals\.|credential_id$|^chain_logs\.log$|_stamp$/

test('every column of sealed values is known to a rotation', async (t) => {
  const schema = readFileSync(new URL('../../../../migrations/schema.sql', import.meta.url), 'utf8')
  const found = [...schema.matchAll(/^create table (\w+) \((.*?)^\)/gms)].flatMap(
    ([, table, body]) =>
      [...body!.matchAll(/^ {2}(\w+) bytea/gm)].map(([, column]) => `${table}.${column}`),
  )
  const known = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`)
  t.true(found.length > 20)
  t.deepEqual(
    found.filter((name) => !UNSEALED.test(name) && !SHORT_LIVED.includes(name)).toSorted(),
    known.toSorted(),
  )
})

test('an older sealed value of a row does not open after a rotation', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const clock = heldClock(new Date('2030-01-01T00:00:00Z'))
  const sealer = createSealer({ database, kms, random, clock })
  const other = createSealer({ database, kms, random, clock })
  const tenant = random.uuid()
  const old = await sealer.seal(tenant, 'secret:1', bytes('old'))
  const opens = (one = sealer) => one.open(tenant, 'secret:1', old)
  const hour = 60 * 60_000
  const reseal = () => resealAll({ database, sealer, clock, random, log: silentLogger })

  await sealer.rotate(tenant)
  // Not finished: a value may be under the old key.
  clock.advance(72 * hour)
  t.is(text(await opens(other)), 'old')
  await reseal()
  const fresh = await sealer.seal(tenant, 'secret:1', bytes('new'))
  // Values that no rotation seals again are in use for a day.
  clock.advance(47 * hour)
  t.is(text(await opens()), 'old')
  // A key in memory lasts for an hour.
  clock.advance(3 * hour)
  for (const one of [sealer, other]) {
    await t.throwsAsync(opens(one), { instanceOf: SealBroken })
    t.is(text(await one.open(tenant, 'secret:1', fresh)), 'new')
  }
  // An operator restores single tables of an older backup.
  await database.system((tx) =>
    tx.query({
      name: 'test.reopen',
      text: 'update data_key_rotations set finished_at = null',
      values: [],
    }),
  )
  t.is(text(await opens()), 'old')
})

/** Rewritten without a stamp: a header of the receiver, which it replaces as a whole. */
const UNSTAMPED = 'signal_streams.authorization_sealed'

/** What the row of a value has. */
const put = (old: Uint8Array, present: Uint8Array) =>
  withStamp(partsOf(present).stamp!, partsOf(old).sealed)

test('a value that is rewritten opens with its stamp only', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const sealer = createSealer({ database, kms, random, clock: systemClock })
  const tenant = random.uuid()
  const stamps = (isOn: boolean) =>
    database.system((tx) =>
      tx.query({
        name: `test.stamps_${isOn}`,
        text: `create or replace function svc_seals_with_stamps() returns boolean
               language sql immutable parallel safe as $$ select ${isOn} $$`,
        values: [],
      }),
    )
  for (const { context } of SEALED_COLUMNS) {
    const name = context('1')
    const [old, present] = [
      await sealer.seal(tenant, name, bytes('old')),
      await sealer.seal(tenant, name, bytes('new')),
    ]
    t.is(text(await sealer.open(tenant, name, old)), 'old')
    t.is(text(await sealer.open(tenant, name, present)), 'new')
    if (typeof name === 'string') continue
    for (const value of [put(old, present), put(present, old), partsOf(old).sealed])
      await t.throwsAsync(sealer.open(tenant, name, value), { instanceOf: SealBroken })
  }
  // Until the database is finished, older processes open every value.
  await stamps(false)
  const before = createSealer({ database, kms, random, clock: systemClock })
  const name = SEALED_COLUMNS[0]!.context('1')
  const plain = await before.seal(tenant, name, bytes('plain'))
  t.is(partsOf(plain).stamp, null)
  await stamps(true)
  t.is(text(await sealer.open(tenant, name, plain)), 'plain')
})

test('every write of a column that is rewritten writes its stamp', async (t) => {
  const statements = await everyStatement()
  for (const { table, column, context } of SEALED_COLUMNS) {
    // Up to the conditions of the statement.
    const sets = (name: string) => `update ${table}\\b(?:(?!\\bwhere\\b)[^;])*\\b${name} = [$e]`
    const writes = (name: string) =>
      new RegExp(`${sets(name)}|insert into ${table}\\b[^)]*\\b${name}\\b`)
    const rewritten = new RegExp(sets(column))
    for (const { text: words, name } of statements) {
      if (`${table}.${column}` === UNSTAMPED) continue
      if (typeof context('') === 'string') t.notRegex(words, rewritten, name)
      else if (writes(column).test(words)) t.regex(words, writes(`${column}_stamp`), name)
    }
  }
})

test('older keys open values while a rotation has some that it could not open', async (t) => {
  const { database } = await freshDatabase(t)
  const { kms } = inMemoryKms()
  const clock = heldClock(new Date('2030-01-01T00:00:00Z'))
  const sealer = createSealer({ database, kms, random, clock })
  const tenant = random.uuid()
  const old = await sealer.seal(tenant, 'secret:1', bytes('old'))
  await sealer.rotate(tenant)
  await database.system((tx) =>
    tx.query({
      name: 'test.unopened',
      text: 'update data_key_rotations set finished_at = $1, unopened = 1',
      values: [clock.now()],
    }),
  )
  clock.advance(100 * 60 * 60_000)
  t.is(text(await sealer.open(tenant, 'secret:1', old)), 'old')
})
