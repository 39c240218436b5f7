/** Own service: it stops its Redis. */
/** Redis is the coordination backend, and goes down. */
import { bootstrap, callerOf, clientToken, demand, REGISTER } from '../../support/agents/journey.js'
import { testWithProgram } from '../../support/service/programs.js'
import { proofFor } from '../../support/identity/proof.js'
import { startRedis } from '../../support/service/servers.js'
import { ownService } from '../../support/service/own-service.js'
import { isReady, until } from '../../support/service/watch.js'

/** The client reconnects within 2 s, and the rate limiter retries after 1 s. */
const RECOVERED_WITHIN_MS = 10_000

testWithProgram(
  'redis-server',
  'without redis registrations are refused, and other requests are counted per process',
  async (t, path) => {
    const redis = await startRedis(path)
    t.teardown(() => redis.stop())
    const running = await ownService({
      environment: {
        SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
        SVC_REDIS__URL: `redis://127.0.0.1:${redis.port}`,
        SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
        SVC_SERVER__METRICS_BEARER_TOKEN: 'metrics-of-the-test',
      },
    })
    t.teardown(() => running.end())
    const http = callerOf(running.baseUrl)
    const space = await bootstrap(http)
    // Refused by its content, but only after it was counted.
    const register = () => http.post(`${REGISTER}/pow`, {})
    const counted = demand(await register(), 400)
    t.regex(counted.headers.get('ratelimit') ?? '', /"registration";r=\d+/)

    await redis.kill()
    for (let turn = 0; turn < 12; turn += 1) {
      const { status, headers, body } = await register()
      t.is(status, 503, 'never let through uncounted, never a defect')
      t.is(headers.get('content-type'), 'application/problem+json')
      t.is(headers.get('retry-after'), '1')
      t.is(body['request_id'], headers.get('x-request-id'))
    }
    const capabilities = demand(await http.call('/api/v1/capabilities'), 200)
    t.regex(capabilities.headers.get('ratelimit') ?? '', /"default";r=\d+/)
    const token = await http.form('/oauth/token', { grant_type: 'client_credentials' })
    t.is(token.status, 401, 'counted by this process alone')
    t.regex(token.headers.get('ratelimit') ?? '', /"token";r=\d+/)
    const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
    const proven = await http.form(
      '/oauth/token',
      { grant_type: 'client_credentials' },
      { authorization, dpop: await proofFor('POST', `${running.issuer}/oauth/token`) },
    )
    t.is(proven.status, 503, 'a proof that may have been used up is not taken')
    demand(await clientToken(http, space), 200)
    const { text } = await http.call('/metrics', {
      headers: { authorization: 'Bearer metrics-of-the-test' },
    })
    t.regex(text, /^svc_actor_unavailable_total\{[^}]*reason="dependency"[^}]*\} [1-9]/m)
    t.true(await isReady(http), 'readiness rests on the database and the keys')

    await redis.restart()
    await until('registration is open again', RECOVERED_WITHIN_MS, async () => {
      const { status } = await register()
      t.true(status === 400 || status === 503)
      return status === 400
    })
  },
)
