/** Own service: it has two gateway threads. */
/** Two gateway threads in one process (docs/concepts/actor-runtime.md). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import test from 'ava'
import { callerOf } from '../../support/agents/journey.js'
import type { Api } from '../../support/api.js'
import {
  bodyCall,
  CREDENTIALS,
  type EgressHouse,
  reachableUpstream,
  SECRET,
  settingOf,
} from '../../support/vault/egress.js'
import { startReceiver } from '../../support/webhooks/receiver.js'
import { METRICS_TOKEN, metric, until } from '../../support/service/watch.js'
import { ownService } from '../../support/service/own-service.js'
import {
  OTHER_THREAD,
  throwIn,
  type TwoThreads,
  twoThreads,
} from '../../support/service/two-threads.js'

/** Whether node:http shares a port. */
const CAN_SHARE = Number(process.versions.node.split('.')[0]) > 20
const DISCOVERY = '/.well-known/openid-configuration'

const receiver = await startReceiver()
const reachable = await reachableUpstream()
const environment = {
  ...reachable.environment,
  SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
  SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
  SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
  SVC_INVITATIONS__ENABLED: 'true',
}
const threads = await twoThreads(environment)
const both: readonly (readonly [string, Api])[] = [
  ['main', threads.first],
  [OTHER_THREAD, threads.second],
]
test.after.always(async () => {
  await threads.end()
  await receiver.close()
  await reachable.end()
})

/** What the support for egress calls needs. */
const house = (api: Api) =>
  ({ running: threads.running, api, upstream: reachable.upstream }) as EgressHouse

async function samples(api: Api, name: string, label: string): Promise<Record<string, number>> {
  const { body } = await api.call('GET', '/metrics', { token: METRICS_TOKEN })
  const found: Record<string, number> = {}
  for (const line of String(body['text']).split('\n')) {
    const [, sample, labels = '', value] = /^([a-z_]+)\{(.*)\} (\S+)$/.exec(line) ?? []
    const key = new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1]
    if (sample === name && key !== undefined) found[key] = (found[key] ?? 0) + Number(value)
  }
  return found
}

/** Ends with the statuses of requests on fresh connections, which the kernel divides between the threads. */
async function freshConnections({ running, threadOf }: TwoThreads, count: number) {
  const statuses = new Set<number>()
  const answered = new Set<string | undefined>()
  for (let sent = 0; sent < count; sent += 1) {
    const { statusCode, headers, body } = await request(running.baseUrl + DISCOVERY, {
      reset: true,
    })
    await body.dump()
    const requestId = String(headers['x-request-id'])
    await until('the line of the log', () => threadOf(requestId) !== undefined)
    statuses.add(statusCode)
    answered.add(threadOf(requestId))
  }
  return { statuses: [...statuses], threads: [...answered].toSorted() }
}

test.serial('both threads answer on one port, and each is counted', async (t) => {
  const before = await samples(threads.first, 'svc_gateway_thread_requests_total', 'thread')
  const found = await freshConnections(threads, 64)
  t.deepEqual(found, { statuses: [200], threads: [OTHER_THREAD, 'main'] })
  const after = await samples(threads.second, 'svc_gateway_thread_requests_total', 'thread')
  for (const [thread] of both) t.true(after[thread]! > before[thread]!, thread)
})

test.serial('metrics of the process are the sum of its threads, whichever answers', async (t) => {
  const count = async (api: Api) =>
    (await samples(api, 'svc_http_requests_total', 'route'))[DISCOVERY] ?? 0
  const before = await count(threads.first)
  for (const [, api] of both) for (let sent = 0; sent < 5; sent += 1) await api.get(DISCOVERY)
  t.is(await count(threads.first), before + 10)
  t.is(await count(threads.second), before + 10)
  const pools = await samples(threads.second, 'svc_db_pool_connections_max', 'pool')
  t.is(pools['plane'], 8, 'the threads share max_connections')
  t.is(pools['identity'], 2)
  const ready = await samples(threads.second, 'svc_actor_ready', 'actor')
  t.deepEqual(
    Object.entries(ready).filter(([, value]) => value !== 1),
    [],
    'ready is not a sum',
  )
})

test.serial('a token of one thread is valid on the other, until one of them ends it', async (t) => {
  for (const [issuing, checking] of [
    [threads.first, threads.second],
    [threads.second, threads.first],
  ] as const) {
    const { token, tenantId } = await issuing.workspace()
    const { key, agentId } = await issuing.register(tenantId)
    const login = await issuing.login(key, { agent_id: agentId, tenant_id: tenantId })
    const own = String(login.body['access_token'])
    const statusOn = async (api: Api) => (await api.get('/api/v1/agents/me', own)).status
    t.is(await statusOn(checking), 200)
    const suspended = await issuing.post(`/api/v1/agents/${agentId}/suspend`, token)
    t.is(suspended.status, 200, JSON.stringify(suspended.body))
    t.is(await statusOn(issuing), 401, 'immediately')
    await until('the refusal', async () => {
      return (await statusOn(checking)) === 401
    })
  }
})

for (const [name, api] of both) {
  test.serial(`egress calls that ${name} takes reach the upstream`, async (t) => {
    const at = house(api)
    const setting = await settingOf(at)
    const call = { credential_id: setting.credentialId, method: 'GET' }
    const url = `${reachable.upstream.origin}/headers`
    for (const stream of [false, true]) {
      const answer = await api.post('/v1/proxy', setting.delegated, { ...call, url, stream })
      t.is(answer.status, 200)
      t.is(reachable.upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}`)
      t.false(JSON.stringify(answer.body).includes(SECRET), 'the echo is redacted')
    }
    const large = await api.call('POST', '/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${reachable.upstream.origin}/bytes/3000000`, {
        'x-svc-method': 'GET',
        'x-svc-stream-response': 'true',
      }),
    })
    t.is(large.status, 200)
    t.is(String(large.body['text']).length, 3_000_000)
  })

  test.serial(`events that ${name} causes are delivered to webhooks`, async (t) => {
    const { token } = await api.workspace()
    const path = `/of-${name}`
    const answer = await api.post('/api/v1/webhooks', token, {
      url: receiver.origin + path,
      event_types: ['vault.credential.created'],
    })
    t.is(answer.status, 201)
    const made = await api.post(CREDENTIALS, token, {
      provider: 'upstream',
      credential_type: 'api_key',
      label: 'Key',
      auth_scheme: 'bearer',
      allowed_hosts: ['api.example.com'],
      secret: SECRET,
    })
    t.is(made.status, 201)
    const [delivered] = await receiver.until(path, 1)
    t.regex(delivered!.body.toString(), /vault\.credential\.created/)
  })

  test.serial(`mail that ${name} causes is caught, and both threads show it`, async (t) => {
    const { token } = await api.workspace()
    const email = `of-${name}@harbour.test`
    t.is((await api.post('/api/v1/tenant-users', token, { email })).status, 201)
    for (const [, reader] of both) {
      const shown = async () => {
        const { body } = await reader.get('/dev/mail')
        return (body as unknown as { to: string; id: string }[]).find(({ to }) => to === email)
      }
      await until('the mail', async () => (await shown()) !== undefined)
      const { id } = (await shown())!
      t.is((await reader.get(`/dev/mail/${id}`)).body['to'], email)
    }
  })
}

test.serial('another process with several threads cannot take part of the port', async (t) => {
  const { port } = new URL(threads.running.baseUrl)
  const parser = { SVC_SERVER__HTTP1_PARSER: 'uwebsockets', SVC_SERVER__GATEWAY_THREADS: '2' }
  const environment = { ...(CAN_SHARE ? {} : parser), SVC_SERVER__PORT: port }
  const refused = await t.throwsAsync(ownService({ transport: 'plain_http', environment }))
  t.regex(refused.message, /cannot listen on .*: it is taken by another program/)
})

test.serial('a thread that fails is replaced while the other one serves', async (t) => {
  const caller = callerOf(threads.running.baseUrl)
  t.is((await samples(threads.first, 'svc_thread_up', 'thread'))[OTHER_THREAD], 1)
  const failed = () => threads.lines.filter(({ msg }) => msg === 'thread failed').length
  const ready = () => threads.lines.filter(({ msg }) => msg === 'thread restarted').length
  const statuses = new Set<number>()
  await throwIn(OTHER_THREAD)
  await until('the failure', () => failed() === 1)
  await until('the new thread', async () => {
    statuses.add((await threads.first.get(DISCOVERY)).status)
    return ready() === 1
  })
  t.deepEqual([...statuses], [200], 'the main thread serves')
  const found = await freshConnections(threads, 64)
  t.deepEqual(found, { statuses: [200], threads: [OTHER_THREAD, 'main'] })
  await until('readiness', async () => {
    return (await threads.second.get('/health/ready')).status === 200
  })
  const { key, agentId, tenantId } = await threads.second.workspace()
  await threads.second.login(key, { agent_id: agentId, tenant_id: tenantId }).gives(200)
  t.is(await metric(caller, 'svc_thread_restarts_total', { thread: OTHER_THREAD }), 1)
})

test('a stop answers what both threads have accepted', async (t) => {
  const ending = await twoThreads({ ...environment, SVC_SERVER__DRAIN_SECS: '1' })
  let open = true
  t.teardown(async () => {
    if (open) await ending.end()
  })
  const at = { ...house(ending.second), running: ending.running }
  const { direct, credentialId } = await settingOf(at)
  const slow = ending.second.call('POST', '/v1/proxy/body', {
    token: direct,
    headers: bodyCall({ credentialId }, `${reachable.upstream.origin}/late/3000`, {
      'x-svc-method': 'GET',
    }),
  })
  await until('the call', () => reachable.upstream.requests.some(({ url }) => url === '/late/3000'))
  open = false
  const ended = ending.running.service.stop()
  // The drain ends before the upstream answers.
  const statuses = new Set<number>()
  const notReady = new Set<string | undefined>()
  await until('unready on both threads', async () => {
    const { statusCode, headers, body } = await request(`${ending.running.baseUrl}/health/ready`, {
      reset: true,
    })
    await body.dump()
    statuses.add(statusCode)
    const requestId = String(headers['x-request-id'])
    await until('the line', () => ending.threadOf(requestId) !== undefined)
    if (statusCode === 503) notReady.add(ending.threadOf(requestId))
    return notReady.size === 2
  })
  const answer = await slow
  t.like(answer, { status: 200, body: { text: 'late' } })
  t.true(await ended, 'the stop was clean')
  t.false(ending.lines.some(({ msg }) => msg.startsWith('stopped uncleanly')))
  await ending.end()
})

test('a process that ends without a stop has the exit code that it named', async (t) => {
  const program = fileURLToPath(new URL('../../support/service/ends-at-once.js', import.meta.url))
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  t.deepEqual([code, signal], [7, null], complaints)
})

test('several threads on a parser that cannot share a port are refused', async (t) => {
  if (CAN_SHARE) return t.pass('this version of Node.js can share a port')
  const refused = await t.throwsAsync(
    ownService({
      transport: 'plain_http',
      environment: { SVC_SERVER__GATEWAY_THREADS: '2', SVC_SERVER__HTTP1_PARSER: 'node' },
    }),
  )
  t.regex(refused.message, /server\.http1_parser "node" needs Node\.js 22\.12/)
  t.regex(refused.message, /set server\.http1_parser = "uwebsockets"/)
})
