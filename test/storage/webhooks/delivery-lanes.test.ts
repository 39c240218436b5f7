import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import {
  dueDeliveries,
  insertDeliveries,
  selectingDueOf,
} from '../../../storage/webhooks/deliveries.js'
import { insertOrganization } from '../../../storage/identity/organizations.js'
import { insertTenant } from '../../../storage/identity/tenants.js'
import {
  claimLanes,
  type LaneRoom,
  nextLaneMs,
  releaseLanes,
  renewLanes,
  wakeAndClaimLanes,
  wakeLanes,
} from '../../../storage/webhooks/delivery-lanes.js'
import { insertWebhook } from '../../../storage/webhooks/webhooks.js'
import { freshDatabase } from '../../support/storage/database.js'

const fresh = await freshDatabase()
const { database } = fresh
test.after.always(() => fresh.drop())

async function lane(of?: string, network: string | null = null) {
  const [tenantId, organizationId, webhookId] = [of ?? randomUUID(), randomUUID(), randomUUID()]
  const createdAt = new Date()
  await database.system(async (tx) => {
    if (of !== undefined) return
    const slug = `t-${tenantId.slice(0, 8)}`
    await insertOrganization(tx, { id: organizationId, name: slug, slug, createdAt, network })
    await insertTenant(tx, {
      id: tenantId,
      organizationId,
      slug,
      name: slug,
      environment: 'sandbox',
      status: 'active',
      admitAgents: true,
      createdAt,
    } as Parameters<typeof insertTenant>[1])
  })
  await database.system(async (tx) => {
    await insertWebhook(
      tx,
      {
        id: webhookId,
        tenantId,
        url: 'https://receiver.example/',
        eventTypes: ['*'],
        description: '',
        active: true,
        createdAt,
        secret: new Uint8Array(40),
      },
      50,
    )
  })
  const key = { tenantId, webhookId }
  const delivery = () => ({
    ...key,
    id: randomUUID(),
    eventId: randomUUID(),
    eventType: 'webhook.test',
    body: '{}',
  })
  return { ...key, key, delivery }
}

const NONE_FULL = { sandboxes: false, networks: [] }

/** Room for so many lanes, by default of any tenant. */
const roomOf = (limit: number, more: Partial<LaneRoom> = {}): LaneRoom => ({
  limit,
  perTenantMax: limit,
  held: new Map(),
  full: NONE_FULL,
  firstMax: 0,
  ...more,
})
const now = () => ({ maxAttempts: 3, now: new Date() })
const given = { failures: 0, failingSince: null, heldSecs: 0 }

const park = () =>
  database.system((tx) =>
    tx.query({ name: 'test.park', text: 'update webhook_lanes set due_at = null', values: [] }),
  )
/** Lanes of the tests before. */
test.beforeEach(async () => void (await park()))

test.serial('a lane that is woken while its worker gives it back is due again', async (t) => {
  const { key, delivery, webhookId } = await lane()
  const lease = randomUUID()
  await database.system((tx) => wakeLanes(tx, [key]))
  const claimed = await database.system((tx) => claimLanes(tx, lease, roomOf(10), 60))
  t.deepEqual(
    claimed.map((one) => one.webhookId),
    [webhookId],
  )
  // The worker has locked the row and sees no waiting delivery. The waker waits for that lock.
  let locked!: () => void
  const isLocked = new Promise<void>((resolve) => {
    locked = resolve
  })
  const waker = database.system(async (tx) => {
    await isLocked
    await insertDeliveries(tx, [delivery()], now())
    await wakeLanes(tx, [key])
  })
  await database.system(async (tx) => {
    await releaseLanes(tx, lease, [{ ...key, ...given }])
    locked()
    await sleep(300)
  })
  await waker
  const again = await database.system((tx) => claimLanes(tx, randomUUID(), roomOf(10), 60))
  t.deepEqual(
    again.map((one) => one.webhookId),
    [webhookId],
  )
})

test.serial('a lane is one worker’s until its lease runs out, and a rest is a rest', async (t) => {
  const { key, delivery, webhookId } = await lane()
  const [mine, theirs] = [randomUUID(), randomUUID()]
  await database.system(async (tx) => {
    await insertDeliveries(tx, [delivery(), delivery()], now())
    await wakeLanes(tx, [key])
  })
  const claim = (lease: string, secs = 1) =>
    database.system(async (tx) => {
      const lanes = await claimLanes(tx, lease, roomOf(10), secs)
      return lanes.some((one) => one.webhookId === webhookId)
    })
  t.true(await claim(mine))
  t.false(await claim(theirs))
  await database.system((tx) => renewLanes(tx, mine, 1))
  const ms = await database.system((tx) => nextLaneMs(tx, 5_000, [], NONE_FULL))
  t.true(ms > 0 && ms <= 1_000)
  await sleep(1_100)
  t.true(await claim(theirs, 60))
  // The first worker is late: the lane that it releases is not its own any more.
  await database.system((tx) => releaseLanes(tx, mine, [{ ...key, ...given }]))
  t.false(await claim(mine))
  const rest = { ...key, failures: 11, failingSince: new Date(), heldSecs: 1 }
  await database.system((tx) => releaseLanes(tx, theirs, [rest]))
  await database.system((tx) => wakeLanes(tx, [key]))
  t.false(await claim(mine))
  await sleep(1_100)
  t.true(await claim(mine))
})

test.serial('the same event reaches a subscription once', async (t) => {
  const { delivery, webhookId } = await lane()
  const [one, two] = [delivery(), delivery()]
  const insert = (rows: (typeof one)[]) =>
    database.system((tx) => insertDeliveries(tx, rows, now()))
  t.is(await insert([one, two]), 2)
  t.is(await insert([{ ...one, id: randomUUID() }]), 0)
  const due = await database.system((tx) => dueDeliveries(tx, [webhookId], 10))
  t.deepEqual(due.map(({ id }) => id).toSorted(), [one.id, two.id].toSorted())
})

test.serial('one event for several subscriptions is a delivery of each', async (t) => {
  const first = await lane()
  const second = await lane(first.tenantId)
  const told = first.delivery()
  const also = { ...told, id: randomUUID(), webhookId: second.webhookId }
  const other = { ...first.delivery(), body: '{"text":"a, {b} \\"c\\""}' }
  const inserted = await database.system((tx) => insertDeliveries(tx, [told, also, other], now()))
  t.is(inserted, 3)
  for (const [webhookId, expected] of [
    [first.webhookId, [told, other]],
    [second.webhookId, [also]],
  ] as const) {
    for (const isMany of [false, true]) {
      const [due] = await database.together(null, [selectingDueOf(webhookId, isMany)])
      const found = due!.rows.map(({ id, body }) => ({ id, body }))
      t.deepEqual(
        found.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1)),
        expected.map(({ id, body }) => ({ id, body })).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      )
    }
  }
})

test.serial('waking lanes claims the free ones and wakes the others', async (t) => {
  const [free, held, resting, idle] = [await lane(), await lane(), await lane(), await lane()]
  const [mine, theirs] = [randomUUID(), randomUUID()]
  const all = [free, held, resting, idle]
  const keys = all.map(({ key }) => key)
  await database.system(async (tx) => {
    await wakeLanes(tx, [held.key, resting.key])
    await claimLanes(tx, theirs, roomOf(10), 60)
    const rest = { ...resting.key, failures: 11, failingSince: new Date(), heldSecs: 60 }
    await releaseLanes(tx, theirs, [rest])
  })
  const taken = await database.system(async (tx) => {
    await insertDeliveries(
      tx,
      all.map(({ delivery }) => delivery()),
      now(),
    )
    return wakeAndClaimLanes(tx, keys, mine, roomOf(1), 60)
  })
  t.is(taken.claimed.length, 1, 'as many as there is room for')
  const [first] = taken.claimed
  t.true([free, idle].some((one) => one.webhookId === first!.webhookId))
  t.like(first, { failures: 0, failingSince: null })
  const more = await database.system((tx) => wakeAndClaimLanes(tx, keys, theirs, roomOf(10), 60))
  t.deepEqual(
    more.claimed.map(({ webhookId }) => webhookId),
    [free, idle].map((one) => one.webhookId).filter((id) => id !== first!.webhookId),
    'neither what another has, nor what rests',
  )
  await database.system((tx) => releaseLanes(tx, theirs, [{ ...held.key, ...given }]))
  const again = await database.system((tx) => claimLanes(tx, mine, roomOf(10), 60))
  t.deepEqual(
    again.map(({ webhookId }) => webhookId),
    [held.webhookId],
    'it was woken in between',
  )
})

test.serial(
  'of many that wake the same lanes concurrently, each lane is one worker’s',
  async (t) => {
    const lanes = await Promise.all(Array.from({ length: 12 }, () => lane()))
    const keys = lanes.map(({ key }) => key)
    const taken = await Promise.all(
      Array.from({ length: 6 }, () =>
        database.system((tx) => wakeAndClaimLanes(tx, keys, randomUUID(), roomOf(5), 60)),
      ),
    )
    const ids = taken.flatMap(({ claimed }) => claimed).map(({ webhookId }) => webhookId)
    t.is(new Set(ids).size, ids.length)
    t.is(ids.length, 12)
  },
)

test.serial('tenants take turns, and none is leased more than its share', async (t) => {
  const first = await lane()
  const crowd = [first]
  for (let more = 1; more < 6; more += 1) crowd.push(await lane(first.tenantId))
  const few = [await lane(), await lane()]
  // The crowd has been due for longest.
  for (const { key } of [...crowd, ...few]) await database.system((tx) => wakeLanes(tx, [key]))
  const tenantsOf = (claimed: readonly { tenantId: string }[]) =>
    claimed.map(({ tenantId }) => tenantId)
  const mine = randomUUID()
  const claim = (room: LaneRoom) => database.system((tx) => claimLanes(tx, mine, room, 60))
  const turn = tenantsOf(await claim(roomOf(3, { perTenantMax: 4 })))
  t.deepEqual(turn.toSorted(), [first, ...few].map(({ tenantId }) => tenantId).toSorted())
  const held = new Map([[first.tenantId, 1]])
  const rest = await claim(roomOf(10, { perTenantMax: 4, held }))
  t.deepEqual(tenantsOf(rest), Array(3).fill(first.tenantId))
  const all = new Map([[first.tenantId, 4]])
  t.deepEqual(await claim(roomOf(10, { perTenantMax: 4, held: all })), [])
  // Lanes that were left over do not cause another claim immediately.
  const [now, later] = await database.system(async (tx) => [
    await nextLaneMs(tx, 5_000, [], NONE_FULL),
    await nextLaneMs(tx, 5_000, [first.tenantId], NONE_FULL),
  ])
  t.is(now, 0)
  t.true(later > 0)
  const theirs = await database.system((tx) =>
    claimLanes(tx, randomUUID(), roomOf(10, { perTenantMax: 4 }), 60),
  )
  const ours = tenantsOf(theirs).filter((id) => id === first.tenantId)
  t.is(ours.length, 2, 'another worker has room')
})

test.serial('what is woken beyond the share of its tenant is left and counted', async (t) => {
  const first = await lane()
  const lanes = [first, await lane(first.tenantId), await lane(first.tenantId), await lane()]
  const keys = lanes.map(({ key }) => key)
  const held = new Map([[first.tenantId, 1]])
  const { claimed, refused } = await database.system(async (tx) => {
    await insertDeliveries(
      tx,
      lanes.map(({ delivery }) => delivery()),
      now(),
    )
    return wakeAndClaimLanes(tx, keys, randomUUID(), roomOf(10, { perTenantMax: 2, held }), 60)
  })
  t.is(refused, 2)
  t.deepEqual(
    claimed.map(({ tenantId }) => tenantId).toSorted(),
    [first.tenantId, lanes[3]!.tenantId].toSorted(),
  )
  const room = roomOf(10, { perTenantMax: 2 })
  const left = await database.system((tx) => claimLanes(tx, randomUUID(), room, 60))
  const ours = left.filter(({ tenantId }) => tenantId === first.tenantId)
  t.is(ours.length, 2, 'they wait for a worker that has room')
})

test.serial('lanes of a group that is full are neither claimed nor waited for', async (t) => {
  const crowd = await Promise.all([1, 2, 3].map(() => lane(undefined, '203.0.113.7')))
  const honest = await lane(undefined, '198.51.100.7')
  const claim = (more: Partial<LaneRoom>) =>
    database.system((tx) => claimLanes(tx, randomUUID(), roomOf(1, more), 60))
  await database.system((tx) =>
    wakeLanes(
      tx,
      crowd.map(({ key }) => key),
    ),
  )
  const [one] = await claim({})
  t.true(one!.sandbox)
  const network = one!.network!
  t.regex(network, /^[0-9a-f]{64}$/, 'a digest')
  await database.system((tx) => wakeLanes(tx, [honest.key]))
  const full = { sandboxes: false, networks: [network] }
  t.deepEqual(await claim({ full: { sandboxes: true, networks: [] } }), [])
  t.is((await claim({ full }))[0]?.webhookId, honest.webhookId)
  const wait = (groups: LaneRoom['full']) =>
    database.system((tx) => nextLaneMs(tx, 5_000, [], groups))
  t.is(await wait(NONE_FULL), 0)
  t.is(await wait(full), 5_000)
  await park()
  const woken = await database.system((tx) => {
    const keys = crowd.map(({ key }) => key)
    return wakeAndClaimLanes(tx, keys, randomUUID(), roomOf(4, { full }), 60)
  })
  t.deepEqual(woken, { claimed: [], refused: 2 }, 'one is leased')
})

test.serial('where there is no room, tenants without a lane get a few', async (t) => {
  const [holder, first, second] = await Promise.all([1, 2, 3].map(() => lane()))
  const keys = [holder, first, second].map((one) => one!.key)
  const full = { sandboxes: true, networks: [] }
  const held = new Map([[holder!.key.tenantId, 1]])
  const room = roomOf(0, { full, held, perTenantMax: 4, firstMax: 1 })
  const woken = await database.system((tx) => wakeAndClaimLanes(tx, keys, randomUUID(), room, 60))
  const claimed = await database.system((tx) => claimLanes(tx, randomUUID(), room, 60))
  const taken = [...woken.claimed, ...claimed].map(({ webhookId }) => webhookId)
  t.deepEqual(taken.toSorted(), [first, second].map((one) => one!.webhookId).toSorted())
  t.is(woken.refused, 1, 'of the tenant that holds one')
})
