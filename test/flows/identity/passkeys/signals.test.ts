/** What pages tell the authenticators of a browser (WebAuthn Level 3 section 5.1.10), and the passkey endpoints document. */
import test from 'ava'
import { softAuthenticator } from '../../../support/identity/authenticator.js'
import {
  ADD,
  loginPage,
  SIGN_IN,
  signalsIn,
  useKey,
  withPasskey,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('people')

test('the account page lists every accepted passkey, also after one is removed, and the names of the account', async (t) => {
  const workspace = await bootstrapped(running)
  const { browser, key, added } = await withPasskey({ running, workspace })
  t.is(added.status, 200)
  const account = await browser.get('/auth/account')
  const { signalAllAcceptedCredentials: accepted, signalCurrentUserDetails: details } =
    signalsIn(account)
  t.is(accepted?.rpId, 'localhost')
  t.deepEqual(accepted?.allAcceptedCredentialIds, [key.credentialId])
  t.like(details, { rpId: 'localhost', userId: accepted!.userId, name: workspace.email })
  const policy = account.headers['content-security-policy']!
  t.regex(policy, /script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'/)
  t.notRegex(policy, /unsafe/)

  const person = openBrowser(running)
  const arrived = await useKey(person, await loginPage(person, workspace), key)
  const page = await person.follow(arrived)
  const profile = page.forms.find(({ action }) => action === '/auth/account/profile')!
  await person.post(profile.action, { ...profile.fields, name: 'Grace "<b>' })
  const renamed = signalsIn(await person.get('/auth/account'))
  t.is(renamed.signalCurrentUserDetails?.displayName, 'Grace "<b>')
  const removal = page.forms.find(({ action }) => action.endsWith('/remove'))!
  const after = await person.follow(await person.post(removal.action, { ...removal.fields }))
  t.deepEqual(signalsIn(after).signalAllAcceptedCredentials, {
    ...accepted!,
    allAcceptedCredentialIds: [],
  })
})

test('a passkey that no account has is signalled, once, and only for a challenge of the page', async (t) => {
  const workspace = await bootstrapped(running)
  const of = await withPasskey({ running, workspace })
  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  t.deepEqual(signalsIn(page), {})
  const stranger = softAuthenticator({ origin: running.baseUrl })
  const { credentialId } = stranger
  const refused = await useKey(browser, page, stranger)
  t.is(refused.status, 200)
  t.deepEqual(signalsIn(refused), {
    signalUnknownCredential: { rpId: 'localhost', credentialId },
  })
  const foreign = { challenge: 'A'.repeat(43) }
  t.deepEqual(signalsIn(await useKey(browser, page, stranger, foreign)), {})
  const wrong = await useKey(browser, page, of.key, { userVerified: false })
  t.deepEqual(signalsIn(wrong), {}, 'the passkey is known')
  const malformed = await browser.submit(page, { credential: '{"id":"<b>"}' }, SIGN_IN)
  t.deepEqual(signalsIn(malformed), {})
})

test('the passkey endpoints document names the part of the account page', async (t) => {
  const answer = await fetch(`${running.baseUrl}/.well-known/passkey-endpoints`)
  t.is(answer.status, 200)
  t.is(answer.headers.get('content-type'), 'application/json')
  const passkeys = `${running.issuer}/auth/account#passkeys`
  t.deepEqual(await answer.json(), { enroll: passkeys, manage: passkeys })
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const account = await browser.follow(await signIn(browser, workspace))
  t.regex(account.html, /id="passkeys"/)
  t.regex(account.html, new RegExp(`href="${ADD}/new"`))
})

test('without passkeys there are neither the documents nor a signal', async (t) => {
  const plain = await sharedService('plain')
  t.teardown(() => plain.end())
  const workspace = await bootstrapped(plain)
  const browser = openBrowser(plain)
  const account = await browser.follow(await signIn(browser, workspace))
  t.deepEqual(signalsIn(account), {})
  t.notRegex(account.headers['content-security-policy']!, /connect-src 'self'/)
  for (const document of ['passkey-endpoints', 'webauthn'])
    t.is((await fetch(`${plain.baseUrl}/.well-known/${document}`)).status, 404)
})
