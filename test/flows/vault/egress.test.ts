/** Calls with a credential over HTTP. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'ava'
import { Client } from 'undici'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  type EgressHouse,
  egressHouse,
  SECRET,
  settingOf,
  type Setting,
} from '../../support/vault/egress.js'
import { notThrough, THROUGH, THROUGH_TRANSPORT } from '../../support/fleet/through.js'
import type { Json } from '../../support/api.js'
import { REPEATED_OVER, TRANSPORTS } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'
import { digestOf } from '../../actors/vault/egress/upstream.js'

const MIB = 2 ** 20
/** Redaction reads every byte of a response. */
const DOWN_BYTES = 8 * MIB
const houses = new Map<string, EgressHouse>()
for (const transport of TRANSPORTS) houses.set(transport, await egressHouse({ transport }))
const resources = houses.get('plain_http')!
const repeated = [...houses].filter(([transport]) => REPEATED_OVER.some((one) => one === transport))

const proxied = ({ credentialId }: Setting, url: string, more: object = {}) => ({
  credential_id: credentialId,
  method: 'GET',
  url,
  ...more,
})

for (const [transport, at] of houses) {
  test.serial(`a call is relayed with the credential (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const { delegated } = setting
    for (const stream of [false, true]) {
      const answer = await at.api.post(
        '/v1/proxy',
        delegated,
        proxied(setting, `${at.upstream.origin}/headers`, {
          headers: [
            ['Accept', 'text/plain'],
            ['Cookie', 'a=b'],
          ],
          stream,
        }),
      )
      t.is(answer.status, 200)
      const { headers } = answer
      t.is(headers['proxy-status'], 'svc-egress; received-status=200')
      t.is(headers['x-svc-upstream-request-id'], 'theirs')
      t.is(headers['x-ratelimit-remaining'], '7')
      t.is(headers['set-cookie'], undefined)
      // nginx has another name there.
      if (THROUGH === undefined) t.is(headers['server'], undefined)
      t.is(headers['x-hop'], undefined)
      t.is(headers['ratelimit'], undefined)
      t.not(headers['x-request-id'], 'theirs')
      const sent = at.upstream.requests.at(-1)!
      t.is(sent.headers.authorization, `Bearer ${SECRET}`)
      t.is(sent.headers.cookie, undefined)
      t.is(sent.headers.accept, 'text/plain')
      // The upstream echoes the secret, which is redacted.
      t.true(JSON.stringify(answer.body).includes('[redacted]'))
      t.false(JSON.stringify(answer.body).includes(SECRET))
    }
    const closed = await closedCalls(at, setting.tenantId, 2)
    t.like(closed[0], { outcome: 'completed', method: 'GET', redactions: 1 })
  })
}

test.serial('the secret is redacted as upstreams in .NET write it', async (t) => {
  const at = resources
  const setting = await settingOf(at)
  for (const [plain, escaped] of [
    ['+', '\\u002B'],
    ['+', '&#x2B;'],
  ] as const) {
    const answer = await at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: {
        ...bodyCall(setting, `${at.upstream.origin}/echo`),
        'content-type': 'application/json',
      },
      body: `{"key":"${SECRET.replace(plain, escaped)}"}`,
    })
    t.is(await answer.body.text(), '{"key":"[redacted]"}', escaped)
  }
})

for (const [transport, at] of repeated) {
  test.serial(`large bodies pass unchanged in each direction (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const { direct, tenantId } = setting
    const chunk = Buffer.alloc(64 * 1024, 'svc ')
    async function* produce() {
      for (let sent = 0; sent < 32 * MIB; sent += chunk.length) yield chunk
    }
    const up = await at.send('/v1/proxy/body', {
      token: direct,
      headers: {
        ...bodyCall(setting, `${at.upstream.origin}/hash`),
        'content-length': String(32 * MIB),
        'content-type': 'application/x-tar',
      },
      body: produce() as never,
    })
    t.is(up.statusCode, 200)
    const told = (await up.body.json()) as { bytes: number; sha256: string }
    t.is(told.sha256, digestOf(32 * MIB))
    t.is(at.upstream.requests.at(-1)!.headers['content-length'], String(32 * MIB))
    t.is(at.upstream.requests.at(-1)!.headers['content-type'], 'application/x-tar')

    const down = await at.send('/v1/proxy/body', {
      token: direct,
      headers: bodyCall(setting, `${at.upstream.origin}/bytes/${DOWN_BYTES}`, {
        'x-svc-method': 'GET',
      }),
    })
    t.is(down.statusCode, 200)
    const hash = createHash('sha256')
    for await (const part of down.body) hash.update(part as Buffer)
    t.is(hash.digest('hex'), digestOf(DOWN_BYTES))
    const closed = await closedCalls(at, tenantId, 2)
    t.like(closed[1], { outcome: 'completed', bytes: DOWN_BYTES })
  })
}

const TYPED_TWICE = [
  ['content-type', 'text/plain'],
  ['Content-Type', 'text/html'],
]

test.serial('a credential with an unknown scheme sends nothing', async (t) => {
  const setting = await settingOf(resources)
  const { api, running, upstream } = resources
  await sql(running)`
    update vault_credentials set auth_scheme = 'digest' where id = ${setting.credentialId}`
  const before = upstream.requests.length
  const call = proxied(setting, `${upstream.origin}/headers`)
  const answer = await api.post('/v1/proxy', setting.delegated, call)
  t.like(answer, { status: 403, body: { error: 'policy_denied' } }, JSON.stringify(answer.body))
  t.is(upstream.requests.length, before)
})

test.serial('errors of the gateway and the vault', async (t) => {
  const setting = await settingOf(resources)
  const { delegated, direct } = setting
  const url = `${resources.upstream.origin}/echo`
  const before = resources.upstream.requests.length
  const cases: [number, string, object, string?][] = [
    [400, 'bad_request', proxied(setting, url, { method: 'TRACE' })],
    [400, 'bad_request', proxied(setting, 'http://api.upstream.example/')],
    [400, 'bad_request', proxied(setting, 'https://a:b@api.upstream.example/')],
    [400, 'bad_request', proxied(setting, url, { body: 'a', body_base64: 'YQ==' })],
    [400, 'bad_request', proxied(setting, url, { body_base64: 'YQ' })],
    [400, 'bad_request', proxied(setting, url, { method: 'POST', body: 'a\ud800' })],
    [400, 'bad_request', proxied(setting, url, { unknown: 1 })],
    [400, 'bad_request', proxied(setting, url, { headers: [['x', 'a\r\nb: c']] })],
    [400, 'bad_request', proxied(setting, url, { headers: [['AUTHORIZATION', 'x']] })],
    [400, 'bad_request', proxied(setting, url, { headers: TYPED_TWICE })],
    [400, 'bad_request', { ...proxied(setting, url), credential_id: 'x' }],
    [403, 'policy_denied', proxied(setting, url, { auth_scheme: 'basic' })],
    [403, 'policy_denied', proxied(setting, 'https://127.0.0.1/')],
    [403, 'policy_denied', proxied(setting, 'https://other.example/')],
    [404, 'not_found', { ...proxied(setting, url), credential_id: crypto.randomUUID() }],
    [403, 'forbidden', proxied(setting, url), direct],
    [401, 'unauthorized', proxied(setting, url), 'nonsense'],
  ]
  for (const [status, error, body, token = delegated] of cases) {
    const answer = await resources.api.post('/v1/proxy', token, body)
    t.is(answer.status, status, JSON.stringify([body, answer.body]))
    t.is(answer.body['error'], error, JSON.stringify(body))
    const type = status === 400 ? 'http_request_error' : 'http_request_denied'
    t.is(answer.headers['proxy-status'], `svc-egress; error=${type}`)
  }
  t.is(resources.upstream.requests.length, before)
  const json = proxied(setting, url, { method: 'POST', body: 'a\0b, \u{1f600}' })
  const passed = await resources.api.post('/v1/proxy', delegated, json)
  t.is(passed.status, 200, 'a relayed body may contain any UTF-8')
})

for (const [transport, at] of repeated) {
  test.serial(`an invalid header is reported with its position (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const url = `${at.upstream.origin}/headers`
    const before = at.upstream.requests.length
    const call = async (to: string, more: Record<string, string>) => {
      const headers = bodyCall(setting, to, { 'x-svc-method': 'GET', ...more })
      const answer = await at.send('/v1/proxy/body', { token: setting.direct, headers })
      return { status: answer.statusCode, body: (await answer.body.json()) as Json }
    }
    const cases: [string, string, string, Record<string, string>?][] = [
      ['header:x-svc-url', 'absolute and well-formed', 'api.upstream.example/'],
      ['header:x-svc-url', 'must not contain a fragment', `${url}#a`],
      ['header:x-svc-url', 'percent-encoded ASCII', `${url}/caf\u00e9/menu`],
      ['header', 'The value of "x-a" contains', url, { 'x-svc-headers': '[["x-a","\\u4e00"]]' }],
      ['header', '"x a"', url, { 'x-svc-headers': '[["x a",""]]' }],
      [
        'header',
        '"content-type" must not occur more than once',
        url,
        { 'content-type': 'text/plain', 'x-svc-header-content-type': 'text/html' },
      ],
    ]
    for (const [pointer, words, to, more = {}] of cases) {
      const { status, body } = await call(to, more)
      t.is(status, 400, words)
      t.true(String(body['detail']).includes(words), String(body['detail']))
      t.is((body['errors'] as Json[])[0]!['pointer'], pointer)
    }
    t.is(at.upstream.requests.length, before)
    const { status } = await call(url, {
      'x-svc-credential-id': setting.credentialId.toUpperCase(),
    }).catch(() => ({ status: 0 }))
    t.is(status, 200, 'UUIDs are case-insensitive')
  })

  test.serial(`Accept headers are relayed unchanged (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const { delegated, direct } = setting
    const url = `${at.upstream.origin}/headers`
    for (const accept of ['application/json', 'text/event-stream', 'image/png, text/*;q=0']) {
      const described = await at.send('/v1/proxy', {
        token: delegated,
        headers: { accept, 'content-type': 'application/json' },
        body: JSON.stringify(proxied(setting, url)),
      })
      t.is(described.statusCode, 200, `${accept}: ${await described.body.text()}`)
      const raw = await at.send('/v1/proxy/body', {
        token: direct,
        headers: { accept, ...bodyCall(setting, url, { 'x-svc-method': 'GET' }) },
      })
      t.is(raw.statusCode, 200, `${accept}: ${await raw.body.text()}`)
      t.is(at.upstream.requests.at(-1)!.headers.accept, undefined)
    }
  })
}

test.serial('a connection is reused after a body', async (t) => {
  const setting = await settingOf(resources)
  const { delegated, direct } = setting
  const url = `${resources.upstream.origin}/hash`
  const described = (bytes: number) => ({
    path: '/v1/proxy',
    headers: { authorization: `Bearer ${delegated}`, 'content-type': 'application/json' },
    body: JSON.stringify(proxied(setting, url, { method: 'POST', body: 'x'.repeat(bytes) })),
  })
  const raw = (bytes: number) => ({
    path: '/v1/proxy/body',
    headers: { authorization: `Bearer ${direct}`, ...bodyCall(setting, url) },
    body: Buffer.alloc(bytes),
  })
  const calls = [described(100 * 1024), described(MIB), raw(100 * 1024), raw(MIB), raw(4 * MIB)]
  notThrough('the proxy makes its connection')
  const client = new Client(resources.running.baseUrl, { keepAliveTimeout: 60_000 })
  try {
    for (const call of [...calls, ...calls.toReversed()]) {
      const answer = await client.request({ method: 'POST', ...call })
      t.is(answer.statusCode, 200)
      await answer.body.dump()
    }
  } finally {
    await client.destroy()
  }
})

for (const [transport, at] of houses) {
  test.serial(
    `a response that breaks off before its first byte is not an empty one (${transport})`,
    async (t) => {
      const setting = await settingOf(at)
      // On uWebSockets the headers leave with the first byte.
      const headsLate = transport === 'plain_http' && THROUGH_TRANSPORT !== 'tls_h2_only'
      const call = (path: string, stream: boolean) =>
        at.send('/v1/proxy/body', {
          token: setting.direct,
          headers: bodyCall(setting, at.upstream.origin + path, {
            'x-svc-method': 'GET',
            'x-svc-stream-response': String(stream),
          }),
        })
      const buffered = await call('/reset-after-headers', false)
      t.is(buffered.statusCode, 502)
      t.is(((await buffered.body.json()) as { error: string }).error, 'bad_gateway')
      t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_incomplete')

      const leases = `${CREDENTIALS}/${setting.credentialId}/leases`
      for (const path of ['/reset-after-headers', '/bytes/20000']) {
        if (path === '/bytes/20000') {
          const lease = { recipient_id: setting.agentId, byte_budget: 5_000 }
          t.is((await at.api.post(leases, setting.operator, lease)).status, 201)
        }
        const streamed = await call(path, true)
        if (headsLate) {
          t.is(streamed.statusCode, path === '/reset-after-headers' ? 502 : 429, path)
          await streamed.body.dump()
        } else {
          // The headers have been sent before the failure.
          t.is(streamed.statusCode, 200, path)
          await t.throwsAsync(streamed.body.text(), undefined, path)
        }
      }
      const outcomes = (await closedCalls(at, setting.tenantId, 3)).map(({ outcome }) => outcome)
      t.deepEqual(outcomes, ['upstream_error', 'upstream_error', 'budget_exhausted'])
    },
  )
}

for (const [transport, at] of repeated) {
  test.serial(`upstream headers of any name in x-svc-headers (${transport})`, async (t) => {
    const setting = await settingOf(at)
    const withList = async (list: string) => {
      const answer = await at.send('/v1/proxy/body', {
        token: setting.direct,
        headers: {
          ...bodyCall(setting, `${at.upstream.origin}/headers`, { 'x-svc-method': 'GET' }),
          'x-svc-header-x-one': '1',
          'x-svc-headers': list,
        },
      })
      return { status: answer.statusCode, body: await answer.body.text() }
    }
    const pairs = JSON.stringify([
      ['API_Version', '2'],
      ['x.y', 'caf\\u00e9'],
      ['cookie', 'a=b'],
    ])
    const { status, body } = await withList(pairs.replace('\\\\', '\\'))
    t.is(status, 200, body)
    const sent = at.upstream.requests.at(-1)!.headers
    t.like(sent, { 'x-one': '1', api_version: '2', 'x.y': 'caf\u00e9' })
    t.is(sent.cookie, undefined)
    for (const list of [
      'x: y',
      '{}',
      '["a"]',
      '[["a"]]',
      '[["a","b\\r\\nc: d"]]',
      '[["Authorization","x"]]',
    ]) {
      t.is((await withList(list)).status, 400, list)
    }
  })
}

test.serial('a client that sends a large body before it reads gets the error', async (t) => {
  notThrough('it writes plain text to the socket of a process')
  const setting = await settingOf(resources)
  const { hostname, port } = new URL(resources.running.baseUrl)
  const url = `${resources.upstream.origin}/hash`
  const call = (more: Record<string, string>, bytes: number) => {
    const fields = {
      host: `${hostname}:${port}`,
      authorization: `Bearer ${setting.direct}`,
      ...bodyCall(setting, url),
      ...more,
      'content-length': String(bytes),
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.concat([
      Buffer.from(`POST /v1/proxy/body HTTP/1.1\r\n${lines.join('')}\r\n`),
      Buffer.alloc(bytes),
    ])
  }
  const large = 16 * MIB
  const cases: [number, Record<string, string>, number][] = [
    [400, { 'x-svc-credential-id': 'x' }, large],
    [404, { 'x-svc-credential-id': crypto.randomUUID() }, large],
    [403, { 'x-svc-auth-scheme': 'basic' }, large],
    [401, { authorization: 'Bearer nonsense' }, large],
    [413, { 'x-svc-url': `${resources.upstream.origin}/early` }, large],
    [200, {}, 10],
  ]
  for (const [status, more, bytes] of cases) {
    const socket = connect(Number(port), hostname)
    t.teardown(() => socket.destroy())
    await new Promise<void>((resolve, reject) =>
      socket.write(call(more, bytes), (error) => (error == null ? resolve() : reject(error))),
    )
    const answered = Promise.race([once(socket, 'data'), once(socket, 'close')])
    socket.resume()
    const [answer] = (await answered) as [Buffer]
    t.true(answer instanceof Buffer, `closed instead of ${status}`)
    t.is(answer.toString('latin1', 9, 12), String(status), answer.toString('latin1'))
    socket.destroy()
  }
})
