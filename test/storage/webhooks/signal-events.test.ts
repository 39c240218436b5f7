/** How many events of a tenant wait in its streams of security events. */
import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { disableOverdueStreams } from '../../../storage/webhooks/signal-events.js'
import { numberWaiting } from '../../../storage/platform/event-numbers.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database } from '../../../storage/platform/sql.js'
import { freshDatabase } from '../../support/storage/database.js'
import { sql } from '../../support/storage/sql.js'

const random = systemRandom(systemClock)

const insertTenants = (database: Database, ids: readonly string[], now: Date) =>
  sql(
    database,
    `with owner as (
       insert into organizations (id, name, slug, created_at, updated_at) values ($1, 'Org', 'org', $3, $3) returning id)
     insert into tenants (id, organization_id, slug, name, environment, admit_agents, created_at, updated_at)
     select t.id, owner.id, 'tenant-' || t.place, 'Tenant', 'sandbox', true, $3, $3
     from unnest($2::uuid[]) with ordinality t (id, place), owner`,
    [random.uuid(), ids, now],
  )

test('a tenant with too many waiting events loses its longest stream, others keep theirs', async (t) => {
  const { database } = await freshDatabase(t)
  const now = new Date()
  const run = (text: string, values: unknown[]) => sql(database, text, values)
  const stream = async (tenantId: string, count: number) => {
    const id = random.uuid()
    await run(
      `insert into signal_streams (tenant_id, receiver, id, status_since, read_to, created_at, updated_at)
       values ($1, 'receiver', $2, $3, 0, $3, $3)`,
      [tenantId, id, now],
    )
    await run(
      `insert into signal_events (tenant_id, stream_id, id, type, subject, event, issued_at)
       select $1, $2, gen_random_uuid(), 'type', '{}', '{}', $3 from generate_series(1, $4)`,
      [tenantId, id, now, count],
    )
    return id
  }
  const [filled, other] = [random.uuid(), random.uuid()]
  await insertTenants(database, [filled, other], now)
  await stream(filled, 4)
  const longest = await stream(filled, 5)
  await stream(filled, 3)
  await stream(other, 10)
  const past = new Date(0)
  const bounds = { now, pausedBefore: past, waitingBefore: past, most: 10, type: 'updated' }
  const sweep = () => database.system((tx) => disableOverdueStreams(tx, bounds, 10))

  t.is(await sweep(), 1)
  t.is(await sweep(), 0, 'seven of one tenant and ten of the other are not too many')
  const disabled = await run(`select id from signal_streams where status = 'disabled'`, [])
  t.deepEqual(disabled, [{ id: longest }])
})

test('a pass knows the tenants whose streams look at what it numbers', async (t) => {
  const { database } = await freshDatabase(t)
  const now = new Date()
  const tenantId = random.uuid()
  const pass = async () => {
    const data = { resource: { type: 'agent', id: 'agent' } }
    const event = {
      id: random.uuid(),
      tenantId,
      type: 'admin.agent.updated',
      data,
      occurredAt: now,
    }
    await database.system((tx) => appendEvents(tx, [event]))
    const { tenants } = await database.system((tx) => numberWaiting(tx))
    return tenants.map(({ numbered, isStreamed }) => ({ numbered, isStreamed }))
  }
  t.deepEqual(await pass(), [{ numbered: 1, isStreamed: false }])
  await insertTenants(database, [tenantId], now)
  await sql(
    database,
  )`insert into signal_streams (tenant_id, receiver, id, status_since, read_to, created_at, updated_at)
    values (${tenantId}, 'receiver', ${random.uuid()}, ${now}, 0, ${now}, ${now})`
  t.deepEqual(await pass(), [{ numbered: 1, isStreamed: true }])
  await sql(database)`update signal_streams set status = 'disabled' where tenant_id = ${tenantId}`
  t.deepEqual(await pass(), [{ numbered: 1, isStreamed: false }])
})
