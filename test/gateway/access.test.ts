import test from 'ava'
import { onEachTransport, type OnTransport, openStage, TRANSPORTS } from './stage.js'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Which host and client a request names. */
function hosts({ on, call, stage }: OnTransport): void {
  for (const [host, expected] of [
    ['id.test', 200],
    ['ID.test', 200],
    ['id.test:9999', 200],
    ['acme.tenants.test', 200],
    ['one.apps.test', 200],
    ['ported.test:8443', 200],
    ['ported.test', 421],
    ['two.one.apps.test', 421],
    ['deep.acme.tenants.test', 421],
    ['evil.test', 421],
    ['id.test.evil.test', 421],
    ['127.0.0.1', 421],
    ['id.test@evil.test', 400],
    ['id.test:port', 400],
    ['id.test:65535', 200],
    ['id.test:65536', 400],
    ['xn--a.tenants.test', 400],
    ['1.2.3.4.5', 400],
  ] as const) {
    test(on(`host ${host} is ${expected}`), async (t) => {
      const { status } = await call({ path: '/hello', headers: { host } })
      t.is(status, expected)
    })
  }

  for (const [forwarded, client] of [
    ['203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db9::1]:443', '2001:db9::1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['10.9.9.9, 10.1.2.3', '10.9.9.9'],
    ['203.0.113.9, nonsense', '127.0.0.1'],
    ['nonsense, 10.1.2.3', '10.1.2.3'],
    ['', '127.0.0.1'],
  ] as const) {
    test(on(`X-Forwarded-For "${forwarded}" from a trusted proxy means ${client}`), async (t) => {
      const { json } = await call({
        method: 'POST',
        path: '/things/a/parts/p',
        headers: { 'x-forwarded-for': forwarded },
      })
      t.is(json()['clientAddress'] as unknown, client)
    })
  }

  test(on('a trusted proxy says which scheme the client used'), async (t) => {
    const urlOf = async (headers: Record<string, string>) => {
      const { json } = await call({ method: 'POST', path: '/things/a/parts/p', headers })
      return (json()['credentials'] as unknown as { httpUrl: string }).httpUrl
    }
    t.is(await urlOf({}), 'https://id.test/things/a/parts/p')
    const host = 'one.apps.test'
    if (stage().certificate !== null) {
      t.is(await urlOf({ host }), `https://${host}/things/a/parts/p`)
    } else {
      t.is(await urlOf({ host }), `http://${host}/things/a/parts/p`)
      const forwarded = { host, 'x-forwarded-proto': 'https' }
      t.is(await urlOf(forwarded), `https://${host}/things/a/parts/p`)
    }
  })
}

/** What other origins may read. */
function origins({ on, call }: OnTransport): void {
  test(on('public documents may be read from anywhere, without credentials'), async (t) => {
    const { headers } = await call({ path: '/hello', headers: { origin: 'https://any.test' } })
    t.is(headers['access-control-allow-origin'], '*')
    t.is(headers['access-control-allow-credentials'], undefined)
    t.regex(headers['access-control-expose-headers'] ?? '', /x-request-id.*retry-interval/)
  })

  test(on('other routes may be read from the configured origins only'), async (t) => {
    const listed = await call({ path: '/page', headers: { origin: 'https://app.test' } })
    t.is(listed.headers['access-control-allow-origin'], 'https://app.test')
    t.is(listed.headers['vary'], 'origin')
    const other = await call({ path: '/page', headers: { origin: 'https://evil.test' } })
    t.is(other.headers['access-control-allow-origin'], undefined)
    t.is(other.status, 200)
  })

  test(on('problems can be read across origins as well'), async (t) => {
    const { status, headers } = await call({
      path: '/guarded',
      headers: { origin: 'https://app.test' },
    })
    t.is(status, 401)
    t.is(headers['access-control-allow-origin'], 'https://app.test')
  })

  const preflight = (path: string, origin: string, wanted: string) =>
    call({
      method: 'OPTIONS',
      path,
      headers: { origin, 'access-control-request-method': wanted },
    })

  test(on('a preflight tells methods and headers to a listed origin only'), async (t) => {
    const listed = await preflight('/echo', 'https://app.test', 'POST')
    t.is(listed.status, 204)
    t.is(listed.headers['access-control-allow-origin'], 'https://app.test')
    t.is(listed.headers['access-control-allow-methods'], 'POST, OPTIONS')
    t.regex(listed.headers['access-control-allow-headers'] ?? '', /authorization.*idempotency-key/)
    const other = await preflight('/echo', 'https://evil.test', 'POST')
    t.is(other.headers['access-control-allow-methods'], undefined)
    const method = await preflight('/echo', 'https://app.test', 'DELETE')
    t.is(method.headers['access-control-allow-origin'], undefined)
  })

  test(
    on('an application origin passes the preflight and reads its own answers only'),
    async (t) => {
      const asked = await preflight('/oauth/token', 'https://spa.test', 'POST')
      t.is(asked.headers['access-control-allow-origin'], 'https://spa.test')
      const post = (body: string, headers: Record<string, string> = {}) =>
        call({
          method: 'POST',
          path: '/oauth/token',
          headers: {
            origin: 'https://spa.test',
            'content-type': 'application/x-www-form-urlencoded',
            ...headers,
          },
          body,
        })
      const own = await post('grant_type=good&client_id=spa')
      t.is(own.headers['access-control-allow-origin'], 'https://spa.test')
      const basic = `Basic ${Buffer.from('spa:secret').toString('base64')}`
      const byBasic = await post('grant_type=good', { authorization: basic })
      t.is(byBasic.headers['access-control-allow-origin'], 'https://spa.test')
      const foreign = await post('grant_type=good&client_id=other')
      t.is(foreign.headers['access-control-allow-origin'], undefined)
    },
  )
}

/** What a token admits to. */
function tokens({ on, call }: OnTransport): void {
  for (const [token, path, status, error] of [
    ['good', '/guarded', 200, undefined],
    ['expired', '/guarded', 401, 'token_expired'],
    ['other', '/guarded', 401, 'unauthorized'],
    ['scopeless', '/guarded', 403, 'insufficient_scope'],
    ['good', '/direct', 200, undefined],
    ['delegated', '/direct', 403, 'forbidden'],
    ['human', '/direct', 403, 'forbidden'],
  ] as const) {
    test(on(`token "${token}" on ${path} is ${status}`), async (t) => {
      const reply = await call({ path, headers: bearer(token) })
      t.is(reply.status, status)
      if (error !== undefined) t.is(reply.json()['error'] as unknown, error)
    })
  }

  test(
    on('an agent with a delegated token gets a refusal that requires the direct one'),
    async (t) => {
      const { json } = await call({ path: '/direct', headers: bearer('delegated') })
      t.regex(String(json()['detail']), /needs a direct token/)
    },
  )

  test(on('401 and 403 say in WWW-Authenticate what is missing'), async (t) => {
    const none = await call({ path: '/guarded' })
    t.is(
      none.headers['www-authenticate'],
      'Bearer resource_metadata="https://id.test/.well-known/oauth-protected-resource", ' +
        'scope="probe:read probe:manage"',
    )
    const expired = await call({ path: '/guarded', headers: bearer('expired') })
    t.regex(
      expired.headers['www-authenticate'] ?? '',
      /^Bearer error="invalid_token", error_description="the token is 'expired'"/,
    )
    const scope = await call({ path: '/guarded', headers: bearer('scopeless') })
    t.is(
      scope.headers['www-authenticate'],
      'Bearer error="insufficient_scope", scope="probe:read probe:manage", ' +
        'resource_metadata="https://id.test/.well-known/oauth-protected-resource", ' +
        'error_description="The token needs one of the scopes probe:read probe:manage."',
    )
  })

  for (const authorization of ['Basic eDp5', 'Bearer', 'Bearer a b', 'good', 'Bearer "good"']) {
    test(on(`Authorization ${authorization} is no bearer token`), async (t) => {
      const { status, headers } = await call({ path: '/guarded', headers: { authorization } })
      t.is(status, 401)
      t.regex(
        headers['www-authenticate'] ?? '',
        /^Bearer error="invalid_token".*, scope="probe:read probe:manage"$/,
      )
    })
  }

  test(on('a DPoP refusal carries its own challenge and the nonce'), async (t) => {
    const { status, headers, json } = await call({
      path: '/guarded',
      headers: { authorization: 'DPoP good' },
    })
    t.is(status, 401)
    t.is(json()['error'] as unknown, 'use_dpop_nonce')
    t.regex(
      headers['www-authenticate'] ?? '',
      /^DPoP error="use_dpop_nonce".*algs="ES256 EdDSA Ed25519"/,
    )
    t.is(headers['dpop-nonce'], 'nonce-1')
  })

  test(on('an optional token is judged when it is there'), async (t) => {
    const path = '/things/a/parts/p'
    const known = await call({ method: 'POST', path, headers: bearer('good') })
    t.is(known.json()['principal'] as unknown, 'agent-1')
    const refused = await call({ method: 'POST', path, headers: bearer('other') })
    t.is(refused.status, 401)
  })
}

function metrics({ on, call }: OnTransport): void {
  test(on('metrics take the configured token or a service token with the scope'), async (t) => {
    const status = async (headers: Record<string, string>) =>
      (await call({ path: '/metrics', headers })).status
    t.is(await status({}), 401)
    t.is(await status(bearer('metrics-token-of-some-length')), 200)
    t.is(await status(bearer('metrics')), 200)
    t.is(await status(bearer('good')), 403)
    t.is(await status(bearer('metrics-token-of-some-lengtH')), 401)
  })

  test(on('metrics count requests by method, declared route and status'), async (t) => {
    await call({ method: 'DELETE', path: '/things/known' })
    await call({ path: '/nothing' })
    const { text, headers } = await call({ path: '/metrics', headers: bearer('metrics') })
    t.is(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    t.regex(
      text,
      /svc_http_requests_total\{method="DELETE",route="\/things\/\{thing_id\}",status="204"\} [1-9]/,
    )
    t.regex(text, /svc_http_requests_total\{method="ANY",route="none",status="404"\} [1-9]/)
    t.regex(
      text,
      /svc_http_request_duration_seconds_bucket\{method="DELETE",route="\/things\/\{thing_id\}",le="\+Inf"\} [1-9]/,
    )
  })
}

onEachTransport(
  test,
  {
    server: {
      allowed_hosts: ['id.test', 'one.apps.test', 'ported.test:8443'],
      base_domain: 'tenants.test',
      trusted_proxies: ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32'],
      cors_allowed_origins: ['https://app.test'],
      metrics_bearer_token: 'metrics-token-of-some-length',
    },
    gateway: {
      applicationOrigins: {
        lists: async (origin, clientId) =>
          origin === 'https://spa.test' && (clientId === null || clientId === 'spa'),
      },
    },
  },
  (given) => {
    hosts(given)
    origins(given)
    tokens(given)
    metrics(given)
  },
)

for (const transport of TRANSPORTS) {
  test(`${transport}: without trusted proxies X-Forwarded-For is not believed`, async (t) => {
    const stage = await openStage({ transport })
    const { json } = await stage.call({
      method: 'POST',
      path: '/things/a/parts/p',
      headers: { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' },
    })
    t.is(json()['clientAddress'] as unknown, '127.0.0.1')
    await stage.close()
  })

  test(`${transport}: without configured origins the issuer's own may read answers`, async (t) => {
    const stage = await openStage({ transport, issuer: 'https://id.test' })
    const own = await stage.call({ path: '/page', headers: { origin: 'https://id.test' } })
    t.is(own.headers['access-control-allow-origin'], 'https://id.test')
    const other = await stage.call({ path: '/page', headers: { origin: 'https://app.test' } })
    t.is(other.headers['access-control-allow-origin'], undefined)
    await stage.close()
  })
}
