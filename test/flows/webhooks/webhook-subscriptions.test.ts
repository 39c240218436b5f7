/** Webhook subscriptions over HTTP: validation, authorization and limits. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { REFUSED_URLS } from '../../actors/platform/outbound-http/address-corpus.js'
import { startReceiver } from '../../support/webhooks/receiver.js'
import { sharedService } from '../../support/service.js'
import { callAt, type Json, tenantAgent } from '../../support/identity/tenant-agent.js'
import { deliveringService, subscriber } from '../../support/webhooks/webhooks.js'

const receiver = await startReceiver()
const running = await deliveringService()
/** It contacts public receivers alone, and does nothing in the background. */
const strict = await sharedService('strict')
const { baseUrl } = running
test.after.always(() => running.end())

const world = () => subscriber(running, receiver)

const REFUSED = [
  ['http', { url: 'http://receiver.example/' }, '#/url'],
  ['userinfo', { url: 'https://user@receiver.example/' }, '#/url'],
  ['a fragment', { url: 'https://receiver.example/#x' }, '#/url'],
  ['no event types', { event_types: [] }, '#/event_types'],
  ['an unknown event', { event_types: ['auth.login.success', 'no.such'] }, '#/event_types/1'],
  ['a prefix inside of a word', { event_types: ['auth.log*'] }, '#/event_types/0'],
  [
    'a commerce event while commerce is disabled',
    { event_types: ['commerce.payment.*'] },
    '#/event_types/0',
  ],
  ['an event of a wallet', { event_types: ['wallet.tx.signed'] }, '#/event_types/0'],
  ['events of chains', { event_types: ['chain.*'] }, '#/event_types/0'],
  ['step-up by risk', { event_types: ['auth.adaptive_mfa.triggered'] }, '#/event_types/0'],
  ['a prefix of nothing', { event_types: ['nothing.*'] }, '#/event_types/0'],
  ['101 event types', { event_types: Array(101).fill('*') }, '#/event_types'],
  ['a secret of 15 bytes', { secret: 'x'.repeat(15) }, '#/secret'],
  ['a secret of 257 bytes', { secret: 'é'.repeat(129) }, '#/secret'],
] as const

test('a subscription that is not valid is refused, with the place of its fault', async (t) => {
  const plain = await sharedService('plain')
  t.teardown(() => plain.end())
  const { ask } = await tenantAgent(plain.baseUrl)
  for (const [title, change, pointer] of REFUSED) {
    const { status, body } = await ask('POST', '/api/v1/webhooks', {
      url: 'https://receiver.example/hook',
      event_types: ['*'],
      ...change,
    })
    t.is(status, 400, title)
    const [place] = body['errors'] as Json[]
    t.is(place?.['pointer'], pointer, title)
  }
})

test('creation honours its idempotency key without repeating the secret', async (t) => {
  const { ask } = await world()
  const key = { 'idempotency-key': randomBytes(9).toString('hex') }
  const body = { url: `${receiver.origin}/idempotent`, event_types: ['vault.grant.revoked'] }
  const first = await ask('POST', '/api/v1/webhooks', body, key)
  const again = await ask('POST', '/api/v1/webhooks', body, key)
  t.is(again.status, 201)
  t.is(again.headers.get('idempotency-replayed'), 'true')
  t.is(again.body['id'], first.body['id'])
  t.false('secret' in again.body)
  const other = await ask('POST', '/api/v1/webhooks', { ...body, event_types: ['*'] }, key)
  t.is(other.status, 422)
})

test('creation, change, rotation and deletion of a subscription are audited', async (t) => {
  const { ask, agentId, tenantId } = await world()
  const key = { 'idempotency-key': randomBytes(9).toString('hex') }
  const url = `${receiver.origin}/audited?token=of-the-receiver`
  const body = { url, event_types: ['auth.login.*'] }
  const secret = 'a secret of the audited receiver'
  const made = await ask('POST', '/api/v1/webhooks', body, { ...key, 'x-request-id': 'made-1' })
  t.is((await ask('POST', '/api/v1/webhooks', body, key)).status, 201)
  const at = `/api/v1/webhooks/${String(made.body['id'])}`
  t.is((await ask('PUT', at, { ...body, active: false })).status, 200)
  t.is((await ask('POST', `${at}/rotate-secret`, { secret })).status, 200)
  // A request that changes nothing is not audited.
  t.is((await ask('POST', `${at}/rotate-secret`, { secret })).status, 200)
  t.is((await ask('PUT', at, { ...body, event_types: ['no.such'] })).status, 400)
  t.is((await ask('DELETE', at)).status, 204)
  t.is((await ask('DELETE', at)).status, 404)

  const listed = await ask('GET', '/api/v1/audit-events')
  const told = (listed.body as unknown as Json[]).filter(({ type }) =>
    String(type).startsWith('webhook.subscription.'),
  )
  const { host } = new URL(url)
  t.deepEqual(
    told.map(({ type, data }) => [type, data]),
    [
      ['webhook.subscription.deleted', {}],
      ['webhook.subscription.secret_rotated', {}],
      ['webhook.subscription.changed', { host, event_types: ['auth.login.*'], active: false }],
      ['webhook.subscription.created', { host, event_types: ['auth.login.*'], active: true }],
    ],
  )
  const first = told.at(-1)!
  t.is(first['request_id'], 'made-1')
  t.is(first['tenant_id'], tenantId)
  t.deepEqual(first['subject'], { sub: agentId, subject_type: 'agent' })
  t.deepEqual(first['resource'], { type: 'webhook', id: made.body['id'] })
  t.false(listed.text.includes('of-the-receiver') || listed.text.includes(secret))
})

test('another tenant sees nothing of a subscription, and a tenant has 50 at most', async (t) => {
  const { subscribe } = await world()
  const { at } = await subscribe()
  const stranger = await tenantAgent(baseUrl)
  for (const [method, path] of [
    ['GET', at],
    ['DELETE', at],
    ['POST', `${at}/test`],
    ['GET', `${at}/deliveries`],
  ] as const) {
    t.is((await stranger.ask(method, path)).status, 404, `${method} ${path}`)
  }
  const body = { url: 'https://receiver.example/hook', event_types: ['*'] }
  const create = (count: number) =>
    Promise.all(Array.from({ length: count }, () => stranger.ask('POST', '/api/v1/webhooks', body)))
  // More at a time than connections of the database would be refused with 503 on a busy machine.
  for (let batch = 0; batch < 8; batch += 1)
    for (const { status } of await create(6)) t.is(status, 201)
  const last = (await create(4)).map(({ status }) => status)
  t.deepEqual(last.toSorted(), [201, 201, 409, 409])
  const page = await stranger.ask('GET', '/api/v1/webhooks?limit=200')
  t.is((page.body as unknown as Json[]).length, 50)
})

test('webhooks:read allows reading, webhooks:manage allows changes', async (t) => {
  const { subscribe, login } = await world()
  const { at } = await subscribe()
  t.is((await callAt(baseUrl, at)).status, 401)
  const status = async (scope: string, method: string) => {
    const { body } = await login(scope)
    const headers = { authorization: `Bearer ${String(body['access_token'])}` }
    return (await callAt(baseUrl, at, { method, headers })).status
  }
  t.is(await status('vault:list', 'GET'), 403)
  t.is(await status('webhooks:read', 'GET'), 200)
  t.is(await status('webhooks:read', 'DELETE'), 403)
  t.is(await status('webhooks:manage', 'GET'), 200)
  t.is(await status('webhooks:manage', 'DELETE'), 204)
})

test('the capabilities include webhooks', async (t) => {
  const { body } = await callAt(baseUrl, '/api/v1/capabilities')
  t.true((body['capabilities'] as string[]).includes('webhooks'))
})

test('without background tasks nothing is sent, but everything else works', async (t) => {
  const { subscribe, emit, deliveriesOf } = await subscriber(strict, {
    ...receiver,
    origin: 'https://receiver.example',
  })
  const { at } = await subscribe()
  await emit()
  await sleep(1_500)
  t.deepEqual(await deliveriesOf(at), [])
})

test('without the development settings every URL of the SSRF corpus is refused', async (t) => {
  const { ask } = await tenantAgent(strict.baseUrl)
  for (const [url] of REFUSED_URLS) {
    const { status, body } = await ask('POST', '/api/v1/webhooks', { url, event_types: ['*'] })
    t.is(status, 400, url)
    const [place] = body['errors'] as Json[]
    t.is(place?.['pointer'], '#/url', url)
  }
})

test('a name that resolves to a private address is not contacted at delivery', async (t) => {
  const { ask } = await tenantAgent(strict.baseUrl)
  // The name looks public, but no resolver of a test machine returns a public address for it.
  const url = 'https://127.0.0.1.nip.example/hook'
  const { body } = await ask('POST', '/api/v1/webhooks', { url, event_types: ['*'] })
  const { body: tested } = await ask('POST', `/api/v1/webhooks/${body['id']}/test`)
  t.like(tested, { status: 'failed', response_status: null })
  t.true(
    ['dns_error', 'dns_timeout', 'destination_ip_prohibited'].includes(String(tested['error'])),
  )
})

test('a subscription can be tested ten times a minute', async (t) => {
  const { ask } = await tenantAgent(strict.baseUrl)
  const subscription = { url: 'https://receiver.invalid/hook', event_types: ['*'] }
  const { body } = await ask('POST', '/api/v1/webhooks', subscription)
  const statuses: number[] = []
  for (let turn = 0; turn < 11; turn += 1) {
    const { status } = await ask('POST', `/api/v1/webhooks/${body['id']}/test`)
    statuses.push(status)
  }
  t.deepEqual(statuses, [...Array(10).fill(200), 429])
})
