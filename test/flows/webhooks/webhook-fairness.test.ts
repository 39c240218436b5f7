/** Receivers that do not answer delay their own deliveries and no other. Receivers that poll again cost no signatures. */
import type { ServerResponse } from 'node:http'
import test from 'ava'
import { metric, METRICS_TOKEN, until } from '../../support/service/watch.js'
import { REACHES_RECEIVERS, startReceiver } from '../../support/webhooks/receiver.js'
import {
  notThrough,
  SERVING_PROCESSES as DELIVERING_PROCESSES,
  THROUGH,
} from '../../support/fleet/through.js'
import { testService } from '../../support/service.js'
import { subscriber } from '../../support/webhooks/webhooks.js'
import { callerOf } from '../../support/agents/journey.js'
import { apiOf } from '../../support/api.js'
import { IS_LONG } from '../../support/runs.js'

/** In the long form more subscriptions than a process has places for receivers. */
const CROWD = IS_LONG ? 540 : 90
const SHARE = 16
const PLACES = SHARE * DELIVERING_PROCESSES

const held: ServerResponse[] = []
const release = () => {
  for (const response of held.splice(0)) response.writeHead(200).end()
}
const slow = await startReceiver(() => (response) => void held.push(response))
const quick = await startReceiver(() => 200)
const running = await testService({
  environment: {
    ...REACHES_RECEIVERS,
    SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
    SVC_WEBHOOKS__MAX_SUBSCRIPTIONS_PER_TENANT: String(CROWD),
    SVC_WEBHOOKS__LANES_PER_TENANT_MAX: String(SHARE),
    // Longer than the tests: the receivers answer when a test lets them, not before.
    SVC_WEBHOOKS__TIMEOUT_SECS: '600',
  },
})
test.after.always(async () => {
  release()
})

test.serial('a receiver that does not answer does not delay others of its tenant', async (t) => {
  const { subscribe, emit } = await subscriber(running, quick)
  for (const nth of [1, 2]) await subscribe({ url: `${slow.origin}/dead-${nth}` })
  const hooks = await Promise.all(Array.from({ length: 4 }, () => subscribe()))
  for (let turn = 0; turn < 6; turn += 1) await emit()
  for (const { path } of hooks) await quick.until(path, 6)
  // The attempts of the others still wait, and they are four at most.
  for (const nth of [1, 2]) t.true(slow.at(`/dead-${nth}`).length <= 4)
  t.is(held.length, slow.received.length, 'none was answered')
  release()
  await until('what waited arrives', () => {
    release()
    return slow.at('/dead-1').length === 6 && slow.at('/dead-2').length === 6
  })
})

test.serial('a tenant with unresponsive receivers does not delay another tenant', async (t) => {
  t.timeout(180_000)
  const before = slow.received.length
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
  await until('the places are held', () => held.length >= PLACES)
  await victim.emit()
  await quick.until(path, 1)
  t.is(held.length, PLACES, 'concurrently served receivers of the attacker')
  t.is(slow.received.length - before, PLACES, 'none of them was answered')

  // Through a proxy these are the metrics of a process that delivers nothing.
  if (THROUGH === undefined) {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    const figures = async () => (await fetch(`${running.baseUrl}/metrics`, { headers })).text()
    const refused = /svc_share_refused_total\{[^}]*resource="webhook_lanes"[^}]*\} [1-9]/
    t.regex(await figures(), refused)
    t.regex(await figures(), /svc_thread_up\{[^}]*thread="webhooks"[^}]*\} 1/)
    const sent = /svc_webhook_deliveries_total\{[^}]*outcome="succeeded"[^}]*\} [1-9]/
    await until('the delivery is counted', async () => sent.test(await figures()))
  }

  // Released places go to the remaining lanes, so that the attacker is served in the end, too.
  const served = () => new Set(slow.received.slice(before).map((one) => one.path))
  await until('other lanes of the attacker are served', () => {
    release()
    return served().size >= 2 * PLACES
  })
  t.true([...served()].every((one) => paths.includes(one)))
  await until('its deliveries are over', () => {
    release()
    return served().size === CROWD
  })
  release()
})

test.serial('test deliveries of some tenants do not keep others from theirs', async (t) => {
  t.timeout(180_000)
  notThrough('each process counts for itself')
  const victim = await subscriber(running, quick)
  const { at } = await victim.subscribe()
  const attackers = await Promise.all(Array.from({ length: 32 }, () => subscriber(running, slow)))
  const hooks = await Promise.all(attackers.map((attacker) => attacker.subscribe()))
  const tests = attackers.flatMap(({ ask }, nth) =>
    Array.from({ length: 4 }, () => ask('POST', `${hooks[nth]!.at}/test`)),
  )
  // All places that sandboxes hold together.
  await until('the places are held', () => held.length >= 128)
  const refused = await attackers[0]!.ask('POST', `${hooks[0]!.at}/test`)
  t.like(refused, { status: 503, body: { error: 'share_exhausted' } })
  for (let times = 0; times < 3; times += 1)
    t.is((await victim.ask('POST', `${at}/test`)).status, 200)
  release()
  const statuses = (await Promise.all(tests)).map(({ status }) => status).sort()
  t.deepEqual(statuses, [...Array(127).fill(200), 503], 'one gave its place up')
})

test.serial(
  'a receiver that polls again without an acknowledgement costs no signatures',
  async (t) => {
    notThrough('each process signs for itself')
    const api = apiOf(running)
    const { token } = await api.workspace()
    const made = await api.post('/ssf/streams', token, {}).gives(201)
    const id = String(made.body['stream_id'])
    await api.post('/ssf/verify', token, { stream_id: id }).gives(204)
    const poll = async () =>
      (await api.post(`/ssf/poll/${id}`, token, { returnImmediately: true }).gives(200)).body
    const signed = () =>
      metric(callerOf(running.baseUrl), 'svc_actor_accepted_total', { actor: 'signing-keys' })
    const first = await poll()
    t.is(Object.keys(first['sets'] as object).length, 1)
    const before = await signed()
    for (let times = 0; times < 20; times += 1) t.deepEqual(await poll(), first)
    const more = (await signed()) - before
    // Each request looks up the key of its access token.
    t.true(more < 30, `${more} messages to the keys for 20 polls`)
  },
)
