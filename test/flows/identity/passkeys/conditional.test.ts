/** Passkeys that the browser creates after a sign-in with a password, without asking the user (conditional create). */
import test from 'ava'
import { softAuthenticator } from '../../../support/identity/authenticator.js'
import {
  ADD,
  CONDITIONAL,
  conditionalOptions,
  eventsOf,
  loginPage,
  optionsOf,
  passkeysOf,
  SIGN_IN,
  signalsIn,
  signInAndSync,
  useKey,
  withPasskey,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { dataIn, openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { RACERS } from '../../../support/racers.js'
import { sharedService } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const running = await sharedService('people')

/** What an authenticator claims that creates a key without the user. */
const SILENT = { userPresent: false, userVerified: false }
const softKey = () => softAuthenticator({ origin: running.baseUrl })

async function offered() {
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const page = await browser.follow(await signInAndSync(browser, workspace))
  return { running, workspace, browser, page }
}

test('the browser creates a passkey after a password; it counts as a factor after its first use with verification', async (t) => {
  const of = await offered()
  const { workspace, browser, page } = of
  t.is(page.status, 200)
  t.regex(page.path, /^\/auth\/passkeys\/sync\?flow=/)
  const policy = page.headers['content-security-policy']!
  t.regex(policy, /script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'/)
  t.notRegex(page.html, /<script(?![^>]*\ssrc=)|\son[a-z]+=/)
  t.regex(page.html, /href="\/auth\/account" data-passkey-onward/, 'without script a link leads on')
  const options = conditionalOptions(page)!
  t.like(options, {
    attestation: 'none',
    excludeCredentials: [],
    authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
  })
  const key = softKey()
  const credential = key.create(options, SILENT)
  const added = await browser.submit(page, { credential }, CONDITIONAL)
  t.is(added.status, 303, added.html)
  t.is(added.location, '/auth/account')
  const account = await browser.follow(added)
  t.deepEqual(signalsIn(account).signalAllAcceptedCredentials?.allAcceptedCredentialIds, [
    key.credentialId,
  ])
  t.like((await eventsOf(of, 'auth.mfa.verify')).at(-1), {
    outcome: 'success',
    method: 'passkey',
    enrolled: true,
    conditional: true,
  })
  const password = await signIn(openBrowser(running), workspace)
  t.is(password.location, '/auth/account', 'the password alone is enough, as before')

  const possession = openBrowser(running)
  const owned = await loginPage(possession, workspace)
  t.is((await useKey(possession, owned, key, { userVerified: false })).location, '/auth/account')
  t.like((await eventsOf(of, 'auth.login.success')).at(-1), { amr: ['hwk', 'user'], acr: 'aal1' })

  const verified = openBrowser(running)
  const codes = await useKey(verified, await loginPage(verified, workspace), key)
  t.is(dataIn(codes.html, 'recovery-code').length, 10, 'it is the first factor from now on')
  t.like((await eventsOf(of, 'auth.login.success')).at(-1), {
    amr: ['hwk', 'user', 'mfa'],
    acr: 'aal3',
  })
  t.regex((await signIn(openBrowser(running), workspace)).location!, /^\/auth\/mfa\?flow=/)
  const later = openBrowser(running)
  const refused = await useKey(later, await loginPage(later, workspace), key, {
    userVerified: false,
  })
  t.is(refused.status, 200)
  t.regex(refused.html, /does not belong to an account/)
})

test('only options with the mark admit a key without user presence, and each challenge adds one', async (t) => {
  const of = await offered()
  const { browser, page } = of
  const fields = page.forms.find(({ action }) => action === CONDITIONAL)!.fields
  const options = conditionalOptions(page)!
  const ordinary = await browser.get(`${ADD}/new`)
  const asked = await optionsOf(browser, ordinary, ADD)
  const silent = await browser.submit(
    ordinary,
    { credential: softKey().create(asked, SILENT) },
    ADD,
  )
  t.regex(silent.html, /could not be added/)
  const crossed = await browser.submit(ordinary, { credential: softKey().create(options) }, ADD)
  t.regex(crossed.html, /could not be added/, 'a challenge with the mark is for the other form')
  t.is((await passkeysOf(of)).length, 0)

  const send = (credential: string) => browser.post(CONDITIONAL, { ...fields, credential })
  const again = await optionsOf(browser, ordinary, ADD)
  t.is((await send(softKey().create(again, SILENT))).status, 303)
  t.is((await send('{}')).status, 303)
  const evil = { ...SILENT, origin: 'https://evil.example' }
  t.is((await send(softKey().create(options, evil))).status, 303)
  t.is((await passkeysOf(of)).length, 0, 'no refused response adds a passkey')

  await sql(running)`
    update known_browsers set passkey_asked_at = passkey_asked_at - interval '31 days'
    where account_id in (select account_id from tenant_users where tenant_id = ${of.workspace.tenantId})`
  const fresh = conditionalOptions(await browser.get(page.path))!
  const racers = Array.from({ length: RACERS }, () => send(softKey().create(fresh, SILENT)))
  t.deepEqual([...new Set((await Promise.all(racers)).map(({ status }) => status))], [303])
  t.is((await passkeysOf(of)).length, 1)
})

test('another browser, another session and a session of yesterday do not use the challenge', async (t) => {
  const of = await offered()
  const { workspace, browser, page } = of
  const credential = softKey().create(conditionalOptions(page)!, SILENT)
  const other = openBrowser(running)
  const theirs = await other.follow(await signInAndSync(other, workspace))
  t.is((await other.submit(theirs, { credential }, CONDITIONAL)).status, 303)
  t.is((await passkeysOf(of)).length, 0)
  const own = softKey().create(conditionalOptions(theirs)!, SILENT)
  await sql(running)`
    update accounts set password_changed_at = password_changed_at - interval '1 hour'
    where id in (select account_id from tenant_users where tenant_id = ${workspace.tenantId})`
  await sql(running)`
    update browser_sessions set password_at = password_at - interval '301 seconds'
    where tenant_id = ${workspace.tenantId}`
  t.is((await other.submit(theirs, { credential: own }, CONDITIONAL)).status, 303)
  t.is((await passkeysOf(of)).length, 0)
  t.is((await browser.get(page.path)).location, '/auth/account')
})

test('a browser is asked once in thirty days for an account, and only if its script asks for it', async (t) => {
  const { workspace, browser, page } = await offered()
  t.truthy(conditionalOptions(page))
  const second = await browser.follow(await signInAndSync(browser, workspace))
  t.is(second.path, '/auth/account', 'the account has no passkey to report')
  const other = openBrowser(running)
  t.truthy(conditionalOptions(await other.follow(await signInAndSync(other, workspace))))
  await sql(running)`
    update known_browsers set passkey_asked_at = passkey_asked_at - interval '31 days'
    where account_id in (select account_id from tenant_users where tenant_id = ${workspace.tenantId})`
  const later = await browser.follow(await signInAndSync(browser, workspace))
  t.truthy(conditionalOptions(later))
  t.is((await signIn(openBrowser(running), workspace)).location, '/auth/account')
})

test('after a passkey the page reports all passkeys and asks for none', async (t) => {
  const { workspace, key } = await withPasskey({ running, workspace: await bootstrapped(running) })
  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  const credential = key.get(await optionsOf(browser, page, SIGN_IN))
  const done = await browser.submit(page, { credential, passkey_sync: 'yes' }, SIGN_IN)
  const told = await browser.follow(done)
  t.is(told.status, 200)
  t.is(conditionalOptions(told), null)
  t.deepEqual(signalsIn(told).signalAllAcceptedCredentials?.allAcceptedCredentialIds, [
    key.credentialId,
  ])
})

async function factorPage(browser: TestBrowser, workspace: Parameters<typeof signIn>[1]) {
  return browser.follow(await signIn(browser, workspace))
}

test('with a second factor the browser is asked after it, and not before', async (t) => {
  const workspace = await bootstrapped(running)
  const { recoveryCodes, codes } = await enrolledBrowser(running, workspace)
  const browser = openBrowser(running)
  const owed = await factorPage(browser, workspace)
  t.regex(owed.html, /name="passkey_sync"/)
  const early = await browser.get(owed.path.replace('/auth/mfa', '/auth/passkeys/sync'))
  t.is(early.location, owed.path)
  const done = await browser.submit(owed, { code: codes.next(), passkey_sync: 'yes' }, '/auth/mfa')
  const page = await browser.follow(done)
  t.truthy(conditionalOptions(page), done.html)
  const key = softKey()
  const credential = key.create(conditionalOptions(page)!, SILENT)
  t.is((await browser.submit(page, { credential }, CONDITIONAL)).status, 303)

  const person = openBrowser(running)
  const owned = await useKey(person, await loginPage(person, workspace), key, {
    userVerified: false,
  })
  t.regex(
    owned.location!,
    /^\/auth\/mfa\?flow=/,
    'possession alone does not replace the second factor',
  )
  const factor = await person.follow(owned)
  t.notRegex(factor.html, /action="\/auth\/mfa\/passkey"/)
  const [code] = recoveryCodes
  t.is((await person.submit(factor, { code: code! }, '/auth/mfa')).location, '/auth/account')
})
