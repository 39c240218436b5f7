/** Requests through a proxy, and a limit that an operator sets for them. */
import test from 'ava'
import { request } from 'undici'
import { type Answer, BOOTSTRAP, callerOf, demand, start } from '../../support/agents/journey.js'
import { testService } from '../../support/service.js'

test('a form is same-origin even when the proxy adds the default port', async (t) => {
  const running = await testService({
    transport: 'plain_http',
    environment: { SVC_OIDC__ISSUER_URL: 'http://id.test' },
  })
  t.teardown(() => running.end())
  const send = async (method: 'GET' | 'POST', host: string, more: Record<string, string> = {}) => {
    const { body, headers } = answers.at(-1) ?? { body: '', headers: {} }
    const field = (name: string) =>
      new RegExp(`name="${name}" value="([^"]+)"`).exec(body)?.[1] ?? ''
    const cookie = [headers['set-cookie'] ?? []].flat().map((one) => one.split(';')[0])
    const form = new URLSearchParams({
      csrf_token: field('csrf_token'),
      flow: field('flow'),
      email: 'unknown@example.com',
      password: 'a wrong password',
    })
    const answer = await request(`${running.baseUrl}/auth/login`, {
      method,
      headers: {
        host,
        accept: 'text/html',
        ...(method === 'GET' ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(cookie.length === 0 ? {} : { cookie: cookie.join('; ') }),
        ...more,
      },
      body: method === 'GET' ? null : form.toString(),
    })
    const read = { body: await answer.body.text(), headers: answer.headers }
    if (method === 'GET') answers.push(read)
    return { status: answer.statusCode, ...read }
  }
  const answers: { body: string; headers: Record<string, string | string[] | undefined> }[] = []
  t.is((await send('GET', 'id.test:80')).status, 200)
  const own = await send('POST', 'id.test:80', { origin: 'http://id.test' })
  t.is(own.status, 200, own.body)
  for (const [host, origin] of [
    ['id.test:80', 'http://evil.test'],
    ['id.test:80', 'https://id.test'],
    ['id.test:81', 'http://id.test'],
    ['id.test', 'http://id.test:81'],
  ] as const) {
    t.is((await send('POST', host, { origin })).status, 403, `${origin} at ${host}`)
  }
})

test('auth.registration_rate_limit_max and its window set the registration limit', async (t) => {
  const running = await testService({
    environment: {
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
      SVC_AUTH__REGISTRATION_RATE_LIMIT_MAX: '2',
      SVC_AUTH__REGISTRATION_RATE_LIMIT_WINDOW_SECS: '45',
    },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const policy = (answer: Answer) => answer.headers.get('ratelimit-policy')
  for (let count = 0; count < 2; count += 1) await start(http)
  const refused = demand(await http.post(`${BOOTSTRAP}/pow`, {}), 429)
  t.is(policy(refused), '"registration";q=2;w=45, "registration-day";q=100;w=86400')
  t.deepEqual(refused.body['violated-policies'], ['registration'])
  t.true(Number(refused.headers.get('retry-after')) <= 45)
  const { body } = demand(await http.call('/openapi.json'), 200)
  const paths = body['paths'] as Record<string, { post: { description: string } }>
  t.regex(paths[`${BOOTSTRAP}/pow`]!.post.description, /`registration` 2 per 45 s/)
})
