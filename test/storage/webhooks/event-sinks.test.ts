/** The cursors of event sinks: what waits, who has the lease, and what a late process can change. */
import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendEvents, numberedEventsAfter } from '../../../storage/platform/outbox.js'
import {
  claimDueTenants,
  confirmEvents,
  registerSink,
  sinkBacklog,
} from '../../../storage/webhooks/event-sinks.js'
import { sql } from '../../support/storage/sql.js'
import { freshDatabase } from '../../support/storage/database.js'
import { numberAll } from '../../support/storage/numbered.js'

const random = systemRandom(systemClock)

test('events wait from the registration of a sink on, and one process has each tenant', async (t) => {
  const { database } = await freshDatabase(t)
  const [one, other] = [random.uuid(), random.uuid()]
  const record = async (tenantId: string, count: number) => {
    await database.tenant(tenantId, (tx) => {
      const event = () => ({ id: random.uuid(), tenantId, occurredAt: new Date() })
      const all = Array.from({ length: count }, event)
      appendEvents(
        tx,
        all.map((each) => ({ ...each, type: 'org.created', data: {} })),
      )
    })
    await numberAll(database)
  }
  const by = (lease: string, leaseSecs = 30) => ({ sink: 'nats', lease, leaseSecs })
  const claim = (lease: string, leaseSecs?: number) =>
    database.system((tx) => claimDueTenants(tx, by(lease, leaseSecs), 10))
  const confirm = (lease: string, tenantId: string, sequence: number) =>
    database.system((tx) => confirmEvents(tx, by(lease), tenantId, sequence))
  const waiting = async () => (await database.system((tx) => sinkBacklog(tx, 'nats'))).events
  const [first, second] = [random.uuid(), random.uuid()]

  await record(one, 3)
  await database.system((tx) => registerSink(tx, 'nats', new Date()))
  t.deepEqual(await claim(first), [], 'earlier events do not wait')
  await record(one, 2)
  await record(other, 1)
  t.is(await waiting(), 3)

  const claimed = (await claim(first)).toSorted((a, b) => b.due - a.due)
  t.deepEqual(claimed, [
    { tenantId: one, sequence: 3, due: 5 },
    { tenantId: other, sequence: 0, due: 1 },
  ])
  t.deepEqual(await claim(second), [], 'the first process has both')
  const events = await database.system((tx) => numberedEventsAfter(tx, one, 3, 10))
  t.deepEqual(
    events.map(({ sequence }) => sequence),
    [4, 5],
  )

  await confirm(first, one, 4)
  t.is(await waiting(), 2)
  t.deepEqual(await claim(second), [{ tenantId: one, sequence: 4, due: 5 }])
  await confirm(first, one, 5)
  t.is(await waiting(), 2, 'a late process changes nothing')
  await record(one, 1)
  await confirm(second, one, 5)
  t.deepEqual(
    await claim(second),
    [{ tenantId: one, sequence: 5, due: 6 }],
    'recorded during the lease',
  )
  await confirm(second, one, 6)

  await sql(database, `update event_sink_cursors set leased_until = now() where sink = $1`, [
    'nats',
  ])
  t.deepEqual(await claim(second), [{ tenantId: other, sequence: 0, due: 1 }], 'after the lease')
  await confirm(second, other, 1)
  t.is(await waiting(), 0)
  t.is((await database.system((tx) => sinkBacklog(tx, 'nats'))).oldest, null)
})
