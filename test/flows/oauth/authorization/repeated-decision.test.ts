/** Decisions that a browser sends again: a double click, or Back and again. */
import test, { type ExecutionContext } from 'ava'
import * as oidc from 'openid-client'
import { mailDomain } from '../../../support/identity/addresses.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { dataIn, openBrowser, type Page } from '../../../support/pages/browser.js'
import { bootstrapped, enrolledBrowser, SESSION_COOKIE } from '../../../support/identity/person.js'
import { ciba, CIBA_GRANT, INBOX } from '../../../support/oauth/ciba.js'
import {
  callbackOf,
  isConsent,
  pathOf,
  relyingParty,
  type RelyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const DEVICE_PAGE = '/oauth/device/verify'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const { api, running } = await sharedApi('plain')
const person = await bootstrapped(running)

/** A browser that is asked for consent. */
async function asked(t: ExecutionContext, party: RelyingParty) {
  const browser = openBrowser(running)
  const begun = await party.journey()
  const login = await browser.follow(await browser.get(pathOf(begun.url)))
  const consent = await browser.follow(await browser.submit(login, person))
  t.true(isConsent(consent))
  return { ...begun, browser, consent }
}
const codeOf = (page: Page) => callbackOf(page).searchParams.get('code')

test('a consent that is sent again gets the same code, and no second one', async (t) => {
  const party = await relyingParty(running, person)
  const { browser, consent, checks } = await asked(t, party)
  const clicks = await Promise.all(
    Array.from({ length: 8 }, () => browser.submit(consent, { action: 'allow' })),
  )
  const codes = new Set(clicks.map(codeOf))
  t.is(codes.size, 1)
  t.regex([...codes][0]!, /./)
  const denied = await browser.submit(consent, { action: 'deny' }).gives(200)
  t.deepEqual(dataIn(denied.html, 'decided'), ['approved'], 'another decision')
  t.false(denied.html.includes([...codes][0]!))
  t.deepEqual(codeOf(await browser.get(consent.path)), [...codes][0]!, 'the page is loaded again')

  const other = openBrowser(running)
  t.is((await other.get(consent.path)).status, 400, 'another browser gets nothing')
  const session = browser.cookies.get(SESSION_COOKIE)!
  browser.cookies.set(SESSION_COOKIE, `${session.slice(0, -1)}${session.endsWith('A') ? 'B' : 'A'}`)
  t.is((await browser.get(consent.path)).status, 400, 'nor does another session')
  browser.cookies.set(SESSION_COOKIE, session)

  const tokens = await oidc.authorizationCodeGrant(party.config, callbackOf(clicks[7]!), checks)
  const done = await browser.submit(consent, { action: 'allow' }).gives(200)
  t.is(done.location, null)
  t.true(done.html.includes('data-answered-before'))
  t.false(done.html.includes([...codes][0]!), 'without the code')
  t.truthy((await oidc.fetchUserInfo(party.config, tokens.access_token, oidc.skipSubjectCheck)).sub)
})

test('a sign-in that is sent again after the consent leads to the same code', async (t) => {
  const workspace = await api.workspace()
  const domain = mailDomain()
  const [ada, eve] = [`ada@${domain}`, `eve@${domain}`]
  await ownDomain(api, workspace, ada)
  const password = 'a password of the harbour master'
  for (const email of [ada, eve]) {
    const json = { email, password }
    await api.call('POST', '/api/v1/tenant-users', { token: workspace.token, json }).gives(201)
  }
  const party = await relyingParty(running, workspace)
  const browser = openBrowser(running)
  const begun = await party.journey()
  const login = await browser.follow(await browser.get(pathOf(begun.url)))
  /** Submits the page of the sign-in, which Back shows. */
  const signsIn = async (email: string) => {
    const signedIn = await browser.submit(login, { email, password }).gives(303)
    return browser.get(signedIn.location!)
  }
  const consent = await signsIn(ada)
  t.true(isConsent(consent))
  const first = await browser.submit(consent, { action: 'allow' })
  const code = codeOf(first)
  t.is(codeOf(await signsIn(ada)), code)
  t.is(codeOf(await browser.submit(consent, { action: 'allow' })), code)

  await oidc.authorizationCodeGrant(party.config, callbackOf(first), begun.checks)
  const done = await signsIn(ada)
  t.is(done.status, 200)
  t.true(done.html.includes('data-answered-before'))
  t.is((await signsIn(eve)).status, 400, 'another user gets nothing')
})

test.serial('a code is given again for a minute only', async (t) => {
  const { browser, consent } = await asked(t, await relyingParty(running, person))
  t.truthy(codeOf(await browser.submit(consent, { action: 'allow' })))
  await running.db.database.system((tx) =>
    tx.query({
      name: 'test.age_answers',
      text: `update form_answers set expires_at = expires_at - interval '61 seconds'
             where tenant_id = $1`,
      values: [person.tenantId],
    }),
  )
  const late = await browser.submit(consent, { action: 'allow' })
  t.true(late.html.includes('data-answered-before'))
})

test('a denial that is sent again is the same denial', async (t) => {
  const { browser, consent, state } = await asked(t, await relyingParty(running, person))
  for (const action of ['deny', 'deny', 'allow']) {
    const { searchParams } = callbackOf(await browser.submit(consent, { action }))
    t.is(searchParams.get('error'), 'access_denied')
    t.is(searchParams.get('state'), state)
    t.is(searchParams.get('code'), null)
  }
})

test('the decision of a device that is sent again has the same outcome', async (t) => {
  const { clientId } = await relyingParty(running, person, {
    clientType: 'public',
    grantTypes: [DEVICE_GRANT],
  })
  for (const [first, second, shown] of [
    ['approve', 'approve', 'approved'],
    ['deny', 'approve', 'denied'],
  ] as const) {
    const begun = await fetch(`${running.baseUrl}/oauth/device/code`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, scope: 'openid' }),
    })
    const { user_code } = (await begun.json()) as { user_code: string }
    const browser = openBrowser(running)
    const login = await browser.follow(await browser.get(`${DEVICE_PAGE}?user_code=${user_code}`))
    const page = await browser.follow(await browser.submit(login, person))
    for (const action of [first, second]) {
      const done = await browser.submit(page, { action })
      t.deepEqual(dataIn(done.html, 'decided'), [shown])
    }
    browser.cookies.delete(SESSION_COOKIE)
    t.deepEqual(dataIn((await browser.submit(page, { action: first })).html, 'decided'), [])
  }
})

test('an answer in the inbox that is sent again has the same outcome', async (t) => {
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person, { grantTypes: [CIBA_GRANT] })
  const { browser } = await enrolledBrowser(running, person)
  const begun = await ciba(running, party).start({ login_hint: person.email })
  t.is(begun.status, 200)
  const page = await browser.get(INBOX)
  for (const action of ['approve', 'approve', 'deny']) {
    const done = await browser.submit(page, { action }, /\/auth\/requests\//)
    t.deepEqual(dataIn(done.html, 'decided'), ['approved'])
  }
})
