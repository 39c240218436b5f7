/** Slow receivers delay their own tenant and no other. */
import type { ServerResponse } from 'node:http'
import test from 'ava'
import { makeCertificate } from '../../support/service/certificates.js'
import { startReceiver } from '../../support/webhooks/receiver.js'
import { SERVING_PROCESSES as DELIVERING_PROCESSES, THROUGH } from '../../support/fleet/through.js'
import { testService } from '../../support/service.js'
import { subscriber } from '../../support/webhooks/webhooks.js'

/** More subscriptions than a process has places for receivers. */
const CROWD = 540
const SHARE = 32
const PLACES = SHARE * DELIVERING_PROCESSES
const METRICS_TOKEN = 'metrics-token-of-some-length'

test('a tenant with unresponsive receivers does not delay another tenant', async (t) => {
  t.timeout(180_000)
  const certificate = makeCertificate()
  const held: ServerResponse[] = []
  const slow = await startReceiver(() => (response) => void held.push(response), certificate)
  const quick = await startReceiver(() => 200, certificate)
  const running = await testService({
    environment: {
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: certificate.certPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_WEBHOOKS__MAX_SUBSCRIPTIONS_PER_TENANT: String(CROWD),
      SVC_WEBHOOKS__LANES_PER_TENANT_MAX: String(SHARE),
      // Longer than the test: the receivers answer once the victim has its delivery, not before.
      SVC_WEBHOOKS__TIMEOUT_SECS: '170',
    },
  })
  t.teardown(async () => {
    for (const response of held) response.writeHead(200).end()
    await running.end()
    await slow.close()
    await quick.close()
  })
  const attacker = await subscriber(running, slow)
  const paths: string[] = []
  for (let made = 0; made < CROWD; made += 30) {
    const some = await Promise.all(Array.from({ length: 30 }, () => attacker.subscribe()))
    paths.push(...some.map(({ path }) => path))
  }
  const victim = await subscriber(running, quick)
  const { path } = await victim.subscribe()

  await attacker.emit()
  // The attacker has its full share of places, and more is due.
  while (held.length < PLACES) await new Promise((resolve) => setTimeout(resolve, 20))
  await victim.emit()
  await quick.until(path, 1)
  t.is(held.length, PLACES, 'concurrently served receivers of the attacker')
  t.is(slow.received.length, PLACES, 'none of them was answered')

  // Through a proxy these are the metrics of a process that delivers nothing.
  const { text } = await callMetrics(running.baseUrl)
  if (THROUGH === undefined)
    t.regex(text, /svc_share_refused_total\{[^}]*resource="webhook_lanes"[^}]*\} [1-9]/)

  // Released places go to the remaining lanes, so that the attacker is served in the end, too.
  for (const response of held.splice(0)) response.writeHead(200).end()
  while (new Set(slow.received.map((one) => one.path)).size < 2 * PLACES) {
    for (const response of held.splice(0)) response.writeHead(200).end()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.true(slow.received.every((one) => paths.includes(one.path)))
})

async function callMetrics(baseUrl: string): Promise<{ text: string }> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const response = await fetch(`${baseUrl}/metrics`, { headers })
  return { text: await response.text() }
}

test('test deliveries of some tenants do not keep others from theirs', async (t) => {
  t.timeout(180_000)
  if (THROUGH !== undefined) return t.pass('each process counts for itself')
  const certificate = makeCertificate()
  const held: ServerResponse[] = []
  const slow = await startReceiver(() => (response) => void held.push(response), certificate)
  const quick = await startReceiver(() => 200, certificate)
  const running = await testService({
    environment: {
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: certificate.certPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_WEBHOOKS__TIMEOUT_SECS: '170',
    },
  })
  t.teardown(async () => {
    for (const response of held) response.writeHead(200).end()
    await running.end()
    await slow.close()
    await quick.close()
  })
  const victim = await subscriber(running, quick)
  const { at } = await victim.subscribe()
  const attackers = await Promise.all(Array.from({ length: 32 }, () => subscriber(running, slow)))
  const hooks = await Promise.all(attackers.map((attacker) => attacker.subscribe()))
  const tests = attackers.flatMap(({ ask }, nth) =>
    Array.from({ length: 4 }, () => ask('POST', `${hooks[nth]!.at}/test`)),
  )
  // All places that sandboxes hold together.
  while (held.length < 128) await new Promise((resolve) => setTimeout(resolve, 20))
  const refused = await attackers[0]!.ask('POST', `${hooks[0]!.at}/test`)
  t.is(refused.status, 503)
  t.is(refused.body['error'], 'share_exhausted')
  for (let times = 0; times < 3; times += 1)
    t.is((await victim.ask('POST', `${at}/test`)).status, 200)
  for (const response of held.splice(0)) response.writeHead(200).end()
  const statuses = (await Promise.all(tests)).map(({ status }) => status).sort()
  t.deepEqual(statuses, [...Array(127).fill(200), 503], 'one gave its place up')
})
