/** Own service: it stops its database. */
/** The database goes down under the whole service, or loses a session, and recovers. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import {
  type Answer,
  bootstrap,
  BOOTSTRAP,
  type Caller,
  callerOf,
  clientToken,
  demand,
  login,
  REGISTER,
  start,
  type Workspace,
} from '../../support/agents/journey.js'
import { type OwnPostgres, ownPostgres } from '../../support/storage/outage.js'
import { ownService } from '../../support/service/own-service.js'
import type { TestService } from '../../support/service.js'
import { isReady, metric, METRICS_TOKEN, until, watchLive } from '../../support/service/watch.js'
import { IS_LONG } from '../../support/runs.js'

/** Rounds of all requests while the database is down. */
const ROUNDS = IS_LONG ? 40 : 3
/** Times at which every session is killed. */
const KILLS = IS_LONG ? 15 : 4
/** An idle connection is closed after 1 s. */
const REST_MS = 3_000

let postgres: OwnPostgres
let running: TestService
let http: Caller
let space: Workspace
/** Connections that listeners, probes and background work keep open. */
let connectionsAtRest: number

test.before(async () => {
  postgres = await ownPostgres()
  running = await ownService({
    environment: {
      DATABASE_URL: postgres.url,
      SVC_DATABASE__IDLE_TIMEOUT_SECS: '1',
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
    },
  })
  http = callerOf(running.baseUrl)
  space = await bootstrap(http)
  await sleep(REST_MS)
  connectionsAtRest = await mostConnections()
})
test.after.always(async () => {
  await running?.end()
  await postgres?.end()
})

const authorization = () => `Bearer ${space.accessToken}`

/** Requests that need the database. */
const NEEDY: readonly [string, () => Promise<Answer>][] = [
  [
    'the start of a registration',
    async () => http.post(`${REGISTER}/pow`, await registrationBody()),
  ],
  ['a login', () => http.post('/api/v1/agents/auth/challenge', { agent_id: space.agentId })],
  ['a token', () => clientToken(http, space)],
  [
    'a refresh',
    () =>
      http.form('/oauth/token', {
        grant_type: 'refresh_token',
        client_id: space.agentId,
        refresh_token: 'svcr_unknown',
      }),
  ],
  [
    'a list',
    () => http.call('/api/v1/applications', { headers: { authorization: authorization() } }),
  ],
]

let registration: Record<string, unknown> | undefined
async function registrationBody(): Promise<Record<string, unknown>> {
  if (registration !== undefined) return registration
  const { body } = demand(await http.call(BOOTSTRAP), 200)
  const { key } = await start(http)
  registration = {
    name: 'Needy',
    tenant_id: body['control_plane_tenant_id'],
    ...key.registration({
      issuer: String(body['issuer']),
      tenantId: String(body['control_plane_tenant_id']),
    }),
  }
  return registration
}

function isProblem503(t: ExecutionContext, what: string, { status, headers, body }: Answer): void {
  t.is(status, 503, `${what}: ${JSON.stringify(body)}`)
  t.is(headers.get('content-type'), 'application/problem+json', what)
  t.regex(headers.get('retry-after') ?? '', /^\d+$/, what)
  t.is(body['request_id'], headers.get('x-request-id'), what)
  t.like(body, { status: 503, error: 'service_unavailable' })
}

async function connections(): Promise<number> {
  const rows = await postgres.ask<{ pid: number }>(
    `select pid from pg_stat_activity where usename = 'svc'`,
  )
  return rows.length
}

/** Measured over a while at rest, because background work comes and goes. */
async function mostConnections(): Promise<number> {
  let most = 0
  for (const end = performance.now() + REST_MS; performance.now() < end; await sleep(100)) {
    most = Math.max(most, await connections())
  }
  return most
}

const atRest = async () => (await connections()) <= connectionsAtRest

const restarts = () => metric(http, 'svc_actor_restarts_total')
const defects = () => metric(http, 'svc_actor_unavailable_total', { reason: 'failed' })

test.serial('while the database is down the service reports it, and recovers', async (t) => {
  await registrationBody()
  const pulse = watchLive(http)
  await postgres.stop()
  await until('not ready', async () => !(await isReady(http)))

  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [what, ask] of NEEDY) isProblem503(t, what, await ask())
    await sleep(50)
  }
  const asked = ROUNDS * NEEDY.length
  for (const path of ['/.well-known/jwks.json', '/.well-known/openid-configuration']) {
    t.is((await http.call(path)).status, 200, path)
  }
  t.true((await metric(http, 'svc_actor_unavailable_total', { reason: 'dependency' })) >= asked - 5)

  await postgres.start()
  await until('ready again', () => isReady(http))
  demand(await login(http, space), 200)
  demand(await clientToken(http, space), 200)
  await bootstrap(http)

  const { probes, bad } = await pulse.stop()
  t.true(probes > 0)
  t.is(bad, 0, 'the process was live throughout')
  t.is(await restarts(), 0, 'nothing was restarted')
  t.is(await defects(), 0, 'an outage is not a defect')
  await until('connections are given back', atRest)
})

test.serial(
  'a stopped database delays requests for a bounded time, and nothing else',
  async (t) => {
    const pulse = watchLive(http)
    t.teardown(() => pulse.stop())
    const thaw = await postgres.freeze()
    try {
      // Some requests find a recently used connection, later ones have to open one.
      const held = NEEDY.map(([, ask]) => ask())
      await until('not ready', async () => !(await isReady(http)))
      for (let round = 0; round < 2; round += 1) held.push(...NEEDY.map(([, ask]) => ask()))
      demand(await http.call('/.well-known/jwks.json'), 200)
      // Answered while it is still stopped.
      for (const answer of await Promise.all(held)) isProblem503(t, 'while it is stopped', answer)
    } finally {
      thaw()
    }
    await until('ready again', () => isReady(http))
    demand(await login(http, space), 200)
    demand(await clientToken(http, space), 200)
    t.is((await pulse.stop()).bad, 0)
    t.is(await restarts(), 0)
    t.is(await defects(), 0)
    await until('connections are given back', atRest)
  },
)

test.serial('killed sessions cost some 503 under load, no 500, and nothing twice', async (t) => {
  const over = new AbortController()
  const seen = new Map<number, number>()
  const count = ({ status }: Answer) => seen.set(status, (seen.get(status) ?? 0) + 1)
  const create = (key: string) =>
    http.post(
      '/api/v1/applications',
      { name: key, redirect_uris: ['https://app.example/cb'] },
      { authorization: authorization(), 'idempotency-key': key },
    )
  const kept: string[] = []
  const creating = async () => {
    while (!over.signal.aborted) {
      const key = randomUUID()
      let answer = await create(key)
      count(answer)
      while (answer.status === 503) {
        answer = await create(key)
        count(answer)
      }
      if (answer.status === 201) kept.push(key)
    }
  }
  const asking = async () => {
    while (!over.signal.aborted) count(await clientToken(http, space))
  }
  const load = [creating(), creating(), asking(), asking()]
  let killed = 0
  for (let round = 0; round < KILLS; round += 1) {
    const rows = await postgres.ask<{ done: boolean }>(
      `select pg_terminate_backend(pid) as done from pg_stat_activity where usename = 'svc'`,
    )
    killed += rows.length
    await sleep(60)
  }
  over.abort()
  await Promise.all(load)
  t.true(killed > KILLS, `${killed} sessions killed`)
  t.deepEqual(
    [...seen.keys()].filter((status) => ![200, 201, 503].includes(status)),
    [],
    JSON.stringify([...seen]),
  )
  t.true(kept.length > 0)
  const rows = await postgres.ask<{ name: string; count: number }>(
    `select name, count(*)::int as count from applications
     where tenant_id = '${space.tenantId}' and name <> 'Journey' group by name`,
  )
  const once = new Map(rows.map(({ name, count }) => [name, count]))
  for (const key of kept) t.is(once.get(key), 1)
  await until('ready again', () => isReady(http))
  t.is(await restarts(), 0)
  t.is(await defects(), 0)
  await until('connections are given back', atRest)
})
