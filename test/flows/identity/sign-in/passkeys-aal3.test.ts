/** Passkeys in other features: applications that require aal3, settings, the lockout. */
import test from 'ava'
import * as oidc from 'openid-client'
import { softAuthenticator } from '../../../support/identity/authenticator.js'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import {
  eventsOf,
  loginPage,
  optionsOf,
  SECOND_FACTOR,
  SIGN_IN,
  useKey,
  withPasskey,
  ENROL,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, enrol, signIn } from '../../../support/identity/person.js'
import {
  callbackOf,
  isConsent,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

test('passkey.enabled = false turns passkeys off', async (t) => {
  const running = await sharedService('plain')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  t.notRegex(page.html, /passkey/)
  t.is((await browser.post(SIGN_IN, page.forms[0]!.fields)).status, 404)
  const account = await browser.follow(await signIn(browser, workspace))
  t.notRegex(account.html, /passkey/)
  const discovery = await browser.get('/.well-known/openid-configuration')
  t.deepEqual(JSON.parse(discovery.html).acr_values_supported, ['aal1', 'aal2'])
})

test('wrong responses lock the account’s second factor, also for a correct one', async (t) => {
  const running = await sharedService('fleeting')
  t.teardown(() => running.end())
  const of = { running, workspace: await bootstrapped(running) }
  const { workspace, key } = await withPasskey(of)
  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  for (let wrong = 0; wrong < 10; wrong += 1)
    t.is((await useKey(browser, page, key, { userVerified: false })).status, 200)
  const locked = await useKey(browser, page, key)
  t.is(locked.status, 429)
  t.truthy(locked.headers['retry-after'])
  t.like((await eventsOf(of, 'security.brute_force.detected')).at(-1), { subject: 'passkey' })
})

test('an application asks for aal3: a passkey is enrolled for it, and then asked for', async (t) => {
  const running = await sharedService('people')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const party = await relyingParty(running, workspace)
  t.deepEqual(party.config.serverMetadata()['acr_values_supported'], ['aal1', 'aal2', 'aal3'])
  const browser = openBrowser(running)
  const begun = await party.journey({ acr_values: 'aal3' })
  const login = await browser.follow(await browser.get(pathOf(begun.url)))
  const enrolment = await browser.follow(await browser.submit(login, workspace, '/auth/login'))
  t.regex(enrolment.path, /^\/auth\/mfa\/enroll/)
  t.notRegex(enrolment.html, /data-totp-secret/, 'TOTP does not reach aal3')

  const copyable = softAuthenticator({ origin: running.baseUrl, synced: true })
  const copied = copyable.create(await optionsOf(browser, enrolment, ENROL))
  const refused = await browser.submit(enrolment, { credential: copied }, ENROL)
  t.regex(refused.html, /can be copied to other devices/)
  const key = softAuthenticator({ origin: running.baseUrl })
  const credential = key.create(await optionsOf(browser, enrolment, ENROL))
  const codes = await browser.submit(enrolment, { credential, name: 'Key' }, ENROL)
  t.is(dataIn(codes.html, 'recovery-code').length, 10)
  const resume = /href="(\/oauth\/authorize\/resume\/[^"]+)"/.exec(codes.html)![1]!
  const consent = await browser.follow(await browser.get(resume))
  t.true(isConsent(consent), consent.html)
  const callback = callbackOf(await browser.submit(consent, { action: 'allow' }))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  const claims = tokens.claims()!
  t.is(claims['acr'], 'aal3')
  t.deepEqual(claims['amr'], ['pwd', 'hwk', 'user', 'mfa'])

  // In another browser, with a password and a recovery code: aal2, and then the key.
  const other = openBrowser(running)
  const [recovery] = dataIn(codes.html, 'recovery-code')
  const owed = await other.follow(await signIn(other, workspace))
  await other.submit(owed, { code: recovery! }, '/auth/mfa')
  const next = await party.journey({ acr_values: 'aal3' })
  const stepUp = await other.follow(await other.get(pathOf(next.url)))
  t.regex(stepUp.path, /^\/auth\/mfa\?flow=/)
  t.notRegex(stepUp.html, /name="code"/, 'no code reaches aal3')
  const none = await party.journey({ acr_values: 'aal3', prompt: 'none' })
  const unmet = callbackOf(await other.get(pathOf(none.url)))
  t.is(unmet.searchParams.get('error'), 'unmet_authentication_requirements')
  const raised = await other.follow(await useKey(other, stepUp, key, {}, SECOND_FACTOR))
  t.is(raised.status, 302, raised.html)
  const second = await oidc.authorizationCodeGrant(party.config, callbackOf(raised), next.checks)
  t.is(second.claims()!['acr'], 'aal3')
})

test('with two_factor a passkey alone enrols and signs in', async (t) => {
  const running = await sharedService('factors')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const page = await browser.follow(await signIn(browser, workspace))
  t.regex(page.path, /^\/auth\/mfa\/enroll/)
  t.regex(page.html, /data-totp-secret/)
  const key = softAuthenticator({ origin: running.baseUrl, synced: true })
  const credential = key.create(await optionsOf(browser, page, ENROL))
  t.is((await browser.submit(page, { credential }, ENROL)).status, 200)
  t.is((await browser.get('/auth/account')).status, 200)
  const other = openBrowser(running)
  t.is((await useKey(other, await loginPage(other, workspace), key)).location, '/auth/account')
  const totp = openBrowser(running)
  const owed = await totp.follow(await signIn(totp, workspace))
  t.regex(owed.path, /^\/auth\/mfa\?/, 'the password alone is not enough')
  await t.throwsAsync(() => enrol(totp, owed))
})
