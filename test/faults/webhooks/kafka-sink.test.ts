/**
 * A process of the async plane sends events to a broker of the Kafka protocol. It is killed, and the broker does not
 * answer for a while: nothing is lost, and the events of each tenant arrive in their order.
 */
import { envelopeOf } from '../../../actors/domain/webhooks/envelope.js'
import { eventsAfter } from '../../../storage/platform/outbox.js'
import { testWithProgram } from '../../support/service/programs.js'
import { until } from '../../support/service/watch.js'
import { startKafka } from '../../support/webhooks/kafka.js'
import { sinkStage, TYPE } from '../../support/webhooks/sink-stage.js'
import { IS_LONG } from '../../support/runs.js'

const EVENTS = IS_LONG ? 6_000 : 90
const TOPIC = 'svc.events'

testWithProgram('kcat', 'of the events for Kafka none is lost to kills', async (t, path) => {
  t.timeout(IS_LONG ? 1_200_000 : 180_000)
  const kafka = await startKafka(path, TOPIC)
  t.teardown(() => kafka.stop())
  const stage = await sinkStage(t, {
    name: 'kafka',
    environment: {
      SVC_EVENT_SINKS__KAFKA__BOOTSTRAP_SERVERS: JSON.stringify([kafka.address]),
      SVC_EVENT_SINKS__KAFKA__TOPIC: TOPIC,
      SVC_EVENT_SINKS__KAFKA__TLS: 'false',
    },
  })
  const { database, tenants, write, caughtUp, backlog, lag } = stage
  await stage.start()
  await until('registered', stage.registered)
  await write(EVENTS / 3)
  await until('caught up', caughtUp)
  t.is((await kafka.messages(TOPIC)).length, EVENTS / 3)

  // While the broker does not answer, the events wait and the process serves.
  kafka.freeze()
  await write(EVENTS / 3)
  await until('lag', async () => (await lag()) > 0)
  await until('waiting', async () => (await backlog()) === EVENTS / 3)
  t.is((await stage.call('/health/ready', {})).status, 200)
  await stage.kill()
  kafka.thaw()
  await stage.start()
  await until('caught up', caughtUp)

  await write(EVENTS / 3)
  if (IS_LONG) {
    await stage.kill()
    await stage.start()
  }
  await until('caught up', caughtUp)
  await until('no lag', async () => (await lag()) === 0)

  const messages = await kafka.messages(TOPIC)
  for (const tenantId of tenants) {
    const ofTenant = messages.filter(({ key }) => key === tenantId)
    t.is(new Set(ofTenant.map(({ partition }) => partition)).size, 1, 'a tenant has one partition')
    const first = new Map<string | undefined, string>()
    for (const { headers, payload } of ofTenant) {
      t.is(headers['type'], TYPE)
      t.is(headers['event_id'], (JSON.parse(payload) as { event_id: string }).event_id)
      if (!first.has(headers['event_id'])) first.set(headers['event_id'], payload)
    }
    const events = await database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, EVENTS))
    t.is(events.length, EVENTS / tenants.length)
    t.deepEqual([...first.values()], events.map(envelopeOf), 'in the order of their numbers')
  }
  // A repetition holds at most the batches that were under way when the process was killed.
  t.true(messages.length <= EVENTS + 2 * tenants.length * 100, `${messages.length} messages`)
})
