/** Managing one's own factors on the account page. */
import test from 'ava'
import { dataIn, openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import {
  eventsOf,
  type PasskeyWorkspace,
  loginPage,
  SECOND_FACTOR,
  useKey,
  withPasskey,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { sharedPair } from '../../../support/service.js'
import { loginCodes } from '../../../support/identity/totp.js'

const TOTP = '/auth/account/totp'
const CODES = '/auth/account/recovery-codes'
const [running, peer] = await sharedPair('people')
const passkeyWorkspace = async (): Promise<PasskeyWorkspace> => ({
  running,
  workspace: await bootstrapped(running),
})

test('a user with only a passkey adds an authenticator app after using the passkey', async (t) => {
  const of = await passkeyWorkspace()
  const { workspace, key, recoveryCodes, browser: weak } = await withPasskey(of)
  // This browser has only the password, so the passkey is required first.
  const account = await weak.get('/auth/account')
  t.true(account.html.includes('Add an authenticator app'))
  const led = await weak.follow(await weak.submit(account, {}, '/auth/account/factors'))
  t.regex(led.path, /^\/auth\/mfa\?flow=/)
  const forced = await weak.post(TOTP, { ...account.forms[0]!.fields, code: '123456' })
  t.regex(forced.location!, /^\/auth\/mfa\?flow=/, 'the form requires the same as the page')

  const browser = openBrowser(running)
  await useKey(browser, await loginPage(browser, workspace), key)
  const page = await browser.follow(
    await browser.submit(await browser.get('/auth/account'), {}, '/auth/account/factors'),
  )
  t.is(page.path, `${TOTP}/new`)
  const [secret = ''] = dataIn(page.html, 'totp-secret')
  t.deepEqual(dataIn((await browser.get(`${TOTP}/new`)).html, 'totp-secret'), [secret])
  const codes = loginCodes(secret)
  const wrong = await browser.submit(page, { code: '12345' }, TOTP).gives(200)
  t.regex(wrong.html, /role="alert"/)
  t.deepEqual(dataIn(wrong.html, 'totp-secret'), [secret])
  const code = codes.next()
  const racers = await Promise.all(
    Array.from({ length: 8 }, () => browser.submit(page, { code }, TOTP)),
  )
  t.deepEqual(new Set(racers.map(({ status }) => status)).has(500), false)
  t.is(racers.filter(({ status }) => status === 303).length, 8, 'later requests find it present')
  t.like((await eventsOf(of, 'auth.mfa.verify')).at(-1), { method: 'totp', enrolled: true })
  const enrolled = (await eventsOf(of, 'auth.mfa.verify')).filter((one) => one['method'] === 'totp')
  t.is(enrolled.length, 1)
  const after = await browser.get('/auth/account')
  t.deepEqual(dataIn(after.html, 'recovery-codes-left'), ['10'], 'the codes of the passkey stay')
  t.is((await browser.get(`${TOTP}/new`)).location, '/auth/account')

  // It is now a second factor after the password, like the passkey and the codes.
  const other = openBrowser(running)
  const owed = await other.follow(await signIn(other, workspace))
  const done = await other.submit(owed, { code: codes.next() }, '/auth/mfa')
  t.is(done.location, '/auth/account')
  const third = openBrowser(running)
  const again = await third.follow(await signIn(third, workspace))
  t.is((await third.submit(again, { code: recoveryCodes[0]! }, '/auth/mfa')).status, 303)
  const fourth = openBrowser(running)
  const once = await fourth.follow(await signIn(fourth, workspace))
  t.is((await useKey(fourth, once, key, {}, SECOND_FACTOR)).status, 303)
})

test('each session is offered its own secret, which other sessions cannot learn', async (t) => {
  const of = await passkeyWorkspace()
  async function offeredTo(browser: TestBrowser) {
    const account = await browser.follow(await signIn(browser, of.workspace))
    const page = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
    const [secret = ''] = dataIn(page.html, 'totp-secret')
    return { page, secret }
  }
  const [own, foreign] = [openBrowser(running), openBrowser(running)]
  const theirs = await offeredTo(foreign)
  const mine = await offeredTo(own)
  t.regex(mine.secret, /^[A-Z2-7]{32}$/)
  t.not(mine.secret, theirs.secret)
  t.deepEqual(dataIn((await own.get(mine.page.path)).html, 'totp-secret'), [mine.secret])
  const enrol = (browser: typeof own, { page }: typeof mine, code: string) =>
    browser.submit(page, { code }, '/auth/mfa/enroll')

  const crossed = await enrol(own, mine, loginCodes(theirs.secret).next())
  t.regex(crossed.html, /role="alert"/)
  t.deepEqual(dataIn(crossed.html, 'totp-secret'), [mine.secret])
  const codes = loginCodes(mine.secret)
  t.is(dataIn((await enrol(own, mine, codes.next())).html, 'recovery-code').length, 10)

  // A person who saw the other secret has no second factor, neither there nor at a sign-in.
  const late = await enrol(foreign, theirs, loginCodes(theirs.secret).next())
  t.deepEqual(dataIn(late.html, 'recovery-code'), [])
  const third = openBrowser(running)
  const owed = await third.follow(await signIn(third, of.workspace))
  const guessed = await third.submit(owed, { code: loginCodes(theirs.secret).next() }, '/auth/mfa')
  t.regex(guessed.html, /role="alert"/)
  t.is((await third.submit(guessed, { code: codes.next() }, '/auth/mfa')).location, '/auth/account')
})

test('a sign-in of more than five minutes ago adds nothing', async (t) => {
  const { workspace, key } = await withPasskey(await passkeyWorkspace())
  const browser = openBrowser(running)
  await useKey(browser, await loginPage(browser, workspace), key)
  const page = await browser.get(`${TOTP}/new`).gives(200)
  await sql(running)`
    update browser_sessions set auth_time = auth_time - interval '301 seconds'
    where account_id in (select id from accounts where email = ${workspace.email})`
  const [secret = ''] = dataIn(page.html, 'totp-secret')
  const late = await browser.submit(page, { code: loginCodes(secret).next() }, TOTP)
  t.regex(late.location!, /^\/auth\/login\?flow=/)
  t.regex((await browser.get(`${TOTP}/new`)).location!, /^\/auth\/login\?flow=/)
})

test('new recovery codes invalidate the old ones, and need the second factor', async (t) => {
  const of = await passkeyWorkspace()
  const { workspace } = of
  const { browser, recoveryCodes, codes } = await enrolledBrowser(running, workspace)
  const account = await browser.get('/auth/account')
  const renewed = await browser.submit(account, {}, CODES)
  t.is(renewed.status, 200, renewed.html)
  const fresh = dataIn(renewed.html, 'recovery-code')
  t.is(new Set([...fresh, ...recoveryCodes]).size, 20)
  const audited = await sql(running)`
    select from audit_events where tenant_id = ${workspace.tenantId}
    and type = 'account.recovery_codes.replaced'`
  t.is(audited.length, 1)

  const other = openBrowser(running)
  const owed = await other.follow(await signIn(other, workspace))
  t.is((await other.submit(owed, { code: recoveryCodes[0]! }, '/auth/mfa')).status, 200)
  t.is((await other.submit(owed, { code: fresh[0]! }, '/auth/mfa')).status, 303)

  const weak = openBrowser(running)
  const page = await weak.follow(await signIn(weak, workspace))
  const forced = await weak.post(CODES, { ...account.forms[0]!.fields })
  t.is(forced.status, 303, 'not signed in yet')
  t.regex(forced.location ?? '', /^\/auth\/(login|mfa)/)
  await weak.submit(page, { code: codes.next() }, '/auth/mfa')
  await sql(running)`
    update browser_sessions set auth_time = auth_time - interval '301 seconds'
    where account_id in (select id from accounts where email = ${workspace.email})`
  const late = await weak.submit(await weak.get('/auth/account'), {}, CODES)
  t.regex(late.location!, /^\/auth\/login\?flow=/)
})

test('of recovery codes renewed concurrently by two processes, one set is valid', async (t) => {
  const { workspace } = await passkeyWorkspace()
  const here = await enrolledBrowser(running, workspace)
  const there = openBrowser(peer)
  const second = await there.follow(await signIn(there, workspace))
  await there.submit(second, { code: here.codes.next() }, '/auth/mfa')
  for (let round = 0; round < 10; round += 1) {
    const pages = [await here.browser.get('/auth/account'), await there.get('/auth/account')]
    const made = await Promise.all([
      here.browser.submit(pages[0]!, {}, CODES),
      there.submit(pages[1]!, {}, CODES),
    ])
    for (const { html } of made) t.is(dataIn(html, 'recovery-code').length, 10)
    const left = await here.browser.get('/auth/account')
    t.deepEqual(dataIn(left.html, 'recovery-codes-left'), ['10'])
  }
})

test('one form signs out everywhere else, and only there', async (t) => {
  const { workspace } = await passkeyWorkspace()
  const [here, there, elsewhere] = [1, 2, 3].map(() => openBrowser(running))
  for (const one of [here!, there!, elsewhere!]) await signIn(one, workspace)
  const stranger = openBrowser(running)
  await signIn(stranger, await bootstrapped(running))
  const account = await here!.get('/auth/account')
  t.is(dataIn(account.html, 'session').length, 2)
  const done = await here!.submit(account, {}, '/auth/account/sessions/revoke-others')
  t.is(done.location, '/auth/account')
  for (const one of [there!, elsewhere!]) t.is((await one.get('/auth/account')).status, 303)
  const after = await here!.get('/auth/account')
  t.is(after.status, 200)
  t.notRegex(after.html, /revoke-others/, 'no other session is left')
  t.is((await stranger.get('/auth/account')).status, 200)
})

test('however many browsers are signed in, all others are signed out', async (t) => {
  const { workspace } = await passkeyWorkspace()
  const [here, first] = [1, 2].map(() => openBrowser(running))
  await signIn(first!, workspace)
  await sql(running)`
    insert into browser_sessions (tenant_id, id, account_id, token_sha256, level, pending,
    confined, amr,
    auth_time, password_at, idle_secs, user_agent, address, created_at, last_seen_at, expires_at)
    select tenant_id, gen_random_uuid(), account_id, sha256(gen_random_uuid()::text::bytea),
    level,
    false, false, amr, auth_time, password_at, idle_secs, user_agent, address, created_at,
    last_seen_at + interval '1 second', expires_at
    from browser_sessions, generate_series(1, 120) where tenant_id = ${workspace.tenantId}
    and ended_at is null`
  await signIn(here!, workspace)
  const account = await here!.get('/auth/account')
  await here!.submit(account, {}, '/auth/account/sessions/revoke-others')
  t.is((await first!.get('/auth/account')).status, 303, 'the least recently used one')
  t.is((await here!.get('/auth/account')).status, 200)
  const rows = await sql<{ count: number }>(running)`
    select count(*)::int from browser_sessions where tenant_id = ${workspace.tenantId}
    and ended_at is null`
  t.deepEqual(rows, [{ count: 1 }])
})

test('a user without a password is not offered to change it', async (t) => {
  const { workspace } = await passkeyWorkspace()
  const browser = openBrowser(running)
  await signIn(browser, workspace)
  t.regex((await browser.get('/auth/account')).html, /href="\/auth\/account\/password"/)
  await sql(running)`update accounts set password_hash = null where email = ${workspace.email}`
  const account = await browser.get('/auth/account')
  t.notRegex(account.html, /href="\/auth\/account\/password"/)
  t.regex(account.html, /You have no password/)
})
