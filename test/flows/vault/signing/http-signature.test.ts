/** Calls that are signed with `http_signature`, verified by the text of RFC 9421. */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import type { Json } from '../../../support/api.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  egressHouse,
  settingOf,
} from '../../../support/vault/egress.js'
import { startUpstream } from '../../../actors/vault/egress/upstream.js'
import { approvalScene } from '../../../support/vault/approvals.js'
import { raw } from '../../../support/vault/raw.js'
import { until } from '../../../support/service/watch.js'

const house = await egressHouse()
const { api, upstream, running } = house

const signing = (secret: unknown = {}, grant: Json = {}) =>
  settingOf(
    house,
    { auth_scheme: 'http_signature', credential_type: 'custom', secret } as Json,
    grant,
  )
type Made = Awaited<ReturnType<typeof signing>>

const call = ({ delegated, credentialId }: Made, path: string, more: object = {}) =>
  api.post('/v1/proxy', delegated, {
    credential_id: credentialId,
    url: upstream.origin + path,
    ...more,
  })
const last = () => upstream.requests.at(-1)!
const { host } = new URL(upstream.origin)

type Signed = {
  readonly method: string
  readonly path: string
  readonly query?: string
  readonly authority: string
  readonly field: (name: string) => string
}

/** RFC 9421 section 3.2, for the components that the service covers. @returns the parameters. */
async function verified(
  t: ExecutionContext,
  { method, path, query = '', authority, field }: Signed,
) {
  const input = field('signature-input').slice('sig1='.length)
  const [, covered = '', parameters = ''] = /^\(([^)]*)\)(.*)$/.exec(input)!
  const values: Readonly<Record<string, string>> = {
    '"@authority"': authority,
    '"@method"': method,
    '"@path"': path,
    '"@query"': query,
    '"signature-agent";key="sig1"': field('signature-agent').slice('sig1='.length),
    '"content-digest"': field('content-digest'),
  }
  const names = covered.split(' ')
  const base = [
    ...names.map((name) => `${name}: ${values[name]}`),
    `"@signature-params": ${input}`,
  ].join('\n')
  const url = /^sig1="([^"]*)"$/.exec(field('signature-agent'))![1]!
  const parameter = (name: string) => new RegExp(`;${name}="?([^;"]*)"?`).exec(parameters)?.[1]
  const directory = JSON.parse((await raw(running, new URL(url).pathname)).body.toString()) as {
    keys: (JsonWebKey & { kid: string; x: string })[]
  }
  const jwk = directory.keys.find(({ kid }) => kid === parameter('keyid'))!
  const thumbprint = createHash('sha256')
    .update(`{"crv":"Ed25519","kty":"OKP","x":"${jwk.x}"}`)
    .digest('base64url')
  t.is(jwk.kid, thumbprint)
  t.is((jwk as Json)['d'], undefined)
  const signature = Buffer.from(/^sig1=:(.*):$/.exec(field('signature'))![1]!, 'base64')
  t.true(verify(null, Buffer.from(base), createPublicKey({ key: jwk, format: 'jwk' }), signature))
  t.is(parameter('tag'), 'web-bot-auth')
  t.is(parameter('alg'), 'ed25519')
  const created = Number(parameter('created'))
  t.true(Math.abs(Date.now() / 1000 - created) < 60)
  t.is(Number(parameter('expires')), created + 60)
  return { names, url, nonce: parameter('nonce'), kid: jwk.kid }
}

const sentBy = (method: string, path: string): Signed => ({
  method,
  path,
  authority: host,
  field: (name) => String(last().headers[name]),
})

test.serial('a call has the exact components, and a key of the agent', async (t) => {
  const setting = await signing()
  await call(setting, '/headers?b=2&a=1', {
    headers: [
      ['Signature', 'sig1=:mine:'],
      ['Signature-Input', 'sig1=()'],
      ['Signature-Agent', '"https://mine.example"'],
      ['Content-Digest', 'sha-256=:mine:'],
      ['Authorization', 'mine'],
    ],
  }).gives(200)
  const { names, url, nonce, kid } = await verified(t, sentBy('GET', '/headers'))
  t.deepEqual(names, ['"@authority"', '"@method"', '"@path"', '"signature-agent";key="sig1"'])
  t.is(url, `${running.baseUrl}/agents/${setting.agentId}/jwks.json`)
  t.is(nonce, undefined)
  t.is(last().headers.authorization, undefined)
  t.is(last().headers['content-digest'], undefined)

  const body = '{"a":"ü"}'
  await call(setting, '/echo/x', { method: 'POST', body }).gives(200)
  const signed = await verified(t, sentBy('POST', '/echo/x'))
  t.is(signed.names.at(-1), '"content-digest"')
  const digest = createHash('sha256').update(body).digest('base64')
  t.is(last().headers['content-digest'], `sha-256=:${digest}:`)
  t.is(signed.kid, kid, 'an agent has one key')

  const other = await house.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/echo/y`),
    body: 'streamed',
    method: 'POST',
  })
  t.is(other.statusCode, 200)
  await other.body.dump()
  t.is((await verified(t, sentBy(last().method!, '/echo/y'))).kid, kid)
})

test.serial('an upstream that asks for a nonce gets it once', async (t) => {
  const setting = await signing('{}')
  const before = upstream.requests.length
  await call(setting, '/nonce').gives(200)
  t.is(upstream.requests.length - before, 2)
  t.is((await verified(t, sentBy('GET', '/nonce'))).nonce, 'of the upstream')
  t.is((await call(setting, '/refusing')).status, 403)
  t.is(upstream.requests.length - before, 4)
})

test.serial('a caller that leaves ends a refused call before and after its answer', async (t) => {
  const setting = await signing()
  // Less than is read for a reason of the refusal, and more.
  for (const bytes of [100, 40_000]) {
    const control = new AbortController()
    const path = `/refusing-held/${bytes}`
    const answer = house
      .send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, upstream.origin + path, {
          'x-svc-method': 'GET',
          'x-svc-stream-response': 'true',
        }),
        signal: control.signal,
      })
      .catch(() => undefined)
    await until('the call is refused', () => last().url === path)
    if (bytes > 16 * 1024) {
      const { statusCode, body } = (await answer)!
      t.is(statusCode, 403)
      body.on('error', () => {}).resume()
    }
    control.abort()
    await until('its connection is closed', () => last().socket.destroyed)
  }
})

test.serial('a signature for a request that the agent sends itself', async (t) => {
  const setting = await signing()
  const { credentialId, delegated, direct, agentId } = setting
  const before = upstream.requests.length
  const nonces = new Set<string | undefined>()
  const sign = (token: string, more: object = {}) =>
    api.post('/v1/sign-request', token, {
      credential_id: credentialId,
      method: 'POST',
      url: `${upstream.origin}/echo/orders?limit=1`,
      body_base64: Buffer.from('{"side":"buy"}').toString('base64'),
      ...more,
    })
  for (const token of [delegated, direct]) {
    const { body } = await sign(token, { headers: [['content-type', 'text/plain']] }).gives(200)
    const headers = new Headers(body['headers'] as Record<string, string>)
    t.deepEqual([...headers.keys()].toSorted(), [
      'content-digest',
      'signature',
      'signature-agent',
      'signature-input',
    ])
    const field = (name: string) => headers.get(name)!
    const sent = { method: 'POST', path: '/echo/orders', authority: host, field }
    const { nonce } = await verified(t, sent)
    t.regex(nonce!, /^[\w-]{22}$/)
    t.false(nonces.has(nonce))
    nonces.add(nonce)
  }
  const { body } = await sign(delegated, { body_base64: undefined, method: 'GET' }).gives(200)
  t.deepEqual(Object.keys(body['headers'] as Json), [
    'Signature-Agent',
    'Signature-Input',
    'Signature',
  ])
  t.is(
    (await sign(delegated, { url: 'https://elsewhere.example/' })).body['error'],
    'policy_denied',
  )
  t.is((await sign(delegated, { credential_id: crypto.randomUUID() })).status, 404)
  t.is((await sign(delegated, { method: 'BREW' })).status, 400)
  t.is((await api.post('/v1/sign-request', undefined, {})).status, 401)
  const key = await settingOf(house)
  const refused = await api.post('/v1/sign-request', key.delegated, {
    credential_id: key.credentialId,
    method: 'GET',
    url: `${upstream.origin}/`,
  })
  t.is(refused.body['error'], 'policy_denied')
  const guarded = await settingOf(house, {}, { approval: 'each', budget: ONE_CALL })
  const unasked = await api.post('/v1/sign-request', guarded.delegated, {
    credential_id: guarded.credentialId,
    method: 'GET',
    url: `${upstream.origin}/`,
  })
  t.like(unasked, { status: 403, body: { error: 'policy_denied' } })
  t.deepEqual((await api.get('/api/v1/approvals', guarded.operator).gives(200)).body, [])
  t.deepEqual(await usedOf(guarded), { requests: 0 })
  t.is(upstream.requests.length, before, 'nothing is sent')

  await api.post(`/api/v1/agents/${agentId}/suspend`, setting.operator).gives(200)
  t.is((await raw(running, `/agents/${agentId}/jwks.json`)).status, 404)
  t.true([401, 404].includes((await sign(delegated)).status))
  const directory = `/.well-known/http-message-signatures-directory?agent_id=${agentId}`
  t.is((await raw(running, directory)).status, 404)
})

const ONE_CALL = { requests: 1, window: 'month' }

test.serial('a signature for an approved request is for no other', async (t) => {
  const secret = { auth_scheme: 'http_signature', credential_type: 'custom', secret: {} }
  const { setting, answer } = await approvalScene(house, { approval: 'each' }, secret as Json)
  const sign = (query: string, approvalId?: string) =>
    api.post(
      '/v1/sign-request',
      setting.delegated,
      {
        credential_id: setting.credentialId,
        method: 'POST',
        url: `${upstream.origin}/echo/pay${query}`,
      },
      approvalId === undefined ? {} : { 'x-svc-approval': approvalId },
    )
  for (const query of ['?amount=5', '']) {
    const id = String((await sign(query).gives(202)).body['approval_id'])
    t.is((await answer(id, 'approve')).status, 200)
    const { body } = await sign(query, id).gives(200)
    const headers = new Headers(body['headers'] as Record<string, string>)
    const field = (name: string) => headers.get(name)!
    const sent = { method: 'POST', path: '/echo/pay', authority: host, field }
    const { names } = await verified(t, { ...sent, query: query || '?' })
    t.true(names.includes('"@query"') && names.includes('"content-digest"'))
    const empty = createHash('sha256').update('').digest('base64')
    t.is(field('content-digest'), `sha-256=:${empty}:`)
  }
})

async function usedOf({ credentialId, operator }: Made): Promise<Json> {
  const { body } = await api.get(`${CREDENTIALS}/${credentialId}/grants`, operator).gives(200)
  return ((body as unknown as readonly Json[])[0]!['budget'] as Json)['used'] as Json
}

test.serial('a signature counts for the budget as a call does', async (t) => {
  const setting = await signing({}, { budget: { requests: 2, bytes: 100, window: 'month' } })
  const sign = (path: string) =>
    api.post('/v1/sign-request', setting.delegated, {
      credential_id: setting.credentialId,
      method: 'POST',
      url: upstream.origin + path,
      body_base64: Buffer.alloc(10).toString('base64'),
    })
  await sign('/a').gives(200)
  await until('it is settled', async () => (await usedOf(setting))['bytes'] === 10)
  t.deepEqual(await usedOf(setting), { requests: 1, bytes: 10 })
  await sign('/b').gives(200)
  t.like((await sign('/c').gives(429)).body, { budget: 'requests', left: 0 })
})

test.serial('a second try that is not sent does not give back the first', async (t) => {
  const setting = await signing({}, { budget: { requests: 1, window: 'month' } })
  const own = await startUpstream({ tls: true })
  const { delegated, credentialId, tenantId } = setting
  const url = `${own.origin}/nonce-held`
  const answer = api.post('/v1/proxy', delegated, { credential_id: credentialId, url }).gives(502)
  await until('it is refused', () => own.pushed === 1)
  await own.close()
  await answer
  await closedCalls(house, tenantId, 1)
  t.deepEqual(await usedOf(setting), { requests: 1 })
})

test.serial('the directory is signed by each of its keys', async (t) => {
  const setting = await signing()
  await call(setting, '/headers').gives(200)
  const path = `/.well-known/http-message-signatures-directory`
  for (const query of ['', `?agent_id=${setting.agentId}`]) {
    const { status, headers, body } = await raw(running, path + query)
    t.is(status, 200)
    t.is(headers['content-type'], 'application/http-message-signatures-directory+json')
    t.is(headers['cache-control'], 'public, max-age=300')
    t.is(headers['access-control-allow-origin'], '*')
    const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`
    t.is(headers['content-digest'], digest)
    const { keys } = JSON.parse(body.toString()) as { keys: (JsonWebKey & { kid: string })[] }
    if (query !== '') t.is(keys.length, 1)
    const inputs = String(headers['signature-input']).split(/, (?=sig\d+=)/)
    const signatures = String(headers['signature']).split(', ')
    t.is(inputs.length, keys.length)
    for (const [index, jwk] of keys.entries()) {
      const input = inputs[index]!.slice(inputs[index]!.indexOf('=') + 1)
      t.regex(input, /^\("@authority";req "content-digest"\);created=\d+;expires=\d+;keyid="/)
      t.true(input.endsWith(';tag="http-message-signatures-directory"'))
      t.true(input.includes(`keyid="${jwk.kid}"`))
      const base = `"@authority";req: ${new URL(running.baseUrl).host}\n"content-digest": ${digest}\n"@signature-params": ${input}`
      const signature = Buffer.from(/:(.*):$/.exec(signatures[index]!)![1]!, 'base64')
      t.true(
        verify(null, Buffer.from(base), createPublicKey({ key: jwk, format: 'jwk' }), signature),
      )
    }
  }
})

test.serial('the secret is an empty object', async (t) => {
  const { token } = await api.workspace()
  for (const secret of [{ key: 'x' }, '[]', 'x'] as const) {
    const made = await api.post(CREDENTIALS, token, {
      provider: 'x',
      credential_type: 'custom',
      label: 'x',
      auth_scheme: 'http_signature',
      allowed_hosts: ['api.example.com'],
      secret,
    })
    t.is(made.status, 400, JSON.stringify(secret))
  }
})
