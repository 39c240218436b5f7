/** Requests through a proxy, and a limit that an operator sets for them. */
import test from 'ava'
import { request } from 'undici'
import { type Answer, BOOTSTRAP, callerOf, demand } from '../../support/agents/journey.js'
import { REGISTRATIONS } from '../../support/fleet/profiles.js'
import { notBehindNginx } from '../../support/fleet/through.js'
import { sharedService, testService } from '../../support/service.js'

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
  notBehindNginx()
  const { max, windowSecs } = REGISTRATIONS
  const running = await sharedService('strict')
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const policy = (answer: Answer) => answer.headers.get('ratelimit-policy')
  const begin = () => http.post(`${BOOTSTRAP}/pow`, {}, { 'x-forwarded-for': '198.51.100.1' })
  for (let count = 0; count < max; count += 1) demand(await begin(), 400)
  const refused = demand(await begin(), 429)
  t.is(policy(refused), `"registration";q=${max};w=${windowSecs}, "registration-day";q=100;w=86400`)
  t.deepEqual(refused.body['violated-policies'], ['registration'])
  t.true(Number(refused.headers.get('retry-after')) <= windowSecs)
  const { body } = demand(await http.call('/openapi.json'), 200)
  const paths = body['paths'] as Record<string, { post: { description: string } }>
  t.regex(
    paths[`${BOOTSTRAP}/pow`]!.post.description,
    new RegExp(`\`registration\` ${max} per ${windowSecs} s`),
  )
})
