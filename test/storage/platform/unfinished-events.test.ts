/**
 * Events of a database that processes of the release before can still use: they are in the table `events`, and readers find
 * them there after `svc migrate finish` too (migration 0121).
 */
import test from 'ava'
import { runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { auditEventsAfter } from '../../../storage/operations/audit.js'
import { ChainCheck } from '../../../storage/operations/audit-chain.js'
import {
  appendEvents,
  eventsAfter,
  eventsNotDelivered,
  type NewEvent,
  sweepEvents,
  takeEvents,
} from '../../../storage/platform/outbox.js'
import {
  confirmEvents,
  registerSink,
  claimDueTenants,
} from '../../../storage/webhooks/event-sinks.js'
import { eventText } from '../../../storage/platform/event-text.js'
import { sql } from '../../support/storage/sql.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'
import { numberAll } from '../../support/storage/numbered.js'
import { unfinish } from '../../support/storage/unfinished.js'
import { subscribedTenant } from '../../support/webhooks/subscribed-tenant.js'

const random = systemRandom(systemClock)
const MINUTE_MS = 60_000

function event(tenantId: string, type = 'admin.agent.registered', secondsAgo = 0): NewEvent {
  const resource = { type: 'agent', id: 'x' }
  const occurredAt = new Date(Date.now() - secondsAgo * 1000)
  return {
    id: random.uuid(),
    tenantId,
    type,
    data: { resource, request_id: 'r', n: 1 },
    occurredAt,
  }
}

async function append(fresh: FreshDatabase, ...events: NewEvent[]): Promise<void> {
  await fresh.database.system((tx) => appendEvents(tx, events))
  await numberAll(fresh.database)
}

/** An event as a process of the release before records it. */
async function appendAsBefore({ database }: FreshDatabase, event: NewEvent): Promise<void> {
  const { id, tenantId, type, data, occurredAt } = event
  const { line } = eventText(event)
  await sql(database)`
    insert into unnumbered_events (tenant_id, id, type, data, occurred_at, line)
    values (${tenantId}, ${id}, ${type}, ${JSON.stringify(data)}, ${occurredAt}, ${line})`
  await numberAll(database)
}

const finish = (fresh: FreshDatabase) =>
  runMigrations({ url: fresh.url, log: silentLogger, finish: true })

test('processes of both releases record events, which both find in the table', async (t) => {
  const fresh = await freshDatabase(t)
  await unfinish(fresh)
  const tenant = await subscribedTenant(fresh.database)
  const type = 'admin.agent.registered'
  const [first, second] = [event(tenant, type, 2), event(tenant, type, 1)]
  await append(fresh, first)
  await appendAsBefore(fresh, second)
  const rows = await sql(fresh.database)`
    select id, sequence, data, dispatched_at from events order by sequence`
  t.deepEqual(
    rows,
    [first, second].map(({ id, data }, at) => ({
      id,
      sequence: at + 1,
      data,
      dispatched_at: null,
    })),
  )
  const taken = await fresh.database.system((tx) => takeEvents(tx, 10))
  t.deepEqual(
    taken.map(({ id, data }) => ({ id, data })),
    [first, second].map(({ id, data }) => ({ id, data })),
  )
  t.deepEqual(await fresh.database.system((tx) => takeEvents(tx, 10)), [])
})

test('events before and after the end of an upgrade are one sequence', async (t) => {
  const fresh = await freshDatabase(t)
  await unfinish(fresh)
  const tenant = await subscribedTenant(fresh.database)
  const told = Array.from({ length: 7 }, (_, at) => event(tenant, 'admin.agent.updated', 60 - at))
  await append(fresh, told[0]!, told[1]!)
  await appendAsBefore(fresh, told[2]!)
  t.deepEqual(await finish(fresh), [
    '0130_finish_events_in_log',
    '0170_finish_ends',
    '0196_finish_secret_stamps',
  ])
  t.deepEqual(await finish(fresh), [])
  // What a process of the release before left without a number.
  await appendAsBefore(fresh, told[3]!)
  await append(fresh, told[4]!, told[5]!, told[6]!)

  for (const after of [0, 1, 2, 3, 4, 6, 7]) {
    const rows = await fresh.database.tenant(tenant, (tx) => eventsAfter(tx, tenant, after, 3))
    t.deepEqual(
      rows,
      told.slice(after, after + 3).map((one, at) => ({ ...one, sequence: after + at + 1 })),
      `after ${after}`,
    )
  }
  const records = await fresh.database.tenant(tenant, (tx) => auditEventsAfter(tx, tenant, 0, 10))
  const chain = new ChainCheck()
  t.true(records.every((record) => chain.add(record) === undefined))
  t.deepEqual(
    await sql(fresh.database)`select sequence, id from all_events order by sequence`,
    told.map(({ id }, at) => ({ sequence: at + 1, id })),
  )

  const hook = { tenantId: tenant, webhookId: random.uuid() }
  const missing = (max: number) =>
    fresh.database.tenant(tenant, (tx) =>
      eventsNotDelivered(tx, hook, new Date(0), ['admin.agent.updated'], max),
    )
  t.deepEqual(await missing(10), [], 'events that wait are not missing')
  const ids: string[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const taken = await fresh.database.system((tx) => takeEvents(tx, 2))
    ids.push(...taken.map(({ id }) => id))
  }
  t.deepEqual(ids.toSorted(), told.map(({ id }) => id).toSorted(), 'each is dispatched once')
  t.is((await missing(10)).length, 7)
  t.is((await missing(5)).length, 5)
})

test('only what was dispatched is swept, and nothing that a sink waits for', async (t) => {
  const fresh = await freshDatabase(t)
  await unfinish(fresh)
  const tenant = await subscribedTenant(fresh.database)
  await fresh.database.system((tx) => registerSink(tx, 'nats', new Date()))
  const [old, young] = [event(tenant, 'a', 120), event(tenant, 'b', 1)]
  await append(fresh, old, young)
  await fresh.database.system((tx) => takeEvents(tx, 1))
  const sweep = (before: number) =>
    fresh.database.system((tx) => sweepEvents(tx, new Date(Date.now() + before), 10))
  t.is(await sweep(MINUTE_MS), 0, 'a sink waits for it')
  const lease = { sink: 'nats', lease: random.uuid(), leaseSecs: 30 }
  await fresh.database.system(async (tx) => {
    await claimDueTenants(tx, lease, 10)
    await confirmEvents(tx, lease, tenant, 1)
  })
  const [cursor] = await sql<{ dueSince: Date }>(fresh.database)`
    select due_since as "dueSince" from event_sink_cursors`
  t.deepEqual(cursor?.dueSince, young.occurredAt)
  t.is(await sweep(-MINUTE_MS), 0)
  t.is(await sweep(MINUTE_MS), 1)
  t.is((await fresh.database.system((tx) => takeEvents(tx, 10))).length, 1)
})
