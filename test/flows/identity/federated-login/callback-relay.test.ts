/** `[oauth_proxy]`: a provider knows the redirect URI of the relay alone, and people sign in at a preview deployment. */
import { createHmac } from 'node:crypto'
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { freePort, testService } from '../../../support/service.js'
import { departed, onwardFrom, ownPathOf, reachable } from '../../../support/vault/upstream.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'

const SECRET = 'the secret of relay and preview deployments'

const port = await freePort()
const relayUrl = `http://localhost:${port}`
const provider = await hostileProvider()
const way = await reachable([provider.pem])
const preview = await testService({
  transport: 'plain_http',
  environment: {
    ...way.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_OAUTH_PROXY__ENABLED: 'true',
    SVC_OAUTH_PROXY__RELAY_URL: relayUrl,
    SVC_OAUTH_PROXY__SECRET: SECRET,
  },
})
await testService({
  transport: 'plain_http',
  environment: {
    SVC_SERVER__PORT: String(port),
    SVC_OIDC__ISSUER_URL: relayUrl,
    SVC_OAUTH_PROXY__ENABLED: 'true',
    SVC_OAUTH_PROXY__TARGET_ORIGINS: preview.issuer,
    SVC_OAUTH_PROXY__SECRET: SECRET,
  },
})

const atRelay = (query: string, provider = 'oidc') =>
  fetch(`${relayUrl}/auth/sso/callback/${provider}?${query}`, { redirect: 'manual' })

/** A state as the deployments sign it. */
function stateFor(origin: string, { secret = SECRET, inSecs = 60 } = {}): string {
  const expiry = Math.floor(Date.now() / 1_000) + inSecs
  const text = `${'r'.repeat(43)}.${Buffer.from(origin).toString('base64url')}.${expiry}`
  const mac = createHmac('sha256', secret).update(`svc-oauth-relay-v1\n${text}`)
  return `${text}.${mac.digest('base64url')}`
}

test('a person signs in at a preview deployment through the redirect URI of the relay', async (t) => {
  const workspace = await bootstrapped(preview)
  await sql(preview)`
    update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
    where id = ${workspace.tenantId}`
  const browser = openBrowser(preview)
  const away = await departed(browser, workspace)
  const asked = new URL(away.location!)
  t.is(asked.searchParams.get('redirect_uri'), `${relayUrl}/auth/sso/callback/oidc`)

  provider.nonce = asked.searchParams.get('nonce')!
  const state = asked.searchParams.get('state')!
  const answer = new URLSearchParams({ code: 'abc', state, iss: provider.issuer })
  const passed = await atRelay(answer.toString())
  t.is(passed.status, 303)
  const target = passed.headers.get('location')!
  t.true(target.startsWith(`${preview.issuer}/auth/sso/callback/oidc?`), target)
  const back = await browser.get(ownPathOf(target))
  t.is(back.status, 200, back.html)
  const page = await onwardFrom(browser, back)
  t.true(page.status < 400, page.html)
  const redirectUri = provider.redeemed.at(-1)!.get('redirect_uri')
  t.is(redirectUri, `${relayUrl}/auth/sso/callback/oidc`, 'the code is redeemed with it too')
  t.is((await browser.get(ownPathOf(target))).status, 400, 'a callback works once')
})

test('the relay passes callbacks to listed origins alone, and only with its signature', async (t) => {
  const good = await atRelay(
    new URLSearchParams({ state: stateFor(preview.issuer), code: 'c' }).toString(),
  )
  t.is(good.status, 303)
  t.is(new URL(good.headers.get('location')!).origin, preview.issuer)
  for (const [why, state] of [
    ['another origin', stateFor('https://evil.example')],
    ['an origin with a suffix', stateFor(`${preview.issuer}.evil.example`)],
    ['an origin with a path', stateFor(`${preview.issuer}/elsewhere`)],
    ['the relay itself', stateFor(relayUrl)],
    ['another secret', stateFor(preview.issuer, { secret: 'another secret of these deployments' })],
    ['an expired state', stateFor(preview.issuer, { inSecs: -1 })],
    [
      'a changed origin',
      stateFor(preview.issuer).replace(
        /\.[^.]+/,
        `.${Buffer.from('https://evil.example').toString('base64url')}`,
      ),
    ],
    ['a changed signature', stateFor(preview.issuer).replace(/.{43}$/, 'A'.repeat(43))],
  ] as const) {
    const refused = await atRelay(new URLSearchParams({ state, code: 'c' }).toString())
    t.is(refused.status, 400, why)
    t.is(refused.headers.get('location'), null, why)
  }
  const state = stateFor(preview.issuer)
  const twice = await atRelay(`state=${state}&state=${state}&code=c`)
  t.is(twice.headers.get('location'), null)
  const traversal = await atRelay(`state=${state}&code=c`, '..%2f..%2fevil')
  t.is(traversal.headers.get('location'), null)
})

test('relay and preview list the capability', async (t) => {
  for (const url of [relayUrl, preview.baseUrl]) {
    const answer = await fetch(`${url}/api/v1/capabilities`)
    const { capabilities } = (await answer.json()) as { capabilities: string[] }
    t.true(capabilities.includes('sso.callback_relay'), url)
  }
})
