/** Own service: it stops the process. */
/** A process that ends tells its proxies first, and serves what they still send (docs/reference/runtime.md). */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { ownService } from '../../support/service/own-service.js'
import { until } from '../../support/service/watch.js'

test('a process that drains is not ready and answers every request until it ends', async (t) => {
  const running = await ownService({ environment: { SVC_SERVER__DRAIN_SECS: '2' } })
  t.teardown(() => running.end())
  const ask = async (path: string) => (await fetch(running.baseUrl + path)).status
  await until('ready', 60_000, async () => (await ask('/health/ready')) === 200)
  let ended = false
  const ending = running.service.stop().then(() => {
    ended = true
  })
  while ((await ask('/health/ready')) !== 503) t.false(ended)
  t.is(await ask('/health/live'), 200)
  const statuses = new Set<number>()
  // The drain is 2 s long, so several requests fit even on a slow machine.
  for (let sent = 0; sent < 20; sent += 1) {
    const status = await ask('/.well-known/openid-configuration').catch(() => null)
    if (status === null) break
    statuses.add(status)
    await sleep(10)
  }
  t.deepEqual([...statuses], [200])
  await ending
  await t.throwsAsync(ask('/health/live'))
})
