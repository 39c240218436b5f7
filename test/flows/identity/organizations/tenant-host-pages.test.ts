/**
 * Pages at the host of a tenant: links and callbacks return to the same host. docs/guides/identity/hosted-pages.md,
 * hosts of tenants.
 */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { notThrough } from '../../../support/fleet/through.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { openMailServer, pathIn } from '../../../support/operations/mail.js'
import { testService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { FROM_OUR_PAGE, linkTo, reachable } from '../../../support/vault/upstream.js'

const ADA = 'ada@harbour.works'
const [provider, mail] = [await hostileProvider(), await openMailServer()]
const way = await reachable([provider.pem])
const running = await testService({
  // Test certificates have no tenant host names.
  transport: 'plain_http',
  environment: {
    ...way.environment,
    ...mail.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_MAGIC_LINK__ENABLED: 'true',
  },
})
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
  await Promise.all([provider.close(), mail.close()])
  await way.remove()
})

async function tenant() {
  notThrough('its browser needs a certificate for the host of a tenant')
  const workspace = await api.workspace()
  const { token, body } = workspace
  await ownDomain(api, workspace, ADA)
  const url = new URL(running.issuer)
  url.hostname = `${String(body['tenant_slug'])}.localhost`
  return { token, origin: url.origin, at: { host: url.host } }
}

function browser(t: ExecutionContext): TestBrowser {
  const opened = openBrowser(running)
  t.teardown(() => opened.close())
  return opened
}

test.serial('a link by mail leads to the host where it was requested', async (t) => {
  const { token, origin, at } = await tenant()
  const json = { email: ADA, password: 'the password of ada' }
  await api.call('POST', '/api/v1/tenant-users', { token, json })
  const own = browser(t)
  const page = await own.get('/auth/login', at)
  const fields = { ...page.forms[0]!.fields, email: ADA }
  t.is((await own.post('/auth/login/mail', fields, at)).status, 303)
  const letter = await mail.letterTo(ADA)
  t.true(letter.text.includes(`${origin}/auth/magic/`), letter.text)
  const path = pathIn(letter, '/auth/magic/')
  const link = await own.get(path, at)
  const done = await own.post(link.forms[0]!.action, link.forms[0]!.fields, at)
  t.is(done.status, 303, done.html)
  t.is((await own.get('/auth/account', at)).status, 200)
})

test.serial(
  'a callback returns to the host where the sign-in started, and to no other',
  async (t) => {
    const { token, origin, at } = await tenant()
    const json = { social: { provision: true } }
    t.is((await api.call('PATCH', '/api/v1/tenant/settings', { token, json })).status, 200)
    const own = browser(t)
    const page = await own.get('/auth/login', at)
    const away = new URL(
      (await own.get(linkTo(page, 'oidc'), { ...at, ...FROM_OUR_PAGE })).location!,
    )
    t.is(away.searchParams.get('redirect_uri'), `${running.issuer}/auth/sso/callback/oidc`)
    provider.nonce = away.searchParams.get('nonce')!
    const state = away.searchParams.get('state')!
    const query = new URLSearchParams({ code: 'abc', state, iss: provider.issuer }).toString()
    const path = `/auth/sso/callback/oidc?${query}`
    // At the service's own address the browser has other cookies.
    const back = await browser(t).get(path)
    t.is(back.status, 303, back.html)
    t.is(back.location, `${origin}${path}`)
    t.is((await browser(t).get(path, at)).status, 400, 'another browser')
    t.is((await own.get(path, at)).status, 200)
    t.is((await own.get('/auth/account', at)).status, 200)
    t.is((await browser(t).get(path)).status, 400, 'works once')

    const elsewhere = browser(t)
    const forged = await elsewhere.get('/auth/login', at)
    const start = linkTo(forged, 'oidc')
    const sent = new URL(
      (await elsewhere.get(start, { host: 'evil.example', ...FROM_OUR_PAGE })).location!,
    )
    const planted = new URLSearchParams({ code: 'abc', state: sent.searchParams.get('state')! })
    const answer = await browser(t).get(`/auth/sso/callback/oidc?${planted.toString()}`)
    t.is(answer.status, 400, 'a foreign host is never redirected to')
  },
)
