/** How many events of a tenant wait in its streams of security events. */
import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { disableOverdueStreams } from '../../../storage/webhooks/signal-events.js'
import { freshDatabase } from '../../support/storage/database.js'
import { sql } from '../../support/storage/sql.js'

const random = systemRandom(systemClock)

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
  await run(
    `with owner as (
       insert into organizations (id, name, slug, created_at, updated_at) values ($1, 'Org', 'org', $3, $3) returning id)
     insert into tenants (id, organization_id, slug, name, environment, admit_agents, created_at, updated_at)
     select t.id, owner.id, 'tenant-' || t.place, 'Tenant', 'sandbox', true, $3, $3
     from unnest($2::uuid[]) with ordinality t (id, place), owner`,
    [random.uuid(), [filled, other], now],
  )
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
