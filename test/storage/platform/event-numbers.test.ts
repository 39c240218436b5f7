import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import {
  appendAudit,
  auditEventsAfter,
  type NewAuditEvent,
} from '../../../storage/operations/audit.js'
import { ChainCheck } from '../../../storage/operations/audit-chain.js'
import {
  LOCKED,
  numberEvents,
  numberWaiting,
  unnumberedEvents,
} from '../../../storage/platform/event-numbers.js'
import { appendEvents, eventsAfter, type NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'
import { numberAll } from '../../support/storage/numbered.js'

const random = systemRandom(systemClock)

function event(tenantId: string, name = ''): NewEvent {
  const data = { resource: { type: 'agent', id: name } }
  return { id: random.uuid(), tenantId, type: 'admin.agent.updated', data, occurredAt: new Date() }
}

const record = ({ database }: FreshDatabase, ...events: NewEvent[]) =>
  database.system((tx) => appendEvents(tx, events))

const waiting = ({ database }: FreshDatabase, tenantId: string) =>
  database.tenant(tenantId, (tx) => unnumberedEvents(tx, tenantId))

/** The numbered events of a tenant, read without numbering any. */
async function numbered({ database }: FreshDatabase, tenantId: string) {
  const { rows } = await database.tenant(tenantId, (tx) =>
    tx.query<{ id: string; sequence: number }>({
      name: 'test.numbered',
      text: 'select id, sequence from all_events where tenant_id = $1 order by sequence',
      values: [tenantId],
    }),
  )
  return rows
}

async function isChained({ database }: FreshDatabase, tenantId: string): Promise<boolean> {
  const rows = await database.tenant(tenantId, (tx) => auditEventsAfter(tx, tenantId, 0, 10_000))
  const check = new ChainCheck()
  return rows.every((row) => check.add(row) === undefined)
}

test('a transaction that records events does not wait for another one of its tenant', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  let recorded: () => void = () => undefined
  const isRecorded = new Promise<void>((resolve) => (recorded = resolve))
  const slow = fresh.database.tenant(tenant, async (tx) => {
    await insertNow(tx, event(tenant, 'slow'))
    recorded()
    await held
  })
  await isRecorded
  await record(fresh, event(tenant, 'fast'))
  await numberAll(fresh.database)
  t.is((await numbered(fresh, tenant)).length, 1, 'the fast one has a number')
  release()
  await slow
  await numberAll(fresh.database)
  t.deepEqual(
    (await numbered(fresh, tenant)).map(({ sequence }) => sequence),
    [1, 2],
  )
  t.true(await isChained(fresh, tenant))
})

/** Records an event in the middle of a transaction. */
async function insertNow(tx: Transaction, { id, tenantId, type, occurredAt }: NewEvent) {
  const line =
    `{"actors":[],"client_id":null,"data":{},"delegation_id":null,"grant_id":null,"id":"${id}","ip":null,` +
    `"occurred_at":"${occurredAt.toISOString()}","outcome":"success","request_id":null,"resource":null,` +
    `"subject":null,"tenant_id":"${tenantId}","type":"${type}"}`
  await tx.query({
    name: 'test.insert',
    text: `insert into unnumbered_events (tenant_id, id, type, data, occurred_at, line)
           values ($1, $2, $3, '{}', $4, $5)`,
    values: [tenantId, id, type, occurredAt, line],
  })
}

test('events recorded one after another are numbered in this order', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const events = Array.from({ length: 40 }, (_, at) => event(tenant, String(at)))
  for (const one of events) await record(fresh, one)
  await numberAll(fresh.database)
  t.deepEqual(
    (await numbered(fresh, tenant)).map(({ id }) => id),
    events.map(({ id }) => id),
  )
})

test('a pass that dies leaves its events to the next one', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await record(fresh, event(tenant), event(tenant))
  const died = fresh.database.system(async (tx) => {
    await numberWaiting(tx)
    throw new Error('died')
  })
  await t.throwsAsync(died, { message: 'died' })
  t.is(await waiting(fresh, tenant), 2)
  t.deepEqual(await numbered(fresh, tenant), [])
  await numberAll(fresh.database)
  t.is(await waiting(fresh, tenant), 0)
  t.is((await numbered(fresh, tenant)).length, 2)
})

test('concurrent sequencers and readers number each event once, without a gap', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = [random.uuid(), random.uuid(), random.uuid()]
  const writers = tenants.flatMap((tenant) =>
    Array.from({ length: 30 }, () => record(fresh, event(tenant), event(tenant))),
  )
  const sequencers = Array.from({ length: 4 }, async () => {
    for (let pass = 0; pass < 10; pass += 1) await fresh.database.system((tx) => numberWaiting(tx))
  })
  const readers = tenants.map(async (tenant) => {
    for (let read = 0; read < 10; read += 1)
      await fresh.database.tenant(tenant, (tx) => eventsAfter(tx, tenant, 0, 1000))
  })
  await Promise.all([...writers, ...sequencers, ...readers])
  await numberAll(fresh.database)
  for (const tenant of tenants) {
    t.deepEqual(
      (await numbered(fresh, tenant)).map(({ sequence }) => sequence),
      Array.from({ length: 60 }, (_, at) => at + 1),
    )
    t.true(await isChained(fresh, tenant))
  }
})

test('a pass leaves out a tenant whose head another transaction holds, and says so', async (t) => {
  const fresh = await freshDatabase(t)
  const [held, free] = [random.uuid(), random.uuid()]
  await record(fresh, event(held), event(free))
  await numberAll(fresh.database)
  await record(fresh, event(held), event(free))
  await fresh.database.system(async (tx) => {
    await numberEvents(tx, held)
    const { tenants } = await fresh.database.system((other) => numberWaiting(other))
    // The events of `held` are visible to the other transaction until this one is committed.
    const failures = new Map(tenants.map(({ tenantId, failure }) => [tenantId, failure]))
    t.is(failures.get(held), LOCKED)
    t.is(failures.get(free), null)
  })
  t.is((await numbered(fresh, held)).length, 2)
})

test('the end of a call that two processes recorded counts once', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const ends = ['a', 'b', 'c'].map((text) => event(tenant, text))
  const [early, late, other] = ends.map((one) => ({ ...one, type: 'egress.stream.closed' }))
  await record(fresh, early!)
  await numberAll(fresh.database)
  await record(fresh, early!, late!)
  await record(fresh, late!, other!)
  await numberAll(fresh.database)
  t.deepEqual(
    (await numbered(fresh, tenant)).map(({ id }) => id),
    [early!.id, late!.id, other!.id],
  )
  t.true(await isChained(fresh, tenant))
})

test('events that cannot be numbered do not stop other tenants', async (t) => {
  const fresh = await freshDatabase(t)
  const [broken, sound] = [random.uuid(), random.uuid()].toSorted()
  await record(fresh, event(broken!), event(sound!))
  await fresh.database.system((tx) =>
    tx.query({
      name: 'test.break',
      text: `update unnumbered_events set line = '{' where tenant_id = $1`,
      values: [broken],
    }),
  )
  const { tenants } = await fresh.database.system((tx) => numberWaiting(tx))
  t.regex(tenants.find(({ tenantId }) => tenantId === broken)?.failure ?? '', /^22P02 /)
  t.is((await numbered(fresh, sound!)).length, 1)
  t.is(await waiting(fresh, broken!), 1, 'it stays recorded')
})

test('a number that is taken already is a failure, and not tried forever', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await record(fresh, event(tenant))
  await numberAll(fresh.database)
  await fresh.database.system((tx) =>
    tx.query({
      name: 'test.rewind',
      text: 'update event_sequences set audit_last = 0 where tenant_id = $1',
      values: [tenant],
    }),
  )
  await record(fresh, event(tenant))
  const { tenants } = await fresh.database.system((tx) => numberWaiting(tx))
  t.regex(tenants[0]?.failure ?? '', /^23505 /)
  await t.throwsAsync(
    fresh.database.tenant(tenant, (tx) => numberEvents(tx, tenant)),
    { message: /audit_events_pkey/ },
  )
  t.is(await waiting(fresh, tenant), 1, 'it stays recorded')
})

test('more events than one statement numbers, of more tenants than one pass has, are all numbered', async (t) => {
  const fresh = await freshDatabase(t)
  const many = random.uuid()
  await record(fresh, ...Array.from({ length: 1_100 }, () => event(many)))
  const tenants = Array.from({ length: 130 }, () => random.uuid())
  await record(fresh, ...tenants.map((tenant) => event(tenant)))
  const rows = await fresh.database.tenant(many, (tx) => eventsAfter(tx, many, 0, 2_000))
  t.is(rows.length, 1_100, 'a reader numbers all of them')
  await numberAll(fresh.database)
  for (const tenant of tenants) t.is((await numbered(fresh, tenant)).length, 1)
})

test('a tenant records and numbers only its own events', async (t) => {
  const fresh = await freshDatabase(t)
  const [mine, theirs] = [random.uuid(), random.uuid()]
  await record(fresh, event(theirs))
  t.is(await fresh.database.tenant(mine, (tx) => unnumberedEvents(tx, theirs)), 0)
  await fresh.database.tenant(mine, (tx) => numberEvents(tx, theirs))
  t.is(await waiting(fresh, theirs), 1)
  await t.throwsAsync(
    fresh.database.tenant(mine, (tx) => appendEvents(tx, [event(theirs)])),
    {
      message: /row-level security/,
    },
  )
})

test('an audit event that the database cannot store fails its transaction', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await t.throwsAsync(
    fresh.database.tenant(tenant, (tx) => appendAudit(tx, [audited(tenant, { name: '\u0000' })])),
    { message: /unicode/i },
  )
  t.is(await waiting(fresh, tenant), 0)
})

function audited(tenantId: string, data: Record<string, unknown>): NewAuditEvent {
  const { id, type, occurredAt } = event(tenantId)
  const none = { subject: null, clientId: null, delegationId: null, grantId: null, ip: null }
  const rest = { actors: [], resource: null, outcome: 'success' as const, requestId: null, data }
  return { id, tenantId, type, occurredAt, ...none, ...rest }
}

test('audit-only events take a place in the chain and none in the feed', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await record(fresh, event(tenant))
  await fresh.database.tenant(tenant, (tx) => appendAudit(tx, [audited(tenant, {})]))
  await record(fresh, event(tenant))
  await numberAll(fresh.database)
  t.is((await numbered(fresh, tenant)).length, 2)
  const chain = await fresh.database.tenant(tenant, (tx) => auditEventsAfter(tx, tenant, 0, 10))
  t.deepEqual(
    chain.map(({ sequence }) => sequence),
    [1, 2, 3],
  )
  t.true(await isChained(fresh, tenant))
})

test('one statement numbers the events of many tenants, each in its order', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = Array.from({ length: 20 }, () => random.uuid())
  const recorded = new Map<string, string[]>(tenants.map((tenant) => [tenant, []]))
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < 120; at += 1) {
      // The first tenants have many events, and the last ones have none in some rounds.
      const tenant = tenants[Math.floor((at * at) / 720) % tenants.length]!
      const told = at % 5 !== 0
      const one = event(tenant, String(at))
      if (told) await record(fresh, one)
      else await fresh.database.system((tx) => appendAudit(tx, [audited(tenant, {})]))
      if (told) recorded.get(tenant)!.push(one.id)
    }
    const { tenants: passed } = await fresh.database.system((tx) => numberWaiting(tx))
    t.true(passed.every(({ failure, oldest }) => failure === null && oldest !== null))
  }
  for (const [tenant, ids] of recorded) {
    t.is(await waiting(fresh, tenant), 0)
    t.deepEqual(
      (await numbered(fresh, tenant)).map(({ id, sequence }) => [id, sequence]),
      ids.map((id, at) => [id, at + 1]),
    )
    t.true(await isChained(fresh, tenant))
  }
})

test('a pass numbers the other tenants while one is locked, at every place in their order', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = Array.from({ length: 3 }, () => random.uuid()).toSorted()
  await record(fresh, ...tenants.map((tenant) => event(tenant)))
  await numberAll(fresh.database)
  for (const held of tenants) {
    await record(fresh, ...tenants.map((tenant) => event(tenant)))
    await fresh.database.system(async (tx) => {
      await tx.query({
        name: 'test.hold',
        text: 'select from event_sequences where tenant_id = $1 for update',
        values: [held],
      })
      const pass = await fresh.database.system((other) => numberWaiting(other))
      t.deepEqual(
        pass.tenants.map(({ tenantId, numbered, failure }) => [tenantId, numbered, failure]),
        tenants.map((tenant) => [tenant, tenant === held ? 0 : 1, tenant === held ? LOCKED : null]),
      )
    })
    await numberAll(fresh.database)
  }
  for (const tenant of tenants) {
    t.is((await numbered(fresh, tenant)).length, 4)
    t.true(await isChained(fresh, tenant))
  }
})
