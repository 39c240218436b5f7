import test from 'ava'
import { systemClock } from '../../runtime/kernel/clock.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import {
  appendEvents,
  claimEvents,
  eventsAfter,
  EVENTS_CHANNEL,
  finishEvents,
  type NewEvent,
  releaseEvents,
  sweepEvents,
  waitingEvents,
} from '../../storage/outbox.js'
import { type FreshDatabase, freshDatabase } from '../support/database.js'

const random = systemRandom(systemClock)
const MINUTE_MS = 60_000

function event(tenantId: string, type = 'admin.agent.registered', secondsAgo = 0): NewEvent {
  return {
    id: random.uuid(),
    tenantId,
    type,
    data: { resource: { type: 'agent', id: 'x' }, text: `it's "quoted" \\ and ünïcode` },
    occurredAt: new Date(Date.now() - secondsAgo * 1000),
  }
}

async function append(fresh: FreshDatabase, ...events: NewEvent[]): Promise<void> {
  await fresh.database.system((tx) => appendEvents(tx, events))
}

test('events come back as they were written, numbered from one', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const [first, second] = [event(tenant), event(tenant, 'auth.login')]
  await fresh.database.tenant(tenant, (tx) => appendEvents(tx, [first, second]))
  const found = await fresh.database.tenant(tenant, (tx) => eventsAfter(tx, tenant, 0, 10))
  t.deepEqual(found, [
    { ...first, sequence: 1 },
    { ...second, sequence: 2 },
  ])
})

test('writers that race leave no gap and no double number, whatever rolls back', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = [random.uuid(), random.uuid(), random.uuid()]
  const write = async (i: number) => {
    await fresh.database.system(async (tx) => {
      // Both orders of the tenants, so that a wrong locking order would deadlock.
      const order = i % 2 ? tenants : tenants.toReversed()
      await appendEvents(
        tx,
        order.flatMap((tenant) => [event(tenant), event(tenant)]),
      )
      if (i % 5 === 0) throw new Error('rolled back')
    })
  }
  const results = await Promise.allSettled(Array.from({ length: 60 }, (_, i) => write(i)))
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 48)
  for (const tenant of tenants) {
    const rows = await fresh.database.system((tx) => eventsAfter(tx, tenant, 0, 1000))
    t.deepEqual(
      rows.map(({ sequence }) => sequence),
      Array.from({ length: 96 }, (_, i) => i + 1),
    )
  }
})

test('a tenant cannot append for another one, and sees only its own', async (t) => {
  const fresh = await freshDatabase(t)
  const [mine, theirs] = [random.uuid(), random.uuid()]
  await append(fresh, event(mine), event(theirs))
  await t.throwsAsync(
    fresh.database.tenant(mine, (tx) => appendEvents(tx, [event(theirs)])),
    { message: /row-level security/ },
  )
  const { rowCount } = await fresh.database.tenant(mine, (tx) =>
    tx.query({ name: 'events.no_where', text: 'select * from events' }),
  )
  t.is(rowCount, 1)
})

test('workers that claim at once share the events, and each event has one', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await append(fresh, ...Array.from({ length: 100 }, () => event(tenant)))
  const claims = await Promise.all(
    Array.from({ length: 10 }, () =>
      fresh.database.system((tx) => claimEvents(tx, random.uuid(), 10, 60)),
    ),
  )
  const ids = claims.flat().map(({ id }) => id)
  t.is(new Set(ids).size, ids.length, 'no event twice')
  t.is(ids.length, 100)
  t.true(claims.flat().every(({ leases }) => leases === 1))
})

test('what a dead worker held goes to the next one; the dead one can no longer finish it', async (t) => {
  const fresh = await freshDatabase(t)
  const one = event(random.uuid())
  await append(fresh, one)
  const [dead, next] = [random.uuid(), random.uuid()]
  const claim = (lease: string, secs: number) =>
    fresh.database.system((tx) => claimEvents(tx, lease, 5, secs))
  const finish = (lease: string) => fresh.database.system((tx) => finishEvents(tx, lease, [one.id]))
  t.is((await claim(dead, 0)).length, 1)
  const [again] = await claim(next, 60)
  t.is(again?.leases, 2)
  t.is(await finish(dead), 0)
  t.is(await finish(next), 1)
  t.deepEqual(await claim(dead, 60), [])
})

test('a worker that stops gives its events back at once', async (t) => {
  const fresh = await freshDatabase(t)
  await append(fresh, event(random.uuid()))
  const lease = random.uuid()
  await fresh.database.system((tx) => claimEvents(tx, lease, 5, 600))
  t.is(await fresh.database.system((tx) => releaseEvents(tx, lease)), 1)
  t.is((await fresh.database.system((tx) => claimEvents(tx, random.uuid(), 5, 600))).length, 1)
})

test('the oldest waiting event is told, and only what was dispatched is swept', async (t) => {
  const fresh = await freshDatabase(t)
  const [old, young] = [event(random.uuid(), 'a', 120), event(random.uuid(), 'b', 1)]
  await append(fresh, old, young)
  const { count, oldestSecs } = await fresh.database.system(waitingEvents)
  t.is(count, 2)
  t.true(oldestSecs >= 119 && oldestSecs < 240)
  const lease = random.uuid()
  await fresh.database.system(async (tx) => {
    await claimEvents(tx, lease, 1, 60)
    await finishEvents(tx, lease, [old.id])
  })
  const sweep = (before: number) =>
    fresh.database.system((tx) => sweepEvents(tx, new Date(Date.now() + before), 10))
  t.is(await sweep(-MINUTE_MS), 0)
  t.is(await sweep(MINUTE_MS), 1)
  t.is((await fresh.database.system(waitingEvents)).count, 1)
})

test('a commit with events wakes the listeners, a rollback does not', async (t) => {
  const fresh = await freshDatabase(t)
  let woken = 0
  let wake: () => void = () => undefined
  await fresh.database.listener.listen(EVENTS_CHANNEL, {
    notified: () => {
      woken += 1
      wake()
    },
  })
  const rolledBack = fresh.database.system(async (tx) => {
    await appendEvents(tx, [event(random.uuid())])
    throw new Error('no')
  })
  await t.throwsAsync(rolledBack)
  const notified = new Promise<void>((resolve) => (wake = resolve))
  t.is(woken, 0)
  await append(fresh, event(random.uuid()))
  await notified
  // A hundred commits come together in far fewer wake-ups, and the last commit has one after it.
  await Promise.all(Array.from({ length: 100 }, () => append(fresh, event(random.uuid()))))
  const before = woken
  const last = new Promise<void>((resolve) => (wake = resolve))
  await append(fresh, event(random.uuid()))
  await last
  t.true(before < 100, `${before} wake-ups`)
})
