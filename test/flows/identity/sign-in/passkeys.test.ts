/** Passkeys over HTTP: what they prove, and every invalid response. */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  type SoftAuthenticator,
  softAuthenticator,
} from '../../../support/identity/authenticator.js'
import { sql } from '../../../support/storage/sql.js'
import {
  ADD,
  eventsOf,
  type PasskeyWorkspace,
  loginPage,
  optionsOf,
  passkeysOf,
  SECOND_FACTOR,
  SIGN_IN,
  useKey,
  withPasskey,
} from '../../../support/identity/passkeys.js'
import {
  bootstrapped,
  enrolledBrowser,
  SESSION_COOKIE,
  signIn,
} from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'
import { RACERS } from '../../../support/racers.js'

const running = await sharedService('people')
const passkeyWorkspace = async (): Promise<PasskeyWorkspace> => ({
  running,
  workspace: await bootstrapped(running),
})

test('a passkey is added, signs in alone, is renamed and removed', async (t) => {
  const of = await passkeyWorkspace()
  const { running, workspace, added, key, recoveryCodes, browser: first } = await withPasskey(of)
  t.is(added.status, 200, added.html)
  t.is(recoveryCodes.length, 10, 'the first factor of an account comes with recovery codes')

  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  t.regex(page.html, /autocomplete="username webauthn"/)
  const policy = page.headers['content-security-policy']!
  t.regex(policy, /script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'/)
  t.notRegex(policy, /unsafe/)
  t.notRegex(page.html, /<script(?![^>]*\ssrc=)|\son[a-z]+=/)
  const options = await optionsOf(browser, page, SIGN_IN)
  t.like(options, { rpId: 'localhost', userVerification: 'required', allowCredentials: [] })
  const before = browser.cookies.get(SESSION_COOKIE)
  const done = await browser.submit(page, { credential: key.get(options) }, SIGN_IN)
  t.is(done.status, 303, done.html)
  t.is(done.location, '/auth/account')
  t.not(browser.cookies.get(SESSION_COOKIE), before)
  const account = await browser.follow(done)
  t.true(account.html.includes('Blue key'))
  t.like((await eventsOf(of, 'auth.login.success')).at(-1), {
    amr: ['hwk', 'user', 'mfa'],
    acr: 'aal3',
  })

  const renaming = account.forms.find(({ action }) => action.endsWith('/rename'))!
  const renamed = await browser.follow(
    await browser.post(renaming.action, { ...renaming.fields, name: ' <b>Red\u202e key ' }),
  )
  t.true(renamed.html.includes('&lt;b&gt;Red key<'))
  const removal = renamed.forms.find(({ action }) => /passkeys\/[^/]+\/remove/.test(action))!
  t.is((await browser.post(removal.action, { ...removal.fields })).location, '/auth/account')
  t.like((await eventsOf(of, 'security.suspicious_activity')).at(-1), { reason: 'passkey_removed' })
  const after = openBrowser(running)
  const refused = await useKey(after, await loginPage(after, workspace), key)
  t.is(refused.status, 200)
  t.regex(refused.html, /does not belong to an account/)
  t.is((await first.get('/auth/account')).status, 200)
})

test('the only sign-in method is not removed, also not by two concurrent removals', async (t) => {
  const { running, workspace, key, browser } = await withPasskey(await passkeyWorkspace())
  const without = 'update accounts set password_hash = null where email = $1'
  const account = await browser.get('/auth/account')
  const removal = account.forms.find(({ action }) => /passkeys\/[^/]+\/remove/.test(action))!
  const person = openBrowser(running)
  const arrived = await useKey(person, await loginPage(person, workspace), key)
  t.is(arrived.status, 303, arrived.html)
  await sql(running.db.database, without, [workspace.email])
  const own = (await person.follow(arrived)).forms.find(({ action }) => action === removal.action)!
  const kept = await person.post(own.action, { ...own.fields })
  t.is(kept.status, 409, kept.html)

  const second = softAuthenticator({ origin: running.baseUrl })
  const page = await person.get(`${ADD}/new`)
  const credential = second.create(await optionsOf(person, page, ADD))
  t.is((await person.submit(page, { credential, name: 'Second' }, ADD)).location, '/auth/account')
  const both = (await person.get('/auth/account')).forms.filter(({ action }) =>
    /passkeys\/[^/]+\/remove/.test(action),
  )
  t.is(both.length, 2)
  const answers = await Promise.all(
    both.map(({ action, fields }) => person.post(action, { ...fields })),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [303, 409])
})

test('a syncable passkey proves aal2, and works as second factor after a password', async (t) => {
  const of = await passkeyWorkspace()
  const { running, workspace, key } = await withPasskey(of, true)
  const browser = openBrowser(running)
  t.is((await useKey(browser, await loginPage(browser, workspace), key)).status, 303)
  t.like((await eventsOf(of, 'auth.login.success')).at(-1), {
    amr: ['swk', 'user', 'mfa'],
    acr: 'aal2',
  })

  const second = openBrowser(running)
  const owed = await signIn(second, workspace)
  t.regex(owed.location!, /^\/auth\/mfa\?flow=/)
  t.deepEqual((await eventsOf(of, 'auth.mfa.challenge')).at(-1)!['methods'], [
    'passkey',
    'recovery_code',
  ])
  const page = await second.follow(owed)
  const options = await optionsOf(second, page, SECOND_FACTOR)
  t.deepEqual(
    options.allowCredentials!.map(({ id }) => id),
    [key.credentialId],
  )
  const done = await second.submit(page, { credential: key.get(options) }, SECOND_FACTOR)
  t.is(done.location, '/auth/account', done.html)
  t.like((await eventsOf(of, 'auth.login.success')).at(-1), {
    amr: ['pwd', 'swk', 'user', 'mfa'],
    acr: 'aal2',
  })
})

test('recovery codes replace a passkey; a user without TOTP is not asked for a TOTP code', async (t) => {
  const { running, workspace, recoveryCodes } = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(running)
  const page = await browser.follow(await signIn(browser, workspace))
  t.notRegex(page.html, /6-digit code/)
  t.is((await browser.submit(page, { code: '123456' }, '/auth/mfa')).status, 200)
  const done = await browser.submit(page, { code: recoveryCodes[0]! }, '/auth/mfa')
  t.is(done.location, '/auth/account')
})

test('TOTP and a passkey on one account: either is a second factor, either can be removed', async (t) => {
  const { running, workspace } = await passkeyWorkspace()
  const { browser, recoveryCodes } = await enrolledBrowser(running, workspace)
  const page = await browser.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: running.baseUrl })
  const options = await optionsOf(browser, page, ADD)
  const added = await browser.submit(page, { credential: key.create(options), name: '' }, ADD)
  t.is(added.location, '/auth/account', 'the codes of the account are as they were')
  const account = await browser.follow(added)
  const totp = account.forms.find(({ action }) => /factors\/[^/]+\/remove/.test(action))!
  t.is((await browser.post(totp.action, totp.fields)).location, '/auth/account')
  const other = openBrowser(running)
  const owed = await other.follow(await signIn(other, workspace))
  t.regex(owed.path, /^\/auth\/mfa/)
  const code = await other.submit(owed, { code: recoveryCodes[0]! }, '/auth/mfa')
  t.is(code.location, '/auth/account', 'recovery codes stay as long as a factor does')
})

/** False claims in a response that make it invalid. */
const LIES = [
  { origin: 'https://evil.example' },
  { origin: 'http://localhost.evil.example' },
  { crossOrigin: true, origin: 'https://evil.example' },
  { rpId: 'evil.example' },
  { userVerified: false },
  { challenge: 'A'.repeat(43) },
  { type: 'webauthn.create' },
  { userHandle: 'AAAAAAAAAAAAAAAAAAAAAA' },
] as const

test('a response with a wrong origin, relying party, user or challenge does not sign in', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(of.running)
  const page = await loginPage(browser, of.workspace)
  for (const claims of LIES) {
    const title = JSON.stringify(claims)
    const refused = await useKey(browser, page, of.key, claims)
    t.is(refused.status, 200, title)
    t.regex(refused.html, /does not belong to an account/, title)
    t.false(browser.cookies.has(SESSION_COOKIE), title)
  }
  const told = await eventsOf(of, 'auth.login.failure')
  t.is(told.filter(({ reason }) => reason === 'passkey').length, LIES.length)
  for (const credential of ['', '{}', '[]', 'null', '{"id":1}', 'x'.repeat(40_000)]) {
    const answer = await browser.submit(page, { credential }, SIGN_IN)
    t.true([200, 400, 429].includes(answer.status), `${answer.status}`)
  }
  t.is((await useKey(browser, page, of.key)).status, 303, 'the key itself is fine')
})

test('a registration of another origin, without verification or twice adds nothing', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(of.running)
  await browser.follow(await useKey(browser, await loginPage(browser, of.workspace), of.key))
  const page = await browser.get(`${ADD}/new`)
  const attempt = async (key: SoftAuthenticator, claims = {}) => {
    const options = await optionsOf(browser, page, ADD)
    return browser.submit(page, { credential: key.create(options, claims) }, ADD)
  }
  const fresh = () => softAuthenticator({ origin: of.running.baseUrl })
  for (const claims of [
    { origin: 'https://evil.example' },
    { rpId: 'evil.example' },
    { userVerified: false },
    { type: 'webauthn.get' },
    { challenge: 'A'.repeat(43) },
  ])
    t.regex((await attempt(fresh(), claims)).html, /could not be added/)
  t.regex((await attempt(of.key)).html, /could not be added/, 'known already')
  for (const credential of ['', '{}', '[]', 'null', '{"id":1}', 'x'.repeat(40_000)]) {
    const answer = await browser.submit(page, { credential }, ADD)
    t.true([200, 400].includes(answer.status), `${answer.status}`)
  }
  const rows = await passkeysOf(of)
  t.is(rows.length, 1)
})

test('a challenge is bound to one browser, session and purpose, and works once', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const { running, workspace, key } = of
  const mine = openBrowser(running)
  const page = await loginPage(mine, workspace)
  const options = await optionsOf(mine, page, SIGN_IN)
  const credential = key.get(options)
  const theirs = openBrowser(running)
  const elsewhere = await loginPage(theirs, workspace)
  t.is((await theirs.submit(elsewhere, { credential }, SIGN_IN)).status, 200, 'another browser')
  const factor = await mine.follow(await signIn(mine, workspace))
  const other = await mine.submit(factor, { credential }, SECOND_FACTOR)
  t.regex(other.html, /could not be used/, 'another purpose')

  t.is((await mine.submit(page, { credential }, SIGN_IN)).status, 303)
  t.is((await mine.submit(page, { credential }, SIGN_IN)).status, 200, 'replayed')
})

test.serial('of concurrent responses to one challenge, one signs in', async (t) => {
  const { running, workspace, key } = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(running)
  const page = await loginPage(browser, workspace)
  const credential = key.get(await optionsOf(browser, page, SIGN_IN), { counter: 0 })
  const answers = await Promise.all(
    Array.from({ length: RACERS }, () => browser.submit(page, { credential }, SIGN_IN)),
  )
  t.is(answers.filter(({ status }) => status === 303).length, 1)
  const failed = answers.filter(({ status }) => status >= 500)
  t.is(failed.length, 0, `${failed[0]?.status}: ${failed[0]?.html}`)
})

test.serial('concurrent registrations with one challenge add one passkey', async (t) => {
  const of = await passkeyWorkspace()
  const browser = openBrowser(of.running)
  await browser.follow(await signIn(browser, of.workspace))
  const page = await browser.get(`${ADD}/new`)
  const options = await optionsOf(browser, page, ADD)
  const sends = Array.from({ length: RACERS }, () => {
    const credential = softAuthenticator({ origin: of.running.baseUrl }).create(options)
    return browser.submit(page, { credential }, ADD)
  })
  const answers = await Promise.all(sends)
  t.is(answers.filter(({ html }) => html.includes('data-recovery-code')).length, 1)
  t.is((await passkeysOf(of)).length, 1)
})

test('a signature counter that decreases is refused and reported', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const attempt = async (counter: number) => {
    const browser = openBrowser(of.running)
    return useKey(browser, await loginPage(browser, of.workspace), of.key, { counter })
  }
  t.is((await attempt(7)).status, 303)
  for (const counter of [7, 6, 0]) t.is((await attempt(counter)).status, 200, `${counter}`)
  const told = await eventsOf(of, 'security.suspicious_activity')
  t.is(told.filter(({ reason }) => reason === 'passkey_counter').length, 3)
  t.is((await attempt(8)).status, 303)
})

test('another user’s passkey is not a second factor, and one of another tenant does not sign in', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const { running, key } = of
  const stranger = await bootstrapped(running)
  const browser = openBrowser(running)
  const refused = await useKey(browser, await loginPage(browser, stranger), key)
  t.regex(refused.html, /does not belong to an account/)

  const enrolled = await enrolledBrowser(running, stranger)
  const own = softAuthenticator({ origin: running.baseUrl })
  const page = await enrolled.browser.get(`${ADD}/new`)
  const options = await optionsOf(enrolled.browser, page, ADD)
  await enrolled.browser.submit(page, { credential: own.create(options) }, ADD)
  const factor = await browser.follow(await signIn(browser, stranger))
  const theirs = await useKey(browser, factor, key, {}, SECOND_FACTOR)
  t.regex(theirs.html, /could not be used/)
  t.is((await useKey(browser, factor, own, {}, SECOND_FACTOR)).location, '/auth/account')
})

test('passkeys of another account cannot be renamed or removed', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const [{ id }] = (await passkeysOf(of)) as [{ id: string }]
  const stranger = await bootstrapped(of.running)
  const { browser } = await enrolledBrowser(of.running, stranger)
  const account = await browser.get('/auth/account')
  const { csrf_token } = account.forms[0]!.fields as { csrf_token: string }
  for (const path of [`${ADD}/${id}/remove`, `${ADD}/${id}/rename`, `${ADD}/nonsense/remove`]) {
    const answer = await browser.post(path, { csrf_token, name: 'Mine' })
    t.is(answer.status, 404, path)
  }
})

test('a session without fresh authentication neither removes nor adds a passkey', async (t) => {
  const of = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(of.running)
  const page = await loginPage(browser, of.workspace)
  const account = await browser.follow(await useKey(browser, page, of.key))
  await sql(of.running)`
    update browser_sessions set auth_time = auth_time - interval '301 seconds'
    where tenant_id = ${of.workspace.tenantId}`
  const removal = account.forms.find(({ action }) => /passkeys\/[^/]+\/remove/.test(action))!
  t.regex((await browser.post(removal.action, removal.fields)).location!, /^\/auth\/login\?flow=/)
  t.regex((await browser.get(`${ADD}/new`)).location!, /^\/auth\/login\?flow=/)
})

test('without a session, scripts of pages get 401 with the sign-in page, and browsers a redirect', async (t) => {
  const ask = (accept: string) =>
    fetch(`${running.baseUrl}${ADD}/options`, {
      method: 'POST',
      redirect: 'manual',
      headers: { accept, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'name=Blue',
    })
  const script = await ask('application/json')
  t.is(script.status, 401)
  t.truthy(script.headers.get('www-authenticate'))
  const location = '/auth/login?return_to=%2Fauth%2Faccount'
  t.like(await script.json(), { error: 'unauthorized', location })
  const page = await ask('text/html')
  t.is(page.status, 303)
  t.is(page.headers.get('location'), location)
})
