import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import {
  appendAudit,
  auditEventsAfter,
  type NewAuditEvent,
} from '../../../storage/operations/audit.js'
import { RECORDED_CHANNEL } from '../../../storage/platform/event-numbers.js'
import {
  appendEvents,
  eventsAfter,
  type NewEvent,
  takeEvents,
} from '../../../storage/platform/outbox.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'
import { numberAll } from '../../support/storage/numbered.js'
import { subscribedTenant } from '../../support/webhooks/subscribed-tenant.js'

const random = systemRandom(systemClock)

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
  await numberAll(fresh.database)
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

test('an audit record follows from the data of its event, but for what is said besides', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const actor = { type: 'user', id: 'user-1' }
  const resource = { type: 'token', id: 'x' }
  const data = { actor, resource, request_id: 'r', client_id: 'c', grant_id: 'g', last: [1] }
  const told: NewEvent[] = [
    { ...event(tenant, 'auth.login.failure'), data },
    { ...event(tenant, 'auth.login.failure'), data: { resource: 'x', client_id: 7 } },
    { ...event(tenant), data: {} },
    {
      ...event(tenant),
      data,
      audit: { subject: null, resource: null, clientId: null, requestId: null, ip: '192.0.2.1' },
    },
  ]
  await fresh.database.tenant(tenant, (tx) => appendEvents(tx, told))
  const [events, records] = await fresh.database.tenant(tenant, async (tx) => [
    await eventsAfter(tx, tenant, 0, 10),
    await auditEventsAfter(tx, tenant, 0, 10),
  ])
  t.deepEqual(
    events.map((one) => one.data),
    told.map((one) => one.data),
  )
  const rest = { client_id: 'c', grant_id: 'g', last: [1] }
  const subject = { sub: 'user-1', subject_type: 'user' }
  const noCaller = { subject: null, resource: null, client_id: null, request_id: null }
  const expected = [
    { subject, resource, client_id: 'c', request_id: 'r', outcome: 'failure', data: rest },
    {
      ...noCaller,
      grant_id: null,
      outcome: 'failure',
      data: { resource: undefined, client_id: 7 },
    },
    { ...noCaller, outcome: 'success', data: {} },
    { ...noCaller, grant_id: 'g', ip: '192.0.2.1', outcome: 'success', data: rest },
  ]
  for (const [at, record] of records.entries()) t.like(record, expected[at]!)
  t.is(records.length, 4)
})

test('the events after any number are found among records that are only audited', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const told: NewEvent[] = []
  // Runs of records without an event, of different lengths, at the beginning too.
  for (const [at, audits] of [3, 0, 1, 7, 0, 0, 2, 5].entries()) {
    const next = event(tenant, 'admin.agent.updated', 60 - at)
    await fresh.database.tenant(tenant, (tx) => {
      appendAudit(
        tx,
        Array.from({ length: audits }, () => onlyAudited(tenant)),
      )
      appendEvents(tx, [next])
    })
    told.push(next)
  }
  await fresh.database.tenant(tenant, (tx) => appendAudit(tx, [onlyAudited(tenant)]))
  for (let after = 0; after <= told.length; after += 1) {
    const rows = await fresh.database.tenant(tenant, (tx) => eventsAfter(tx, tenant, after, 3))
    t.deepEqual(
      rows.map(({ id, sequence }) => ({ id, sequence })),
      told.slice(after, after + 3).map(({ id }, at) => ({ id, sequence: after + at + 1 })),
    )
  }
})

function onlyAudited(tenantId: string): NewAuditEvent {
  return {
    id: random.uuid(),
    tenantId,
    type: 'vault.grant.created',
    occurredAt: new Date(),
    subject: null,
    actors: [],
    clientId: null,
    delegationId: null,
    grantId: null,
    resource: null,
    outcome: 'success',
    requestId: null,
    ip: null,
    data: {},
  }
}

test('writers that race leave no gap and no double number, whatever rolls back', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = [random.uuid(), random.uuid(), random.uuid()]
  const write = async (i: number) => {
    await fresh.database.system(async (tx) => {
      // Both orders of the tenants: a wrong lock order would deadlock.
      const order = i % 2 ? tenants : tenants.toReversed()
      appendEvents(
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
    tx.query({ name: 'events.no_where', text: 'select * from all_events' }),
  )
  t.is(rowCount, 1)
})

test('concurrent workers share the events, and each event has one', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = await subscribedTenant(fresh.database)
  await append(fresh, ...Array.from({ length: 100 }, () => event(tenant)))
  const taken = await Promise.all(
    Array.from({ length: 10 }, () => fresh.database.system((tx) => takeEvents(tx, 10))),
  )
  const ids = taken.flat().map(({ id }) => id)
  t.is(new Set(ids).size, ids.length, 'no event twice')
  t.is(ids.length, 100)
})

test('what a worker took and did not commit goes to the next one, the oldest first', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = await subscribedTenant(fresh.database)
  const [young, old] = [event(tenant, 'b', 1), event(tenant, 'a', 120)]
  await append(fresh, young, old)
  const died = fresh.database.system(async (tx) => {
    t.is((await takeEvents(tx, 5)).length, 2)
    throw new Error('died')
  })
  await t.throwsAsync(died, { message: 'died' })
  const take = () => fresh.database.system((tx) => takeEvents(tx, 1))
  t.is((await take())[0]?.id, old.id)
  t.is((await take())[0]?.id, young.id)
  t.deepEqual(await take(), [])
})

test('an event without subscriptions waits for no dispatch', async (t) => {
  const fresh = await freshDatabase(t)
  const [deaf, hearing] = [random.uuid(), await subscribedTenant(fresh.database)]
  await append(fresh, event(deaf), event(hearing))
  const taken = await fresh.database.system((tx) => takeEvents(tx, 10))
  t.deepEqual(
    taken.map(({ tenantId }) => tenantId),
    [hearing],
  )
})

test('a commit with events wakes the listeners, a rollback does not', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = await subscribedTenant(fresh.database)
  let woken = 0
  let wake: () => void = () => undefined
  await fresh.database.listener.listen(RECORDED_CHANNEL, {
    notified: () => {
      woken += 1
      wake()
    },
  })
  const rolledBack = fresh.database.system(async (tx) => {
    appendEvents(tx, [event(tenant)])
    throw new Error('no')
  })
  await t.throwsAsync(rolledBack)
  const notified = new Promise<void>((resolve) => (wake = resolve))
  t.is(woken, 0)
  await append(fresh, event(tenant))
  await notified
  // A hundred commits share far fewer notifications, and one follows the last commit.
  await Promise.all(Array.from({ length: 100 }, () => append(fresh, event(tenant))))
  const before = woken
  const last = new Promise<void>((resolve) => (wake = resolve))
  await append(fresh, event(tenant))
  await last
  t.true(before < 100, `${before} wake-ups`)
})
