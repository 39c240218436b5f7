/** Own service: it kills a process of its deployment. */
/**
 * The async plane is killed repeatedly while it delivers to a receiver that sometimes fails and
 * sometimes hangs: nothing is lost, and repeated deliveries have the same delivery id. 500 events
 * and 5 kills. With TEST_LONG 10,000 and 20, and database connections cut in between.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { Client } from 'pg'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { svcBeside } from '../../flows/vault/command.js'
import { type Received, startReceiver } from '../../support/webhooks/receiver.js'
import { ownService } from '../../support/service/own-service.js'
import { subscriber } from '../../support/webhooks/webhooks.js'
import { IS_LONG } from '../../support/runs.js'

const EVENTS = IS_LONG ? 10_000 : 500
const KILLS = IS_LONG ? 20 : 5
/** Each subscription has another type, so that an event is one delivery. */
const TYPES = [
  'security.suspicious_activity',
  'vault.credential.created',
  'vault.credential.accessed',
  'vault.grant.revoked',
  'org.created',
  'org.suspended',
  'org.reactivated',
  'org.tenant.suspended',
  'org.tenant.reactivated',
  'security.refresh_token.reuse',
]
const SUBSCRIPTIONS = TYPES.length
const random = systemRandom(systemClock)

test(`of ${EVENTS} events none is lost to ${KILLS} kills`, async (t) => {
  t.timeout(IS_LONG ? 1_200_000 : 240_000)
  const accepted = new Map<string, string[]>()
  let count = 0
  const receiver = await startReceiver((request: Received) => {
    count += 1
    if (count % 100 === 50) return () => undefined
    if (count % 20 === 10) return 503
    const { event_id: eventId } = JSON.parse(request.body.toString()) as { event_id: string }
    const ids = accepted.get(eventId) ?? []
    accepted.set(eventId, [...ids, String(request.headers['x-svc-delivery'])])
    return 200
  })
  const environment = {
    SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
    SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_WEBHOOKS__RETRY_SCHEDULE_SECS: '[0, 1, 1, 1, 1, 1, 1, 1, 1, 1]',
    SVC_WEBHOOKS__TIMEOUT_SECS: '2',
  }
  const running = await ownService({
    environment: { ...environment, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  t.teardown(async () => {
    await running.end()
    await receiver.close()
  })
  const { db } = running
  const { tenantId, subscribe } = await subscriber(running, receiver)
  for (const type of TYPES) await subscribe({ event_types: [type] })

  const start = () => svcBeside(t, running, { ...environment, SVC_RUNTIME_PLANE: 'async' })
  let worker = await start()
  const written = new Set<string>()
  const committed = async (ids: readonly string[]) => {
    const { rows } = await db.database.tenant(tenantId, (tx) =>
      tx.query<{ id: string }>({
        name: 'test.committed',
        text: `select id from all_events where tenant_id = $1 and id = any($2::uuid[])
               union all
               select (l.line::jsonb ->> 'id')::uuid
               from unnumbered_events u, unnest(string_to_array(u.line, chr(10))) l (line)
               where u.tenant_id = $1 and (l.line::jsonb ->> 'id')::uuid = any($2::uuid[])`,
        values: [tenantId, ids],
      }),
    )
    return rows.map(({ id }) => id)
  }
  const write = async () => {
    const batch = Math.max(1, Math.floor(EVENTS / 100))
    while (written.size < EVENTS) {
      const events = Array.from({ length: Math.min(batch, EVENTS - written.size) }, (_, at) => {
        const type = TYPES[(written.size + at) % TYPES.length]!
        return { id: random.uuid(), tenantId, type, data: { at }, occurredAt: new Date() }
      })
      // A cut connection leaves the outcome of the commit unknown, so check it.
      await db.database.tenant(tenantId, (tx) => appendEvents(tx, events)).catch(() => sleep(100))
      for (const id of await committed(events.map(({ id }) => id))) written.add(id)
      await sleep(20)
    }
  }
  const reached = async (size: number) => {
    for (let turn = 0; accepted.size < size && turn < 12_000; turn += 1) await sleep(10)
  }
  const writing = write()
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const part = EVENTS / (KILLS + 1)
    await reached(part * (kill - 0.5))
    if (IS_LONG) await cutConnections(db.superuserUrl)
    await reached(part * kill)
    worker.child.kill('SIGKILL')
    await worker.ended()
    worker = await start()
  }
  await writing
  await reached(EVENTS)

  const repeated = [...accepted.values()].filter((ids) => ids.length > 1)
  t.log({ events: EVENTS, kills: KILLS, requests: count, repeated: repeated.length })
  t.deepEqual(
    [...written].filter((id) => !accepted.has(id)),
    [],
    'nothing is lost',
  )
  t.true(repeated.every((ids) => new Set(ids).size === 1))
  // At most the attempts that a lane had in progress when it was killed.
  const mishaps = IS_LONG ? KILLS * 2 : KILLS
  t.true(repeated.length <= mishaps * SUBSCRIPTIONS * 4)
  for (let turn = 0; turn < 500 && (await open(tenantId)) > 0; turn += 1) await sleep(20)
  t.is(await open(tenantId), 0, 'every delivery is written down as succeeded')

  async function open(tenant: string): Promise<number> {
    return db.database.tenant(tenant, async (tx) => {
      const { rows } = await tx.query<{ count: number }>({
        name: 'test.open',
        text: `select count(*)::int as count from webhook_deliveries where status <> 'succeeded'`,
      })
      return rows[0]!.count
    })
  }
})

/** Simulates a fail-over of the database. */
async function cutConnections(superuserUrl: string): Promise<void> {
  const client = new Client({ connectionString: superuserUrl })
  await client.connect()
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
       and application_name in ('svc plane', 'svc listener')`,
  )
  await client.end()
}
