/** How the service connects to NATS: TLS with a private CA, and passwords. `svc doctor` reports what is wrong. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { ExecutionContext } from 'ava'
import { connectToNats } from '../../../actors/webhooks/event-sinks/nats.js'
import type { NatsSettings } from '../../../actors/webhooks/event-sinks/settings.js'
import { eventSinkChecks } from '../../../runtime/cli/doctor/service-checks.js'
import { loadSettings } from '../../../runtime/configuration/load-settings.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { testWithProgram } from '../../support/service/programs.js'
import { startNats } from '../../support/service/servers.js'

function settingsOf(environment: Readonly<Record<string, string>>) {
  const loaded = loadSettings({ environment, cwd: '/', readFile: noFile })
  if (loaded.tag === 'refused') throw new Error(JSON.stringify(loaded.failures))
  return loaded.settings
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
  const patient = {
    settings,
    plane: 'all',
    dataDir: '/',
    isProduction: false,
    urls: undefined,
    ca: undefined,
  } as const
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
