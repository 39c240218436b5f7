/** Webhooks over HTTP against the running service and real receivers. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { recover } from '../../../runtime/cli/webhooks/recover.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { type Answer, type Received, startReceiver } from '../../support/webhooks/receiver.js'
import { notThrough } from '../../support/fleet/through.js'
import type { Json } from '../../support/identity/tenant-agent.js'
import {
  deliveringService,
  judge,
  standardVerifies,
  subscriber,
} from '../../support/webhooks/webhooks.js'

/** Responses by path. Each path belongs to one test. */
const answers = new Map<string, (request: Received, count: number) => Answer>()
const counts = new Map<string, number>()
const receiver = await startReceiver((request) => {
  const count = (counts.get(request.path) ?? 0) + 1
  counts.set(request.path, count)
  return answers.get(request.path)?.(request, count) ?? 200
})
const running = await deliveringService()
const { baseUrl, db } = running
test.after.always(() => running.end())
const world = () => subscriber(running, receiver)

test('an event is delivered once, signed both ways, with the envelope of the contract', async (t) => {
  const { tenantId, subscribe, emit, settled } = await world()
  const { path, secret, at, body, headers } = await subscribe()
  t.regex(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.is(headers.get('location'), at)
  t.is(headers.get('cache-control'), 'no-store')
  t.deepEqual(Object.keys(body).toSorted(), [
    'active',
    'created_at',
    'description',
    'event_types',
    'id',
    'secret',
    'secret_last_rotated_at',
    'tenant_id',
    'updated_at',
    'url',
  ])
  const event = await emit({ actor: { type: 'agent', id: 'x' }, note: 'ünïcode \u2028' })
  const [request] = await receiver.until(path, 1)
  const verdict = judge(request!, secret)
  t.is(verdict.tag, 'genuine')
  t.true(standardVerifies(request!, secret))
  t.is(request!.headers['content-type'], 'application/json')
  t.is(request!.headers['user-agent'], 'svc-webhooks/1')
  t.is(request!.headers['x-svc-event'], 'security.suspicious_activity')
  t.is(request!.headers['x-svc-signature-max-age'], '300')
  t.is(request!.headers['cookie'], undefined)
  t.deepEqual(JSON.parse(request!.body.toString()), {
    event_id: event.id,
    type: event.type,
    tenant_id: tenantId,
    timestamp: event.occurredAt.toISOString(),
    data: event.data,
  })
  const [delivery] = await settled(at)
  t.like(delivery, {
    id: request!.headers['x-svc-delivery'],
    event_id: event.id,
    status: 'succeeded',
    attempt_count: 1,
    max_attempts: 4,
    response_status: 200,
    error: null,
    next_attempt_at: null,
  })
  t.is((delivery!['attempts'] as Json[]).length, 1)
  await sleep(300)
  t.is(receiver.at(path).length, 1)
})

test('a failure is retried on schedule under the same id with a new signature', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, secret, at } = await subscribe()
  answers.set(path, (_, count) => (count < 3 ? 500 : 204))
  await emit()
  const requests = await receiver.until(path, 3)
  const [delivery] = await settled(at)
  t.like(delivery, { status: 'succeeded', attempt_count: 3, response_status: 204 })
  const attempts = delivery!['attempts'] as Json[]
  t.deepEqual(
    attempts.map(({ response_status, error }) => [response_status, error]),
    [
      [500, 'unexpected_status'],
      [500, 'unexpected_status'],
      [204, null],
    ],
  )
  t.is(new Set(requests.map(({ headers }) => headers['x-svc-delivery'])).size, 1)
  t.true(requests.every((request) => judge(request, secret).tag === 'genuine'))
  t.true(requests[1]!.atMs - requests[0]!.atMs >= 850)
  t.not(requests[0]!.headers['x-svc-timestamp'], requests[2]!.headers['x-svc-timestamp'])
})

test('after the last attempt a delivery has failed', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, () => 503)
  await emit()
  const [delivery] = await settled(at)
  t.like(delivery, { status: 'failed', attempt_count: 4, response_status: 503 })
  t.is(receiver.at(path).length, 4)
})

test('an answer 4xx is final', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  for (const [count, status] of [400, 404, 422].entries()) {
    answers.set(path, () => status)
    await emit()
    const [delivery] = await settled(at, count + 1)
    const error = 'unexpected_status'
    t.like(delivery, { status: 'failed', attempt_count: 1, response_status: status, error })
  }
})

test('a redirect is not followed; it is a failure that is retried', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, () => ({ status: 302, headers: { location: `${receiver.origin}/elsewhere` } }))
  await emit()
  const [delivery] = await settled(at)
  t.like(delivery, { status: 'failed', attempt_count: 4, response_status: 302, error: 'redirect' })
  t.is(receiver.at('/elsewhere').length, 0)
})

test('an attempt never precedes Retry-After', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, (_, count) =>
    count === 1 ? { status: 429, headers: { 'retry-after': '3' } } : 200,
  )
  await emit()
  const [first, second] = await receiver.until(path, 2)
  t.true(second!.atMs - first!.atMs >= 2_990)
  t.like((await settled(at))[0], { status: 'succeeded', attempt_count: 2 })
})

test('410 deactivates the subscription and cancels pending deliveries', async (t) => {
  const { ask, subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, (_, count) => (count === 1 ? 503 : 410))
  await emit()
  await emit()
  const found = await settled(at, 2)
  t.true(found.every(({ status }) => status === 'failed'))
  t.is((await ask('GET', at)).body['active'], false)
  const before = receiver.at(path).length
  await emit()
  await sleep(500)
  t.is(receiver.at(path).length, before)
})

test('an attempt at a receiver that hangs is aborted at the time limit', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, (_, count) => (count === 1 ? () => undefined : 200))
  await emit()
  const [delivery] = await settled(at)
  t.like(delivery, { status: 'succeeded', attempt_count: 2 })
  const [first] = delivery!['attempts'] as Json[]
  t.like(first, { error: 'timeout', response_status: null })
  t.true(Number(first!['duration_ms']) >= 2_990)
})

test('a 2xx with an endless body is a success', async (t) => {
  const { subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, () => (response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(2000)), 5)
    response.on('close', () => clearInterval(timer))
  })
  await emit()
  t.like((await settled(at))[0], { status: 'succeeded', attempt_count: 1, error: null })
})

test('a test delivery is one immediate attempt, even when inactive, and replays by its key', async (t) => {
  const { ask, subscribe, agentId } = await world()
  const { path, at, secret } = await subscribe({ active: false })
  const key = { 'idempotency-key': randomBytes(9).toString('hex') }
  const first = await ask('POST', `${at}/test`, undefined, key)
  t.is(first.status, 200, first.text)
  t.like(first.body, {
    event_type: 'webhook.test',
    status: 'succeeded',
    attempt_count: 1,
    max_attempts: 1,
    response_status: 200,
  })
  const [request] = receiver.at(path)
  t.is(judge(request!, secret).tag, 'genuine')
  t.like(JSON.parse(request!.body.toString()), {
    type: 'webhook.test',
    data: { actor: { type: 'agent', id: agentId } },
  })
  const again = await ask('POST', `${at}/test`, undefined, key)
  t.is(again.headers.get('idempotency-replayed'), 'true')
  t.deepEqual(again.body, first.body)
  t.is(receiver.at(path).length, 1)
  answers.set(path, () => 500)
  const failed = await ask('POST', `${at}/test`)
  t.is(failed.status, 200)
  t.like(failed.body, { status: 'failed', attempt_count: 1, response_status: 500 })
  await sleep(1_500)
  t.is(receiver.at(path).length, 2)
})

test('only events that match the filters are delivered', async (t) => {
  const { ask, subscribe, emit } = await world()
  const exact = await subscribe({ event_types: ['tenant_user.invited'] })
  const prefix = await subscribe({ event_types: ['tenant_user.*', 'org.created'] })
  const all = await subscribe({ event_types: ['*'] })
  await emit({}, 'tenant_user.removed')
  await emit({}, 'tenant_user.invited')
  await emit({}, 'org.created')
  const types = (path: string) => receiver.at(path).map(({ headers }) => headers['x-svc-event'])
  await receiver.until(prefix.path, 3)
  await receiver.until(exact.path, 1)
  await receiver.until(all.path, 3)
  t.deepEqual(types(exact.path), ['tenant_user.invited'])
  t.is(types(prefix.path).length, 3)
  t.is((await ask('DELETE', all.at)).status, 204)
  t.is((await ask('GET', all.at)).status, 404)
  t.is((await ask('GET', `${all.at}/deliveries`)).status, 404)
})

test('deletion and deactivation cancel pending deliveries', async (t) => {
  const { ask, tenantId, subscribe, emit, deliveriesOf } = await world()
  const { path, at, id } = await subscribe()
  answers.set(path, () => ({ status: 503, headers: { 'retry-after': '3600' } }))
  await emit()
  await receiver.until(path, 1)
  while ((await deliveriesOf(at))[0]?.['status'] !== 'retrying') await sleep(20)
  const put = await ask('PUT', at, {
    url: receiver.origin + path,
    event_types: ['*'],
    active: false,
  })
  t.is(put.status, 200, put.text)
  t.like(put.body, { active: false, event_types: ['*'], description: '' })
  t.like((await deliveriesOf(at))[0], {
    status: 'failed',
    error: 'subscription_inactive',
    next_attempt_at: null,
  })
  const replay = await ask('POST', `${at}/deliveries/${(await deliveriesOf(at))[0]!['id']}/replay`)
  t.is(replay.status, 409)
  t.is((await ask('DELETE', at)).status, 204)
  t.is((await ask('DELETE', at)).status, 404)
  const left = await db.database.tenant(tenantId, (tx) =>
    tx.query<{ secret: unknown }>({
      name: 'test.left',
      text: 'select secret from webhooks where id = $1',
      values: [id],
    }),
  )
  t.is(left.rows[0]!.secret, null)
})

test('a finished delivery is replayed under its id, and recovery sends missed events', async (t) => {
  const { ask, subscribe, emit, settled } = await world()
  const { path, at } = await subscribe()
  answers.set(path, () => 400)
  const since = new Date(Date.now() - 1000).toISOString()
  await emit()
  const [failed] = await settled(at)
  const off = { url: receiver.origin + path, event_types: ['security.suspicious_activity'] }
  await ask('PUT', at, { ...off, active: false })
  await emit()
  await sleep(300)
  await ask('PUT', at, off)
  answers.set(path, () => 200)
  const replayed = await ask('POST', `${at}/deliveries/${failed!['id']}/replay`)
  t.is(replayed.status, 200, replayed.text)
  t.like(replayed.body, { id: failed!['id'], status: 'pending', attempt_count: 1, max_attempts: 5 })
  const [, second] = await receiver.until(path, 2)
  t.is(second!.headers['x-svc-delivery'], failed!['id'] as string)
  await settled(at)
  const recovered = await ask('POST', `${at}/recover`, { since })
  t.is(recovered.status, 200, recovered.text)
  const { added, ...rest } = recovered.body
  t.deepEqual(rest, { replayed: 0, more: false })
  // Concurrent tests emit the same type. Our event is among them.
  t.true(Number(added) >= 1)
  const found = await settled(at, 2)
  t.true(found.every(({ status }) => status === 'succeeded'))
  t.is((await ask('POST', `${at}/recover`, { since: '2020-01-01T00:00:00Z' })).status, 400)
})

test('svc webhooks recover sends what a receiver missed, of every active subscription', async (t) => {
  notThrough('its command trusts no certificate of a test')
  const { subscribe, emit, settled, token } = await world()
  const { id, path, at } = await subscribe()
  answers.set(path, () => 400)
  await emit()
  const [failed] = await settled(at)
  t.is(failed!['status'], 'failed')
  answers.set(path, () => 200)
  const folder = mkdtempSync(join(tmpdir(), 'svc-recover-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, token)
  let printed = ''
  const host = { out: (text: string) => (printed += text), clock: systemClock }
  await recover({ url: baseUrl, tokenFile, since: '1h', json: true }, host)
  const { subscriptions } = JSON.parse(printed) as { subscriptions: Json[] }
  t.like(subscriptions, [{ id, replayed: 1 }])
  const [again] = await settled(at)
  t.like(again, { id: failed!['id'], status: 'succeeded' })
  for (const since of ['yesterday', '5', '2026-31-01T00:00:00Z'])
    await t.throwsAsync(recover({ url: baseUrl, tokenFile, since }, host), {
      message: /--since must be/,
    })
  const options = { url: baseUrl, tokenFile, since: '2020-01-01T00:00:00Z', id }
  await t.throwsAsync(recover(options, host), { message: /answered 400/ })
})

test('the history is paged and filtered', async (t) => {
  const { ask, subscribe, emit, deliveriesOf, settled } = await world()
  const { path, at } = await subscribe({ event_types: ['vault.grant.revoked'] })
  for (let turn = 0; turn < 5; turn += 1) await emit({ turn }, 'vault.grant.revoked')
  await receiver.until(path, 5)
  await settled(at, 5)
  const first = await ask('GET', `${at}/deliveries?limit=2`)
  t.is((first.body as unknown as Json[]).length, 2)
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await ask('GET', next!.slice(baseUrl.length))
  const ids = [first.body, second.body].flatMap((page) =>
    (page as unknown as Json[]).map(({ id }) => id),
  )
  t.is(new Set(ids).size, 4)
  t.is((await deliveriesOf(at, '?status=failed')).length, 0)
  t.is((await deliveriesOf(at, '?status=succeeded&event_type=vault.grant.revoked')).length, 5)
  t.is((await ask('GET', `${at}/deliveries?status=lost`)).status, 400)
  t.is((await ask('GET', `${at}/deliveries?event_type=no.such`)).status, 400)
})
