/** Calls that are signed with `hmac`. The upstream checks the signatures itself. */
import { createHash, createHmac } from 'node:crypto'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import {
  bodyCall,
  CREDENTIALS,
  egressHouse,
  settingOf,
  UPSTREAM_NAME,
} from '../../../support/vault/egress.js'

const house = await egressHouse()
const { api, upstream } = house
const KEY = 'canary of hmac 1f/+9'

const settingWith = (secret: unknown, grant: Json = {}) =>
  settingOf(house, { auth_scheme: 'hmac', credential_type: 'custom', secret } as Json, grant)
type Made = Awaited<ReturnType<typeof settingWith>>

const call = ({ delegated, credentialId }: Made, path: string, more: object = {}) =>
  api.post('/v1/proxy', delegated, {
    credential_id: credentialId,
    url: upstream.origin + path,
    ...more,
  })
const last = () => upstream.requests.at(-1)!
const field = (name: string) => String(last().headers[name])
const macOf = (algorithm: string, key: string | Buffer, text: string) =>
  createHmac(algorithm, key).update(text).digest()
const isNow = (secs: number) => Math.abs(Date.now() / 1000 - secs) < 60

test.serial('a template signs method, path, body, timestamp and nonce', async (t) => {
  const setting = await settingWith({
    key: KEY,
    key_id: 'public-id',
    algorithm: 'sha512',
    string:
      '{METHOD}|{method}|{scheme}|{host}|{path}|{query}|{sorted_query}|{path_with_query}|{body}|{body_sha256}|{timestamp}|{nonce}|{key_id}|{header:X-Kind}',
    timestamp: 'unix_ms',
    nonce: 'hex16',
    output: 'base64url',
    set: [
      { header: 'X-Signature', value: 'sha512={signature}' },
      { header: 'X-Timestamp', value: '{timestamp}' },
      { header: 'X-Nonce', value: '{nonce}' },
      { query: 'key', value: '{key_id}' },
    ],
  })
  const body = '{"a":"ü"}'
  const answer = await call(setting, '/headers?b=2&a=%201&a=0', {
    method: 'POST',
    body,
    headers: [
      ['x-kind', 'x'],
      // What a program with placeholders sends.
      ['X-Signature', 'mine'],
      ['Authorization', 'HMAC mine'],
      ['Signature-Input', 'mine'],
    ],
  }).gives(200)
  const path = '/headers?b=2&a=%201&a=0&key=public-id'
  t.is(last().url, path)
  const { host } = new URL(upstream.origin)
  const query = path.slice(path.indexOf('?') + 1)
  const time = field('x-timestamp')
  t.true(isNow(Number(time) / 1000))
  t.regex(field('x-nonce'), /^[0-9a-f]{32}$/)
  const sha256 = createHash('sha256').update(body).digest('hex')
  const signed = [
    'POST',
    'post',
    'https',
    host,
    '/headers',
    query,
    'a=%201&a=0&b=2&key=public-id',
    path,
    body,
    sha256,
    time,
    field('x-nonce'),
    'public-id',
    'x',
  ].join('|')
  const mac = macOf('sha512', KEY, signed)
  t.is(field('x-signature'), `sha512=${mac.toString('base64url')}`)
  t.is(last().headers.authorization, undefined)
  t.is(last().headers['signature-input'], undefined)
  t.false(
    JSON.stringify(answer.body).includes(mac.toString('base64url')),
    'the signature is redacted',
  )
  t.true(JSON.stringify(answer.body).includes('sha512=[redacted]'))
})

test.serial('presets', async (t) => {
  const key64 = Buffer.from(KEY).toString('base64')
  const body = '{"side":"buy"}'
  const post = async (preset: string, key: string, more: object = {}) => {
    const setting = await settingWith(JSON.stringify({ key, preset, ...more }))
    await call(setting, '/echo/orders?limit=1', { method: 'POST', body }).gives(200)
  }
  await post('coinbase_legacy', key64, { key_id: 'k' })
  t.is(field('cb-access-key'), 'k')
  const time = field('cb-access-timestamp')
  t.true(isNow(Number(time)))
  t.is(
    field('cb-access-sign'),
    macOf('sha256', Buffer.from(KEY), `${time}POST/echo/orders?limit=1${body}`).toString('base64'),
  )
  await post('github_webhook', KEY)
  t.is(field('x-hub-signature-256'), `sha256=${macOf('sha256', KEY, body).toString('hex')}`)
  await post('stripe_style', KEY)
  const [, at, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(field('stripe-signature'))!
  t.is(v1, macOf('sha256', KEY, `${at}.${body}`).toString('hex'))
  for (const key of [`whsec_${key64}`, key64]) {
    await post('standard_webhooks', key)
    const signed = `${field('webhook-id')}.${field('webhook-timestamp')}.${body}`
    t.is(
      field('webhook-signature'),
      `v1,${macOf('sha256', Buffer.from(KEY), signed).toString('base64')}`,
    )
  }
  const binance = await settingWith({ key: KEY, key_id: 'k', preset: 'binance' })
  // A program with placeholders sends its own.
  await call(binance, '/echo?symbol=BTC&timestamp=1&signature=mine').gives(200)
  const { searchParams: query, search } = new URL(last().url!, upstream.origin)
  t.is(field('x-mbx-apikey'), 'k')
  t.true(isNow(Number(query.get('timestamp')) / 1000))
  t.deepEqual([...query.keys()], ['symbol', 'timestamp', 'signature'])
  const signed = search.slice(1).replace(/&signature=.*/, '')
  t.is(query.get('signature'), macOf('sha256', KEY, signed).toString('hex'))
})

test.serial('the id of a webhook may be chosen by the caller', async (t) => {
  const setting = await settingWith({ key: KEY, preset: 'standard_webhooks' })
  await call(setting, '/echo', {
    headers: [['webhook-id', 'msg_1']],
    method: 'POST',
    body: 'x',
  }).gives(200)
  t.is(field('webhook-id'), 'msg_1')
})

test.serial('a streamed body is read before it is signed', async (t) => {
  const setting = await settingWith({
    key: KEY,
    string: '{body}',
    set: [{ header: 'x-sig', value: '{signature}' }],
    body_hash: 'md5_base64',
  })
  const body = Buffer.alloc(300_000, 'svc')
  const answer = await house.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/hash`),
    body,
  })
  t.is(answer.statusCode, 200)
  t.like(await answer.body.json(), { sha256: createHash('sha256').update(body).digest('hex') })
  t.is(last().headers['content-length'], String(body.length))
  const md5 = createHash('md5').update(body).digest('base64')
  t.is(field('x-sig'), macOf('sha256', KEY, md5).toString('hex'))
})

test.serial('the limits of a grant hold', async (t) => {
  const secret = { key: KEY, string: '{body}', set: [{ header: 'x-sig', value: '{signature}' }] }
  const setting = await settingWith(secret, {
    methods: ['GET'],
    path_prefixes: ['/echo'],
    max_requests: 1,
  })
  t.is((await call(setting, '/echo', { method: 'POST', body: 'x' })).status, 403)
  t.is((await call(setting, '/headers')).status, 403)
  await call(setting, '/echo').gives(200)
  await call(setting, '/echo').gives(429)
  const small = await settingWith(secret, { max_bytes: 10 })
  await call(small, '/echo', { method: 'POST', body: 'x'.repeat(20) }).gives(429)
})

test('malformed secrets are refused when they are stored', async (t) => {
  const { token } = await api.workspace()
  const create = async (secret: unknown, more: object = {}) => {
    const { status, body } = await api.post(CREDENTIALS, token, {
      provider: 'p',
      credential_type: 'custom',
      label: 'L',
      auth_scheme: 'hmac',
      allowed_hosts: [UPSTREAM_NAME],
      secret,
      ...more,
    })
    t.false(JSON.stringify(body).includes(KEY))
    const [first] = (body['errors'] ?? []) as { pointer: string }[]
    return [status, first?.pointer.replace(/^#/, '')]
  }
  const set = [{ header: 'x', value: '{signature}' }]
  for (const [secret, pointer] of [
    ['no json', '/secret'],
    ['[1]', '/secret'],
    [{ key: KEY }, '/secret/string'],
    [{ key: KEY, preset: 'unheard' }, '/secret/preset'],
    [{ key: KEY, preset: 'binance' }, '/secret/key_id'],
    [{ key: KEY, preset: 'github_webhook', output: 'hex' }, '/secret/output'],
    [{ key: KEY, string: '{bodyy}', set }, '/secret/string'],
    [{ key: KEY, string: '{signature}', set }, '/secret/string'],
    [{ key: KEY, string: '{nonce}', set }, '/secret/string'],
    [{ key: KEY, string: '{header:a b}', set }, '/secret/string'],
    [{ key: KEY, string: 'x', set: [{ header: 'x', value: '{sig}' }] }, '/secret/set/0/value'],
    [
      { key: KEY, string: 'x', set: [{ header: 'x', value: '{body}{signature}' }] },
      '/secret/set/0/value',
    ],
    [{ key: KEY, string: 'x', set: [{ value: '{signature}' }] }, '/secret/set/0'],
    [
      { key: KEY, string: 'x', set: [{ header: 'host', value: '{signature}' }] },
      '/secret/set/0/header',
    ],
    [{ key: KEY, string: 'x', set: [{ header: 'x', value: 'y' }] }, '/secret/set'],
    [{ key: KEY, string: 'x', set, key_encoding: 'hex' }, '/secret/key'],
    [{ key: KEY, string: 'x', set, [KEY]: 1 }, '/secret'],
  ] as const) {
    t.deepEqual(await create(secret), [400, pointer], JSON.stringify(secret))
  }
  const fine = { key: KEY, string: '{timestamp}{body}', set }
  t.is((await create(fine))[0], 201)
  t.deepEqual(await create(fine, { credential_type: 'ssh_key' }), [400, '/auth_scheme'])
  t.deepEqual(await create(fine, { auth_scheme: 'bearer' }), [400, '/secret'])
})

test.serial('a new secret is used by the next call', async (t) => {
  const make = (key: string) => ({
    key,
    string: '{path}',
    set: [{ header: 'x-sig', value: '{signature}' }],
  })
  const setting = await settingWith(make(KEY))
  await call(setting, '/echo').gives(200)
  const { direct: _, operator, credentialId } = setting
  await api
    .post(`${CREDENTIALS}/${credentialId}/rotate`, operator, { secret: make('another key') })
    .gives(200)
  await call(setting, '/echo').gives(200)
  t.is(field('x-sig'), macOf('sha256', 'another key', '/echo').toString('hex'))
})
