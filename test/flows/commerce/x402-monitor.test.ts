/** Readiness depends on the nodes of the watched chains (docs/reference/operations.md, Health). */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { openShop } from '../../support/commerce/x402-shop.js'
import { callAt } from '../../support/identity/tenant-agent.js'

test('an unreachable chain node makes the service not ready', async (t) => {
  t.timeout(120_000)
  const shop = await openShop({ monitor: true })
  t.teardown(() => shop.close().catch(() => undefined))
  const ready = async () => (await callAt(shop.running.baseUrl, '/health/ready')).status
  const until = async (status: number) => {
    for (let turn = 0; turn < 600 && (await ready()) !== status; turn += 1) await sleep(100)
    return ready()
  }
  t.is(await until(200), 200)
  await shop.chain.close()
  t.is(await until(503), 503)
  t.is((await callAt(shop.running.baseUrl, '/health/live')).status, 200)
})
