/** Own service: it stops its coordination backend. */
/**
 * The coordination backend is stopped (SIGSTOP), not killed: it accepts connections and bytes, and
 * answers nothing. Every request is answered while it is stopped, as if it were killed.
 */
import type { ExecutionContext } from 'ava'
import { bootstrap, callerOf, clientToken, demand, REGISTER } from '../../support/agents/journey.js'
import { testWithProgram } from '../../support/service/programs.js'
import { proofFor } from '../../support/identity/proof.js'
import { type Server, startMemcached, startRedis } from '../../support/service/servers.js'
import { ownService } from '../../support/service/own-service.js'
import { until } from '../../support/service/watch.js'

/** A new connection is attempted at least every 2 s. */
const RECOVERED_WITHIN_MS = 15_000
const AT_ONCE = 12

async function freezeAndThaw(
  t: ExecutionContext,
  server: Server,
  environment: Record<string, string>,
): Promise<void> {
  t.teardown(() => {
    server.thaw()
    return server.stop()
  })
  const running = await ownService({
    environment: { SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true', ...environment },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const register = () => http.post(`${REGISTER}/pow`, {})
  demand(await register(), 400)
  const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
  const proven = async () =>
    http.form(
      '/oauth/token',
      { grant_type: 'client_credentials' },
      { authorization, dpop: await proofFor('POST', `${running.issuer}/oauth/token`) },
    )
  t.is((await proven()).status, 200)

  server.freeze()
  // More concurrent requests than connections: none waits for another's timeout.
  const crowd = await Promise.all([
    ...Array.from({ length: AT_ONCE }, proven),
    ...Array.from({ length: AT_ONCE }, register),
  ])
  for (const { status, headers, body } of crowd) {
    t.is(status, 503, 'never let through uncounted, and answered while the backend is stopped')
    t.is(headers.get('retry-after'), '1')
    t.is(body['request_id'], headers.get('x-request-id'))
  }
  for (let turn = 0; turn < AT_ONCE; turn += 1) {
    t.is((await proven()).status, 503)
    demand(await clientToken(http, space), 200)
    demand(await http.call('/api/v1/capabilities'), 200)
  }

  server.thaw()
  await until('proofs are taken again', RECOVERED_WITHIN_MS, async () => {
    const { status } = await proven()
    t.true(status === 200 || status === 503)
    return status === 200
  })
  await until('registration is open again', RECOVERED_WITHIN_MS, async () => {
    const { status } = await register()
    return status === 400
  })
  t.is((await proven()).status, 200)
}

testWithProgram(
  'redis-server',
  'a stopped redis delays no request, and is used again once it continues',
  async (t, path) => {
    const server = await startRedis(path)
    await freezeAndThaw(t, server, {
      SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
      SVC_REDIS__URL: `redis://127.0.0.1:${server.port}`,
    })
  },
)

testWithProgram(
  'memcached',
  'a stopped memcached delays no request, and is used again once it continues',
  async (t, path) => {
    const server = await startMemcached(path)
    await freezeAndThaw(t, server, {
      SVC_DEPLOYMENT__COORDINATION_BACKEND: 'memcached',
      SVC_MEMCACHED__ADDRESS: `127.0.0.1:${server.port}`,
      SVC_MEMCACHED__POOL_SIZE: '2',
    })
  },
)
