/** Own service: it stops its kms. */
/** The kms goes down under the whole service. */
import test from 'ava'
import {
  bootstrap,
  callerOf,
  clientToken,
  complete,
  demand,
  login,
  start,
} from '../../support/agents/journey.js'
import type { TestKms } from '../../support/storage/kms.js'
import { ownService } from '../../support/service/own-service.js'
import { isReady, metric, METRICS_TOKEN, until, watchLive } from '../../support/service/watch.js'

const NOTICED_WITHIN_MS = 2_500
const RECOVERED_WITHIN_MS = 5_000

test('while the kms is away or stopped, requests that unwrap no key still work, and the process stays ready', async (t) => {
  const log: string[] = []
  const running = await ownService({
    onLog: (line) => void log.push(line),
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const pulse = watchLive(http)
  t.true(await isReady(http))
  const logged = (words: string) => () => log.some((line) => line.includes(words))

  for (const take of [(kms: TestKms) => kms.interrupt(), (kms: TestKms) => kms.freeze()]) {
    log.length = 0
    await take(running.kms)
    await until('noticed', NOTICED_WITHIN_MS, logged('kms lost'))
    for (let turn = 0; turn < 2; turn += 1) {
      demand(await http.call('/.well-known/jwks.json'), 200)
      demand(await clientToken(http, space), 200)
      demand(await login(http, space), 200)
      const authorization = `Bearer ${space.accessToken}`
      demand(await http.call('/api/v1/agents/me', { headers: { authorization } }), 200)
      demand(await complete(http, await start(http)), 201)
      t.true(await isReady(http))
    }
    t.is((await http.call('/health/startup')).status, 200, 'a start is not undone')
    await running.kms.resume()
    await until('found', RECOVERED_WITHIN_MS, logged('kms found'))
    await bootstrap(http)
  }
  t.is((await pulse.stop()).bad, 0)
  t.is(await metric(http, 'svc_actor_restarts_total'), 0)
  t.is(await metric(http, 'svc_actor_unavailable_total', { reason: 'failed' }), 0)
})
