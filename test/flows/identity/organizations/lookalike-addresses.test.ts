/**
 * Addresses whose lower case equals another address: PostgreSQL folds U+0130 to `i` and U+212A to `k`. Mail to
 * `gİthub.com` is delivered to another domain than mail to `github.com` (UTS 46).
 */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { openMailServer } from '../../../support/operations/mail.js'
import { testService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { departed, reachable } from '../../../support/vault/upstream.js'

const VICTIM = 'ivi@kiosk.works'
const LOOKALIKES = ['ivi@k\u0130osk.works', '\u0130vi@kiosk.works', 'ivi@\u212aiosk.works']
const PASSWORD = 'a password of the harbour master'
const LOCKED_AFTER = 3

const provider = await hostileProvider()
const way = await reachable([provider.pem])
const mail = await openMailServer()
const running = await testService({
  environment: {
    ...mail.environment,
    ...way.environment,
    SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: String(LOCKED_AFTER),
    SVC_EMAIL_OTP__ENABLED: 'true',
    SVC_USER_SELF_SERVICE__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_SOCIAL__ACCOUNT_LINKING__ENABLED: 'true',
  },
})
const api = apiOf(running)
const workspace = await api.workspace()
const { token, body } = workspace
await ownDomain(api, workspace, VICTIM)
const tenantSlug = String(body['tenant_slug'])
const json = { email: VICTIM, password: PASSWORD }
const made = await api.call('POST', '/api/v1/tenant-users', { token, json })
test.after.always(async () => {
  await api.close()
  await running.end()
  await Promise.all([mail.close(), provider.close()])
  await way.remove()
})

function browsing(t: { teardown(end: () => Promise<void>): void }): TestBrowser {
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  return browser
}

const loginPage = (browser: TestBrowser) => browser.get(`/auth/login?tenant_slug=${tenantSlug}`)

test.serial('mail is sent to the address of the account, never to a lookalike', async (t) => {
  t.is(made.status, 201)
  const browser = browsing(t)
  const login = await loginPage(browser)
  const { fields } = login.forms[0]!
  const forgot = await browser.get(`/auth/password/forgot?flow=${fields['flow']}`)
  for (const email of LOOKALIKES) {
    t.is((await browser.submit(forgot, { email })).status, 200)
    t.is((await browser.post('/auth/login/mail', { ...fields, email })).status, 200)
  }
  // Mail is sent in the order of the requests, so all earlier messages have arrived.
  await browser.submit(forgot, { email: VICTIM.toUpperCase() })
  await browser.post('/auth/login/mail', { ...fields, email: VICTIM.toUpperCase() })
  await mail.letterTo(VICTIM, /password/)
  await mail.letterTo(VICTIM, /code/)
  t.deepEqual(
    mail.received.map(({ to }) => to),
    [[VICTIM], [VICTIM]],
  )
})

test.serial('an identity with a lookalike address is not linked to the account', async (t) => {
  // Verified: a provider that vouches for this exact address would be linked.
  await sql(running.db.database, 'update accounts set email_verified = true', [])
  for (const email of LOOKALIKES) {
    const browser = browsing(t)
    const away = new URL((await departed(browser, { tenantSlug })).location!)
    provider.nonce = away.searchParams.get('nonce')!
    provider.mood = { claims: { sub: 'mallory', email, email_verified: true } }
    const state = away.searchParams.get('state')!
    const query = new URLSearchParams({ code: 'abc', state, iss: provider.issuer })
    const answer = await browser.get(`/auth/sso/callback/oidc?${query.toString()}`)
    t.is(answer.status, 403, answer.html)
    t.is((await browser.get('/auth/account')).status, 303)
  }
})

test.serial('all spellings of an address share one guess limit', async (t) => {
  const browser = browsing(t)
  const login = await loginPage(browser)
  for (let guess = 0; guess < LOCKED_AFTER; guess += 1) {
    await browser.submit(login, { email: VICTIM, password: 'a wrong one' })
  }
  for (const email of [VICTIM, VICTIM.toUpperCase(), ...LOOKALIKES]) {
    const answer = await browser.submit(login, { email, password: PASSWORD })
    t.true([200, 429].includes(answer.status), `${email}: ${answer.status}`)
  }
})
