/** One egress call, followed through its trace at a collector and through `svc trace`. */
import { Readable } from 'node:stream'
import anyTest, { type TestFn } from 'ava'
import { Command } from 'commander'
import { openDatabaseTools } from '../../../runtime/cli/key-tools.js'
import { traceCommand, type TraceEntry } from '../../../runtime/cli/trace.js'
import { type Collector, startCollector } from '../../support/operations/collector.js'
import { notThrough } from '../../support/fleet/through.js'
import { until } from '../../support/service/watch.js'
import {
  closedCalls,
  type EgressHouse,
  egressHouse,
  type Setting,
  settingOf,
} from '../../support/vault/egress.js'
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.js'

const WITHIN_MS = 30_000
const SERVER = 2
const CLIENT = 3

type Scene = {
  readonly collector: Collector
  readonly receiver: Receiver
  readonly house: EgressHouse
  readonly setting: Setting
  readonly lines: string[]
}
const test = anyTest as TestFn<Scene>

test.before(async (t) => {
  notThrough('it sends what a proxy sends')
  t.timeout(120_000)
  const collector = await startCollector()
  const receiver = await startReceiver()
  const lines: string[] = []
  const house = await egressHouse({
    onLog: (line) => void lines.push(line),
    environment: {
      SVC_TELEMETRY__ENABLED: 'true',
      SVC_TELEMETRY__OTLP_ENDPOINT: collector.endpoint,
      SVC_TELEMETRY__HEADERS: 'x-collector-key=k1,x-other=k2',
      SVC_TELEMETRY__SERVICE_NAME: 'svc-test',
      SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1"]',
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
    },
  })
  const setting = await settingOf(house)
  t.context = { collector, receiver, house, setting, lines }
})
test.after.always(({ context: { collector } }) => collector?.close())

const call = ({ house, setting }: Scene, headers: Record<string, string> = {}) =>
  house.send('/v1/proxy', {
    token: setting.delegated,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      credential_id: setting.credentialId,
      method: 'GET',
      url: `${house.upstream.origin}/headers`,
    }),
  })

const spansOf = ({ collector }: Scene, traceId: string) =>
  collector.spans.filter((span) => span.traceId === traceId)

test.serial(
  'a request is one trace over gateway, actors, threads, SQL and the upstream',
  async (t) => {
    const { house, collector, setting } = t.context
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const parent = 'b7ad6b7169203331'
    const answer = await call(t.context, { traceparent: `00-${traceId}-${parent}-01` })
    t.is(answer.statusCode, 200)
    await answer.body.dump()
    const mine = () => spansOf(t.context, traceId)
    await until('the spans arrive', () =>
      Promise.resolve(
        mine().some(({ kind }) => kind === SERVER) &&
          mine().some(({ attributes }) => attributes['server.address'] !== undefined),
      ),
    )
    const root = mine().find(({ kind }) => kind === SERVER)!
    t.is(root.name, 'POST /v1/proxy')
    t.is(root.parentSpanId, parent)
    t.is(root.attributes['http.route'], '/v1/proxy')
    t.is(root.attributes['http.response.status_code'], 200)
    t.is(root.attributes['svc.request_id'], answer.headers['x-request-id'])
    t.is(root.attributes['svc.tenant_id'], setting.tenantId)
    t.is(root.resource['service.name'], 'svc-test')
    t.is(root.resource['thread.name'], 'main')

    const named = new Map(mine().map((span) => [span.spanId, span]))
    for (const span of mine()) {
      t.true(span === root || named.has(span.parentSpanId ?? ''), `${span.name} hangs in the tree`)
      t.true(span.endMs >= span.startMs)
    }
    const verify = mine().find(({ name }) => name === 'tokens.authenticate')
    t.is(verify?.parentSpanId, root.spanId)
    // The asking side and the serving side of the thread.
    const proxies = mine().filter(({ name }) => name === 'egress.proxyRequest')
    t.deepEqual(proxies.map(({ resource }) => resource['thread.name']).toSorted(), [
      'egress',
      'main',
    ])
    const sql = mine().filter(({ attributes }) => attributes['db.system.name'] === 'postgresql')
    t.true(sql.some(({ resource }) => resource['thread.name'] === 'egress'))
    const out = mine().find(({ attributes }) => attributes['server.address'] !== undefined)!
    t.is(out.kind, CLIENT)
    t.is(out.attributes['http.response.status_code'], 200)
    t.is(house.upstream.requests.at(-1)!.headers['traceparent'], `00-${traceId}-${out.spanId}-01`)
    t.is(collector.headers[0]?.['x-collector-key'], 'k1')
    t.is(collector.headers[0]?.['x-other'], 'k2')
  },
)

test.serial('a trusted sender that does not record its trace is obeyed', async (t) => {
  const traceId = '1af7651916cd43dd8448eb211c80319c'
  const answer = await call(t.context, { traceparent: `00-${traceId}-b7ad6b7169203331-00` })
  await answer.body.dump()
  const sent = t.context.house.upstream.requests.at(-1)!.headers['traceparent']
  t.regex(String(sent), new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
  const later = await call(t.context)
  await later.body.dump()
  const id = String(later.headers['x-request-id']).replaceAll('-', '')
  await until('a later trace arrives', () =>
    Promise.resolve(spansOf(t.context, id).some(({ kind }) => kind === SERVER)),
  )
  t.deepEqual(spansOf(t.context, traceId), [])
})

test.serial('no attribute of a span is a secret', (t) => {
  const text = JSON.stringify(t.context.collector.spans)
  t.false(text.includes('canary'))
  t.false(text.includes(t.context.setting.delegated))
})

test.serial('svc trace: log, audit, egress and webhook attempts in order of time', async (t) => {
  const { house, setting, receiver, lines, collector } = t.context
  const { api, running } = house
  const made = await api.post('/api/v1/webhooks', setting.operator, {
    url: `${receiver.origin}/hook`,
    event_types: ['vault.credential.accessed'],
  })
  t.is(made.status, 201)
  const before = (await closedCalls(house, setting.tenantId, 0)).length
  const answer = await call(t.context)
  await answer.body.dump()
  const requestId = String(answer.headers['x-request-id'])
  await receiver.until('/hook', 1, WITHIN_MS)
  await closedCalls(house, setting.tenantId, before + 1)

  const trace = async (...more: string[]) => {
    const said = { out: '', err: '', code: 0 }
    const program = new Command().exitOverride()
    traceCommand(program, {
      open: () => openDatabaseTools({ environment: { DATABASE_URL: running.db.url }, cwd: '/' }),
      stdin: Readable.from([lines.join('')]),
      out: (text) => (said.out += text),
      err: (text) => (said.err += text),
      exitWith: (code) => (said.code = code),
    })
    await program.parseAsync(['node', 'svc', 'trace', ...more])
    return said
  }
  const entriesOf = (text: string) =>
    (JSON.parse(text) as { entries: readonly TraceEntry[] }).entries
  await until('the attempt is recorded', async () =>
    entriesOf((await trace(requestId, '--json')).out).some(
      ({ source, response_status: status }) => source === 'webhook' && status === 200,
    ),
  )
  const { out, code, err } = await trace(requestId, '--json', '--log', '-')
  t.is(code, 0, err)
  t.is((JSON.parse(out) as { request_id: string }).request_id, requestId)
  const entries = entriesOf(out)
  const times = entries.map(({ at }) => Date.parse(at))
  t.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  )
  const of = (source: string) => entries.filter((entry) => entry.source === source)
  t.true(of('log').some(({ msg, route }) => msg === 'request' && route === '/v1/proxy'))
  t.deepEqual(
    of('audit')
      .map(({ type }) => type)
      .toSorted(),
    ['egress.stream.closed', 'vault.credential.accessed'],
  )
  const [egress] = of('egress')
  t.is(of('egress').length, 1)
  t.is(egress?.['outcome'], 'completed')
  t.is(egress?.['method'], 'GET')
  t.is(typeof egress?.['ended_at'], 'string')
  const [attempt] = of('webhook')
  t.is(attempt?.['event_type'], 'vault.credential.accessed')
  t.is(attempt?.['response_status'], 200)
  t.is(attempt?.['url'], `${receiver.origin}/hook`)

  const text = await trace(requestId)
  t.regex(text.out, /audit\s+vault\.credential\.accessed/)
  const unknown = await trace('no-such-request', '--json')
  t.deepEqual(entriesOf(unknown.out), [])
  t.is((await trace('a b')).code, 1)

  // The delivery belongs to the trace with the digits of the request id.
  const id = requestId.replaceAll('-', '')
  await until('the span of the delivery arrives', () =>
    Promise.resolve(
      spansOf(t.context, id).some(({ name }) => name === 'webhook vault.credential.accessed'),
    ),
  )
  const delivered = collector.spans.find(
    ({ traceId, name }) => traceId === id && name.startsWith('webhook '),
  )!
  t.is(delivered.resource['thread.name'], 'webhooks')
  const [hook] = receiver.at('/hook')
  t.regex(String(hook?.headers['traceparent']), new RegExp(`^00-${id}-[0-9a-f]{16}-01$`))
})
