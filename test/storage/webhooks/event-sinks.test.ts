/** The cursors of event sinks, and how the service connects to brokers: TLS with a private CA, passwords of NATS. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect as dial } from 'node:net'
import { createServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
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
import { kafkaSink } from '../../../actors/webhooks/event-sinks/kafka.js'
import { connectToNats } from '../../../actors/webhooks/event-sinks/nats.js'
import type { NatsSettings } from '../../../actors/webhooks/event-sinks/settings.js'
import { eventSinkChecks } from '../../../runtime/cli/doctor/service-checks.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { testWithProgram } from '../../support/service/programs.js'
import { startNats } from '../../support/service/servers.js'
import { freePort } from '../../support/service/settings.js'
import { startKafka } from '../../support/webhooks/kafka.js'

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

  await sql(database)`update event_sink_cursors set leased_until = now() where sink = ${'nats'}`
  t.deepEqual(await claim(second), [{ tenantId: other, sequence: 0, due: 1 }], 'after the lease')
  await confirm(second, other, 1)
  t.is(await waiting(), 0)
  t.is((await database.system((tx) => sinkBacklog(tx, 'nats'))).oldest, null)
})

function settingsOf(environment: Readonly<Record<string, string>>) {
  const loaded = loadSettings({ environment, cwd: '/', readFile: noFile })
  if (loaded.tag === 'refused') throw new Error(JSON.stringify(loaded.failures))
  return loaded.settings
}

function patientOf(settings: ReturnType<typeof settingsOf>) {
  const isProduction = false
  return {
    settings,
    plane: 'all',
    dataDir: '/',
    isProduction,
    urls: undefined,
    ca: undefined,
  } as const
}

function noFile(): string {
  throw Object.assign(new Error('none'), { code: 'ENOENT' })
}

testWithProgram(
  'nats-server',
  'TLS is required, with a trusted CA and the password',
  async (t, path) => {
    const certificate = makeCertificate()
    t.teardown(() => certificate.remove())
    const { certPath, keyPath } = certificate
    const login = ['--user', 'svc', '--pass', 'right']
    const secure = await startNats(path, [
      '--tls',
      '--tlscert',
      certPath,
      '--tlskey',
      keyPath,
      ...login,
    ])
    t.teardown(() => secure.stop())
    const plain = await startNats(path)
    t.teardown(() => plain.stop())
    const at = (port: number, more: Readonly<Record<string, string>> = {}): NatsSettings =>
      settingsOf({
        SVC_EVENT_SINKS__NATS__SERVERS: `["localhost:${port}"]`,
        SVC_EVENT_SINKS__NATS__USERNAME: 'svc',
        SVC_EVENT_SINKS__NATS__PASSWORD: 'right',
        ...more,
      }).event_sinks.nats
    const trusted = { SVC_EVENT_SINKS__NATS__CA_PEM_PATH: certPath }
    const connection = await connectToNats(at(secure.port, trusted))
    t.false(connection.isClosed())
    await connection.close()
    await refuses(t, 'an unknown CA', at(secure.port))
    await refuses(
      t,
      'a wrong password',
      at(secure.port, { ...trusted, SVC_EVENT_SINKS__NATS__PASSWORD: 'wrong' }),
    )
    await refuses(t, 'a server without TLS', at(plain.port))
  },
)

async function refuses(t: ExecutionContext, what: string, settings: NatsSettings): Promise<void> {
  await t.throwsAsync(
    async () => {
      const connection = await connectToNats(settings)
      await connection.close()
    },
    undefined,
    what,
  )
}

testWithProgram('nats-server', 'svc doctor reports the broker and its stream', async (t, path) => {
  const nats = await startNats(path)
  t.teardown(() => nats.stop())
  const settings = settingsOf({
    SVC_EVENT_SINKS__NATS__SERVERS: `["127.0.0.1:${nats.port}"]`,
    SVC_EVENT_SINKS__NATS__TLS: 'false',
  })
  const patient = patientOf(settings)
  const check = async () => (await eventSinkChecks(patient))[0]
  t.like(await check(), { name: 'event_sinks', verdict: 'fail' })
  t.regex((await check())!.fix, /nats stream add SVC_EVENTS --subjects 'svc\.events\.>'/)

  const connection = await connect({ servers: `127.0.0.1:${nats.port}` })
  const manager = await jetstreamManager(connection)
  await manager.streams.add({ name: 'SVC_EVENTS', subjects: ['other'] })
  t.regex((await check())!.detail, /has the subjects other/)
  await manager.streams.update('SVC_EVENTS', { subjects: ['svc.events.>'] })
  await connection.close()
  t.like(await check(), { verdict: 'ok' })

  await nats.kill()
  t.like(await check(), { verdict: 'fail' })
  t.deepEqual(await eventSinkChecks({ ...patient, settings: settingsOf({}) }), [])
})

testWithProgram('kcat', 'Kafka over TLS needs a trusted CA', async (t, path) => {
  const kafka = await startKafka(path, 'svc.events')
  t.teardown(() => kafka.stop())
  const certificate = makeCertificate()
  t.teardown(() => certificate.remove())
  const [host, port] = kafka.address.split(':') as [string, string]
  const options = {
    cert: readFileSync(certificate.certPath),
    key: readFileSync(certificate.keyPath),
  }
  const relay = createServer(options, (socket) => {
    const broker = dial(Number(port), host)
    socket.on('error', () => broker.destroy())
    broker.on('error', () => socket.destroy())
    socket.pipe(broker).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => relay.close())
  const secure = `localhost:${(relay.address() as AddressInfo).port}`
  const connects = async (
    addresses: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ) => {
    const { event_sinks: sinks } = settingsOf({
      SVC_EVENT_SINKS__KAFKA__BOOTSTRAP_SERVERS: JSON.stringify(addresses),
      ...more,
    })
    const connection = await kafkaSink(sinks.kafka).connect()
    t.true(connection.isOpen())
    await connection.close()
    t.false(connection.isOpen())
  }
  await connects([secure], { SVC_EVENT_SINKS__KAFKA__CA_PEM_PATH: certificate.certPath })
  await connects([kafka.address], { SVC_EVENT_SINKS__KAFKA__TLS: 'false' })
  const closed = `127.0.0.1:${await freePort()}`
  await connects([closed, kafka.address], { SVC_EVENT_SINKS__KAFKA__TLS: 'false' })
  await t.throwsAsync(connects([closed, closed]), undefined, 'no server')
  await t.throwsAsync(connects([secure]), undefined, 'an unknown CA')
  await t.throwsAsync(connects([kafka.address]), undefined, 'a broker without TLS')
})

testWithProgram('kcat', 'svc doctor reports the Kafka broker and its topic', async (t, path) => {
  const kafka = await startKafka(path, 'other')
  t.teardown(() => kafka.stop())
  const check = async (more: Readonly<Record<string, string>>) => {
    const settings = settingsOf({
      SVC_EVENT_SINKS__KAFKA__BOOTSTRAP_SERVERS: JSON.stringify([kafka.address]),
      SVC_EVENT_SINKS__KAFKA__TLS: 'false',
      ...more,
    })
    return (await eventSinkChecks(patientOf(settings)))[0]
  }
  const topic = (name: string) => check({ SVC_EVENT_SINKS__KAFKA__TOPIC: name })
  t.like(await topic('other'), { name: 'event_sinks', verdict: 'ok' })
  const missing = await topic('svc.events')
  t.is(missing?.verdict, 'fail')
  t.regex(missing!.fix, /kafka-topics\.sh --create --topic svc\.events/)
  const nowhere = JSON.stringify([`127.0.0.1:${await freePort()}`])
  t.like(await check({ SVC_EVENT_SINKS__KAFKA__BOOTSTRAP_SERVERS: nowhere }), { verdict: 'fail' })
})
