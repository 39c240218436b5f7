/**
 * A process of the async plane sends events to NATS JetStream, and is killed repeatedly, as the broker is: nothing is lost,
 * and the events of each tenant arrive in their order. 240 events and 2 kills. With TEST_LONG 10,200 and 20.
 */
import { jetstreamManager, jetstream, type JsMsg } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { ExecutionContext } from 'ava'
import { envelopeOf } from '../../../actors/domain/webhooks/envelope.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { eventsAfter } from '../../../storage/platform/outbox.js'
import { forgetSinks } from '../../../storage/webhooks/event-sinks.js'
import { sql } from '../../support/storage/sql.js'
import { testWithProgram } from '../../support/service/programs.js'
import { type Server, startNats } from '../../support/service/servers.js'
import { until } from '../../support/service/watch.js'
import type { freshDatabase } from '../../support/storage/database.js'
import { sinkStage, TYPE } from '../../support/webhooks/sink-stage.js'
import { IS_LONG } from '../../support/runs.js'

const EVENTS = IS_LONG ? 10_200 : 240
const KILLS = IS_LONG ? 20 : 2
const STREAM = 'SVC_EVENTS'
const random = systemRandom(systemClock)

testWithProgram('nats-server', 'of the events for NATS none is lost to kills', async (t, path) => {
  t.timeout(IS_LONG ? 1_200_000 : 180_000)
  const nats = await startNats(path)
  t.teardown(() => nats.stop())
  await createStream(nats)
  const stage = await sinkStage(t, {
    name: 'nats',
    environment: {
      SVC_EVENT_SINKS__NATS__SERVERS: `["127.0.0.1:${nats.port}"]`,
      SVC_EVENT_SINKS__NATS__TLS: 'false',
    },
  })
  const { database, tenants, write, caughtUp, backlog, lag } = stage
  await stage.start()
  await until('registered', stage.registered)

  await write(EVENTS / 4)
  // Only audited: not for receivers.
  await database.tenant(tenants[0]!, (tx) => appendAudit(tx, [auditOnly(tenants[0]!)]))
  await until('caught up', caughtUp)
  t.is((await stored(nats)).length, EVENTS / 4)

  // Without the broker the events wait, and the process serves.
  await nats.kill()
  await write(EVENTS / 4)
  await until('waiting', async () => (await backlog()) === EVENTS / 4)
  t.is((await stage.call('/health/ready', {})).status, 200)
  await until('lag', async () => (await lag()) > 0)

  await stage.kill()
  await nats.restart()
  await stage.start()
  await until('caught up', caughtUp)

  let written = EVENTS / 2
  for (let kill = 1; kill < KILLS; kill += 1) {
    const count = Math.floor(EVENTS / 2 / KILLS)
    await write(count)
    written += count
    await stage.kill()
    await stage.start()
  }
  await write(EVENTS - written)
  await until('caught up', caughtUp)
  await until('no lag', async () => (await lag()) === 0)

  const messages = await stored(nats)
  t.is(
    messages.length,
    EVENTS,
    'each event is stored once: the broker knows repetitions by their id',
  )
  for (const tenantId of tenants) {
    const events = await database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, EVENTS))
    const ofTenant = messages.filter(({ subject }) => subject === `svc.events.${tenantId}.${TYPE}`)
    t.deepEqual(
      ofTenant.map((message) => message.string()),
      // Swept events are no longer in the table.
      [
        ...ofTenant.slice(0, ofTenant.length - events.length).map((each) => each.string()),
        ...events.map(envelopeOf),
      ],
      'in the order of their numbers, with the body that webhooks get',
    )
    const places = ofTenant.map((message) => message.json<{ data: { at: number } }>().data.at)
    t.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    )
    t.is(ofTenant.length, EVENTS / tenants.length)
    for (const message of ofTenant) {
      const { event_id: id } = message.json<{ event_id: string }>()
      t.is(message.headers?.get('Nats-Msg-Id'), `${tenantId}.${id}`)
      t.is(message.headers?.get('event_id'), id)
    }
  }
  await forgets(t, database)
})

/** A sink that no process has in its configuration is forgotten after a week, with its cursors. */
async function forgets(
  t: ExecutionContext,
  database: Awaited<ReturnType<typeof freshDatabase>>['database'],
): Promise<void> {
  t.is(await database.system(forgetSinks), 0)
  await sql(database)`update event_sinks set seen_at = seen_at - interval '8 days'`
  t.is(await database.system(forgetSinks), 1)
  t.deepEqual(await sql(database)`select from event_sink_cursors`, [])
}

function auditOnly(tenantId: string) {
  return {
    id: random.uuid(),
    tenantId,
    type: 'admin.agent.suspended',
    occurredAt: new Date(),
    subject: null,
    actors: [],
    clientId: null,
    delegationId: null,
    grantId: null,
    resource: null,
    outcome: 'success' as const,
    requestId: null,
    ip: null,
    data: {},
  }
}

async function createStream({ port }: Server): Promise<void> {
  const connection = await connect({ servers: `127.0.0.1:${port}` })
  const manager = await jetstreamManager(connection)
  // The broker forgets ids after two minutes, and a busy machine may need longer to start a killed process.
  const window = 3_600_000_000_000
  await manager.streams.add({
    name: STREAM,
    subjects: ['svc.events.>'],
    duplicate_window: window,
  })
  await connection.close()
}

/** All messages of the stream, in order. */
async function stored({ port }: Server): Promise<JsMsg[]> {
  const connection = await connect({ servers: `127.0.0.1:${port}` })
  try {
    const manager = await jetstreamManager(connection)
    const { state } = await manager.streams.info(STREAM)
    const consumer = await jetstream(connection).consumers.get(STREAM)
    const found: JsMsg[] = []
    if (state.messages === 0) return found
    for await (const message of await consumer.fetch({
      max_messages: state.messages,
      expires: 5_000,
    })) {
      found.push(message)
      if (found.length === state.messages) break
    }
    return found
  } finally {
    await connection.close()
  }
}
