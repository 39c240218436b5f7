import test from 'ava'
import {
  allocateStatus,
  claimSigning,
  findStatusList,
  invalidIndices,
  removeEndedStatusLists,
  invalidateStatusEntries,
  type StatusIndex,
  storeStatusListToken,
} from '../../../storage/oauth/status-lists.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { identityFixture } from '../../support/identity/identity.js'
import { sql } from '../../support/storage/sql.js'

const fixture = await identityFixture()
test.after.always(() => fixture.close())
const { database, controlPlane } = fixture
const random = systemRandom(systemClock)
const now = new Date()
const expiresAt = new Date(now.getTime() + 3_600_000)

const allocate = (issuer: string, ref: string = crypto.randomUUID()): Promise<StatusIndex> =>
  database.tenant(controlPlane.id, (tx) =>
    allocateStatus(tx, random, {
      tenantId: controlPlane.id,
      purpose: 'credential',
      issuer,
      ref,
      now,
      expiresAt,
    }),
  )

test('concurrent allocations get one list and different indices', async (t) => {
  const issuer = 'https://race.example'
  const places = await Promise.all(Array.from({ length: 60 }, () => allocate(issuer)))
  t.is(new Set(places.map(({ listId }) => listId)).size, 1)
  t.is(new Set(places.map(({ idx }) => idx)).size, 60)
  t.true(places.every(({ idx }) => idx >= 0 && idx < 2 ** 17))
  const sorted = places.map(({ idx }) => idx).toSorted((a, b) => a - b)
  t.true(sorted.at(-1)! - sorted[0]! > 1000, 'indices are not consecutive')
})

test('an index is never allocated twice', async (t) => {
  const { listId, idx } = await allocate('https://twice.example')
  const error = await t.throwsAsync(
    sql(
      database,
      `insert into status_entries (tenant_id, list_id, idx, ref, expires_at)
       values ('${controlPlane.id}', '${listId}', ${idx}, 'other', now())`,
    ),
  )
  t.is((error as { code?: string }).code, '23505')
})

test('a list is closed when four fifths of it are used', async (t) => {
  const issuer = 'https://full.example'
  const { listId } = await allocate(issuer)
  const before = Math.floor(2 ** 17 * 0.8)
  await sql(
    database,
    `insert into status_entries (tenant_id, list_id, idx, ref, expires_at)
     select '${controlPlane.id}', '${listId}', i, 'filler', now() from generate_series(0, ${before}) i
     on conflict do nothing`,
  )
  const later = []
  for (let each = 0; each < 12; each += 1) later.push(await allocate(issuer))
  t.true(later.some((place) => place.listId !== listId))
  t.not(later.at(-1)!.listId, listId)
  const inFull = later.filter((place) => place.listId === listId)
  t.true(inFull.every(({ idx }) => idx > before))

  const removed = await database.system((tx) =>
    removeEndedStatusLists(tx, new Date(Date.now() + 10), 10),
  )
  t.is(removed, 0, 'a token of the list has not expired')
  t.is(await database.system((tx) => removeEndedStatusLists(tx, expiresAt, 10)), 1)
})

test('entries become invalid once, by what they refer to, in their tenant', async (t) => {
  const issuer = 'https://invalid.example'
  const ref = crypto.randomUUID()
  const places = [await allocate(issuer, ref), await allocate(issuer, ref), await allocate(issuer)]
  const { listId } = places[0]!
  const change = { tenantId: controlPlane.id, refs: [ref], now }
  const other = crypto.randomUUID()
  t.is(
    await database.tenant(other, (tx) =>
      invalidateStatusEntries(tx, { ...change, tenantId: other }),
    ),
    0,
  )
  t.is(await database.tenant(other, (tx) => invalidateStatusEntries(tx, change)), 0)
  t.is(await database.tenant(controlPlane.id, (tx) => invalidateStatusEntries(tx, change)), 2)
  t.is(await database.tenant(controlPlane.id, (tx) => invalidateStatusEntries(tx, change)), 0)
  const list = await database.system((tx) => findStatusList(tx, listId))
  t.like(list, { invalid: 2, size: 2 ** 17, issuer, token: null })
  const indices = await database.system((tx) => invalidIndices(tx, controlPlane.id, listId))
  const expected = places.slice(0, 2).map(({ idx }) => idx)
  t.deepEqual(
    indices.toSorted((a, b) => a - b),
    expected.toSorted((a, b) => a - b),
  )
})

test('one process in a second signs, and an older token does not replace a newer one', async (t) => {
  const { listId } = await allocate('https://signed.example')
  const of = controlPlane.id
  const claims = await Promise.all(
    Array.from({ length: 8 }, () => database.tenant(of, (tx) => claimSigning(tx, of, listId))),
  )
  t.is(claims.filter(Boolean).length, 1)
  const store = (token: string, invalid: number) =>
    database.tenant(of, (tx) =>
      storeStatusListToken(tx, { tenantId: of, id: listId, token, invalid, signedAt: now }),
    )
  await store('newer', 2)
  await store('older', 1)
  t.like(await database.system((tx) => findStatusList(tx, listId)), { token: 'newer' })
})
