/** Settings that say where parts of a deployment are: the egress proxy, the apps, the databases of the planes. */
import { readFileSync } from 'node:fs'
import { createServer, request as sendHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import test from 'ava'
import { loadSettings } from '../../../../runtime/process/configuration/load-settings.js'
import { serviceCalls } from '../../../../runtime/clients/svc-run/service-calls.js'
import { notThrough } from '../../../support/fleet/through.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { egressHouse, settingOf } from '../../../support/vault/egress.js'

const DASHBOARD = 'https://dashboard.example.com'
const EXAMPLE = new URL('../../../../../deploy/production.example.toml', import.meta.url)
const METRICS = 'a token for the metrics of this test'

/** In front of the service: it records the path of each call. */
const calls: string[] = []
const front = createServer((incoming, response) => {
  calls.push(incoming.url!)
  const headers = { ...incoming.headers, host: new URL(running.baseUrl).host }
  const on = sendHttp(
    running.baseUrl + incoming.url!,
    { method: incoming.method!, headers },
    (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    },
  )
  incoming.pipe(on)
})
front.listen(0, '127.0.0.2')
await once(front, 'listening')
const EGRESS = `http://127.0.0.2:${(front.address() as AddressInfo).port}`

const house = await egressHouse({
  transport: 'plain_http',
  environment: {
    SVC_SERVER__EGRESS_URL: EGRESS,
    SVC_SERVER__ALLOWED_HOSTS: 'id.example.com,localhost',
    SVC_SERVER__DASHBOARD_APP_ORIGIN: DASHBOARD,
    SVC_SERVER__CORS_ALLOWED_ORIGINS: 'https://other.example.com',
    SVC_SERVER__METRICS_BEARER_TOKEN: METRICS,
    SVC_REFRESH_FAMILY_CACHE__ENABLED: 'true',
  },
})
const { running } = house
test.after.always(async () => {
  front.close()
})

type Document = {
  readonly features: Readonly<Record<string, { readonly url?: string }>>
  readonly paths: Readonly<Record<string, { readonly post: { readonly servers?: unknown } }>>
}
const read = async (path: string) =>
  (await (await fetch(running.baseUrl + path)).json()) as Document

/** The status for a Host. fetch does not let a caller set it. */
async function statusAt(host: string): Promise<number> {
  const outgoing = sendHttp(`${running.baseUrl}/health/live`, { headers: { host } }).end()
  const [answer] = await once(outgoing, 'response')
  answer.resume()
  return answer.statusCode
}

test('documents name server.egress_url, and its host is served', async (t) => {
  notThrough('it sends plain http to a process')
  t.is((await read('/api/v1/capabilities')).features['vault.egress']!.url, EGRESS)
  const { paths } = await read('/openapi.json')
  for (const path of ['/v1/proxy', '/v1/proxy/body']) {
    t.deepEqual(paths[path]!.post.servers, [{ url: EGRESS }], path)
  }
  t.is(paths['/oauth/token']!.post.servers, undefined)
  t.is(await statusAt(new URL(EGRESS).host), 200)
  t.is(await statusAt('127.0.0.3'), 421)
  t.is(await statusAt('elsewhere.example.com'), 421)
})

test('clients send egress calls to server.egress_url', async (t) => {
  notThrough('its relay sends plain http to a process')
  const setting = await settingOf(house)
  const client = serviceCalls(running.baseUrl, async () => setting.delegated)
  t.teardown(() => client.close())
  const answer = await client.send({
    method: 'POST',
    url: `${house.upstream.origin}/echo`,
    headers: [],
    body: Buffer.from('to the front'),
    bodyBytes: 12,
    credential: { id: setting.credentialId, authScheme: 'bearer' },
    stream: false,
    signal: new AbortController().signal,
  })
  t.is(answer.statusCode, 200)
  t.is(await answer.body.text(), 'to the front')
  t.deepEqual(calls, ['/health/live', '/v1/proxy/body'])
})

test('pages of the apps may call the API, in addition to server.cors_allowed_origins', async (t) => {
  const allowed = async (origin: string) => {
    const answer = await fetch(`${running.baseUrl}/api/v1/webhooks`, { headers: { origin } })
    await answer.body?.cancel()
    return answer.headers.get('access-control-allow-origin')
  }
  t.is(await allowed(DASHBOARD), DASHBOARD)
  t.is(await allowed('https://other.example.com'), 'https://other.example.com')
  t.is(await allowed('https://evil.example.com'), null)
})

test('a dead refresh token is refused from memory once the process has seen it', async (t) => {
  notThrough('it asserts what one process has in memory')
  const hits = async () => {
    const answer = await fetch(`${running.baseUrl}/metrics`, {
      headers: { authorization: `Bearer ${METRICS}` },
    })
    const line = /^svc_refresh_family_cache_hits_total (\d+)$/m.exec(await answer.text())
    return Number(line?.[1] ?? 0)
  }
  const workspace = await bootstrapped(running)
  const party = await relyingParty(running, workspace)
  const { tokens } = await party.signedIn(workspace, {
    scope: 'openid offline_access',
    prompt: 'consent',
  })
  const basic = Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')
  const post = async (path: string, fields: Record<string, string>) => {
    const answer = await fetch(running.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams(fields),
    })
    const text = await answer.text()
    const { request_id: _, ...body } =
      text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
    return { status: answer.status, body }
  }
  const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! }
  t.is((await post('/oauth/revoke', { token: tokens.refresh_token! })).status, 200)
  const before = await hits()
  const first = await post('/oauth/token', refresh)
  t.is(first.status, 400)
  t.is(await hits(), before, 'the first refusal reads the row')
  const second = await post('/oauth/token', refresh)
  t.deepEqual(second, first)
  t.is(await hits(), before + 1)
  const unknown = await post('/oauth/token', { ...refresh, refresh_token: 'x'.repeat(43) })
  t.is(unknown.status, 400)
  t.is(await hits(), before + 1, 'an unknown token is not remembered')
})

test('split_by_plane requires the URL of each plane, and shared none', (t) => {
  const environment = { DATABASE_URL: 'postgres://svc@h/d' }
  const keys = (more: Record<string, string>) => {
    const result = loadSettings({ environment: { ...environment, ...more }, cwd: '/nowhere' })
    return result.tag === 'refused' ? result.failures.map(({ key }) => key) : []
  }
  const split = { SVC_DEPLOYMENT__DATABASE_TOPOLOGY: 'split_by_plane' }
  t.deepEqual(keys({}), [])
  t.deepEqual(keys(split), ['database.auth_url', 'database.control_url', 'database.async_url'])
  const two = { DATABASE_AUTH_URL: 'postgres://a@h/d', DATABASE_CONTROL_URL: 'postgres://c@h/d' }
  t.deepEqual(keys({ ...split, ...two }), ['database.async_url'])
  t.deepEqual(keys({ ...split, ...two, DATABASE_ASYNC_URL: 'postgres://w@h/d' }), [])
})

test('the example file alone names exactly what the environment has to add', (t) => {
  const toml = readFileSync(EXAMPLE, 'utf8')
  const read = (environment: Record<string, string>) =>
    loadSettings({ environment, cwd: '/', readFile: () => toml })
  const alone = read({})
  t.is(alone.tag, 'refused')
  const keys = alone.tag === 'refused' ? alone.failures.map(({ key }) => key) : []
  t.deepEqual([...new Set(keys)].toSorted(), [
    'challenge.captcha_secret',
    'database.identity_url',
    'database.listener_url',
    'database.url',
  ])
  const url = 'postgres://svc@db.example.com/svc?sslmode=verify-full'
  const whole = read({
    DATABASE_URL: url,
    DATABASE_IDENTITY_URL: url,
    DATABASE_LISTENER_URL: url,
    SVC_CHALLENGE__CAPTCHA_SECRET: 'a random secret',
    SVC_EMAIL__SMTP_PASSWORD: 'of the mail server',
  })
  t.is(whole.tag, 'loaded', JSON.stringify(whole))
})
