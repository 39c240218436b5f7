/** Own service: it stops its coordination backend. */
/**
 * The coordination backend is stopped (SIGSTOP): it accepts connections and bytes, and answers nothing. Every request is
 * answered while it is stopped, as if it were killed. Then it is killed. The long form does the same to memcached.
 */
import type { ExecutionContext } from 'ava'
import {
  type Answer,
  bootstrap,
  callerOf,
  clientToken,
  demand,
  REGISTER,
} from '../../support/agents/journey.js'
import { testWithProgram } from '../../support/service/programs.js'
import { proofFor } from '../../support/identity/proof.js'
import { type Server, startMemcached, startRedis } from '../../support/service/servers.js'
import { ownService } from '../../support/service/own-service.js'
import { isReady, metric, METRICS_TOKEN, until } from '../../support/service/watch.js'
import { IS_LONG } from '../../support/runs.js'

/** More than connections: none waits for another's timeout. */
const AT_ONCE = 12

/** A service that counts in the server, and what is asked of it. */
async function counting(t: ExecutionContext, server: Server, environment: Record<string, string>) {
  t.teardown(() => {
    server.thaw()
    return server.stop()
  })
  const running = await ownService({
    environment: {
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      ...environment,
    },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
  return {
    http,
    space,
    /** Refused by its content, but only after it was counted. */
    register: () => http.post(`${REGISTER}/pow`, {}),
    proven: async () =>
      http.form(
        '/oauth/token',
        { grant_type: 'client_credentials' },
        { authorization, dpop: await proofFor('POST', `${running.issuer}/oauth/token`) },
      ),
  }
}

type Counting = Awaited<ReturnType<typeof counting>>

function isRefused(t: ExecutionContext, { status, headers, body }: Answer): void {
  t.is(status, 503, 'never let through uncounted, never a defect')
  t.is(headers.get('content-type'), 'application/problem+json')
  t.is(headers.get('retry-after'), '1')
  t.is(body['request_id'], headers.get('x-request-id'))
}

/** Both are served again. Until then they are refused. */
async function recovers(t: ExecutionContext, { proven, register }: Counting): Promise<void> {
  for (const [what, ask, status] of [
    ['proofs are taken again', proven, 200],
    ['registration is open again', register, 400],
  ] as const)
    await until(what, async () => {
      const answer = await ask()
      t.true(answer.status === status || answer.status === 503)
      return answer.status === status
    })
}

async function freezeAndThaw(t: ExecutionContext, server: Server, at: Counting): Promise<void> {
  const { http, space, register, proven } = at
  demand(await register(), 400)
  t.is((await proven()).status, 200)
  server.freeze()
  const crowd = await Promise.all([
    ...Array.from({ length: AT_ONCE }, proven),
    ...Array.from({ length: AT_ONCE }, register),
  ])
  for (const answer of crowd) isRefused(t, answer)
  isRefused(t, await proven())
  demand(await clientToken(http, space), 200)
  demand(await http.call('/api/v1/capabilities'), 200)
  server.thaw()
  await recovers(t, at)
}

testWithProgram(
  'redis-server',
  'a stopped redis delays no request, a killed one refuses what it counts, and it is used again once it continues',
  async (t, path) => {
    const redis = await startRedis(path)
    const at = await counting(t, redis, {
      SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
      SVC_REDIS__URL: `redis://127.0.0.1:${redis.port}`,
    })
    await freezeAndThaw(t, redis, at)

    const { http, space, register, proven } = at
    const limitOf = ({ headers }: Answer) => headers.get('ratelimit') ?? ''
    t.regex(limitOf(await register()), /"registration";r=\d+/)
    await redis.kill()
    for (let turn = 0; turn < 3; turn += 1) isRefused(t, await register())
    t.is((await proven()).status, 503, 'a proof that may have been used up is not taken')
    const capabilities = demand(await http.call('/api/v1/capabilities'), 200)
    t.regex(limitOf(capabilities), /"default";r=\d+/)
    const token = await http.form('/oauth/token', { grant_type: 'client_credentials' })
    t.is(token.status, 401, 'counted by this process alone')
    t.regex(limitOf(token), /"token";r=\d+/)
    demand(await clientToken(http, space), 200)
    t.true((await metric(http, 'svc_actor_unavailable_total', { reason: 'dependency' })) >= 1)
    t.true(await isReady(http), 'readiness rests on the database and the keys')
    await redis.restart()
    await recovers(t, at)
  },
)

if (IS_LONG)
  testWithProgram(
    'memcached',
    'a stopped memcached delays no request, and is used again once it continues',
    async (t, path) => {
      const server = await startMemcached(path)
      const at = await counting(t, server, {
        SVC_DEPLOYMENT__COORDINATION_BACKEND: 'memcached',
        SVC_MEMCACHED__ADDRESS: `127.0.0.1:${server.port}`,
        SVC_MEMCACHED__POOL_SIZE: '2',
      })
      await freezeAndThaw(t, server, at)
    },
  )
