/**
 * What counts as a password guess, and against which limit. docs/guides/identity/sign-in-and-sign-up.md, passwords and
 * lockout.
 */
import test from 'ava'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import {
  bootstrapped,
  SESSION_COOKIE,
  signIn,
  type Workspace,
} from '../../../support/identity/person.js'
import { testService, type TestService } from '../../../support/service.js'

const GUESSES = 4
/** It verifies one password at a time, which takes a while. */
const slow = await testService({
  environment: {
    SVC_AUTH__ARGON2_MEMORY_KIB: '32768',
    SVC_AUTH__ARGON2_ITERATIONS: '3',
    SVC_AUTH__ARGON2_MAX_CONCURRENT: '1',
    SVC_AUTH__ARGON2_WAITING_PER_TENANT_MAX: '2',
    SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: String(GUESSES),
    SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '5000',
  },
})

async function signInPage(running: TestService) {
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const page = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  return { browser, page, workspace }
}

const attempt = (
  browser: TestBrowser,
  page: Page,
  email: string,
  password = 'not the password',
  headers = {},
) => browser.post('/auth/login', { ...page.forms[0]!.fields, email, password }, headers)

const ROUNDS_MAX = 10

test.serial('an attempt refused as busy does not reset failures', async (t) => {
  const { browser, page } = await signInPage(slow)
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const email = `someone.${round}@x.test`
    for (let n = 0; n < 3; n += 1) t.is((await attempt(browser, page, email)).status, 200)
    const flood = Array.from({ length: 12 }, (_, n) =>
      attempt(browser, page, `no.${round}.${n}@x.test`),
    )
    await firstSentAway(flood)
    const unjudged = await attempt(browser, page, email)
    await Promise.all(flood)
    // A place in the queue may have been free by then, so it was judged.
    if (unjudged.status !== 503) continue
    t.is((await attempt(browser, page, email)).status, 200, 'the fourth failure')
    t.is((await attempt(browser, page, email)).status, 429, 'which locks')
    return
  }
  t.fail('no request was refused as busy')
})

/** Resolves once the queue is full, or when all requests are answered. */
const firstSentAway = (flood: readonly Promise<Page>[]) =>
  new Promise<void>((resolve) => {
    for (const one of flood) void one.then(({ status }) => status === 503 && resolve())
    void Promise.all(flood).then(() => resolve())
  })

test.serial(
  'attempts count for their address and for their IPv6 network, unless they are correct',
  async (t) => {
    const running = await testService({
      environment: {
        SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1", "::1"]',
        SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '5',
        SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '3',
        SVC_AUTH__BRUTE_FORCE_LOCKOUT_SECS: '60',
      },
    })
    t.teardown(() => running.end())
    const { browser, page, workspace } = await signInPage(running)
    const { email, password } = workspace
    let networks = 0
    const elsewhere = () => ({ 'x-forwarded-for': `198.51.100.${(networks += 1)}` })
    const right = () => attempt(browser, page, email, password, elsewhere())
    const wrong = () => attempt(browser, page, email, undefined, elsewhere())
    t.is((await wrong()).status, 200)
    // Several times as many as there are slots. An attempt waits 5 s for one, which is short for many on a busy machine.
    const together = await Promise.all(Array.from({ length: 12 }, right))
    t.deepEqual([...new Set(together.map(({ status }) => status))], [303])
    for (let n = 0; n < 3; n += 1) t.is((await wrong()).status, 200)
    const locked = await right()
    t.is(locked.status, 429, 'only its own attempts were given back')
    t.true(locked.html.includes('Too many attempts. Try again in 1 minute.'))
    browser.cookies.clear()
    const german = await browser.get(
      `/auth/login?tenant_slug=${workspace.tenantSlug}&ui_locales=de`,
    )
    const again = await attempt(browser, german, email, password, elsewhere())
    t.true(again.html.includes('Versuchen Sie es in 1 Minute erneut.'))

    const from = async (address: string, n: number) => {
      const headers = { 'x-forwarded-for': address }
      return (await attempt(browser, german, `someone.${n}@x.test`, undefined, headers)).status
    }
    for (let n = 0; n < 5; n += 1) t.is(await from(`2001:db8:1:2:${n}::${n + 1}`, n), 200)
    t.is(await from('2001:db8:1:2:ffff::1', 5), 429)
    t.is(await from('2001:db8:1:3::1', 6), 200, 'another network')
    t.is(await from('192.0.2.1', 7), 200)
  },
)

test.serial(
  'guesses of an address count over all tenants, with and without an account',
  async (t) => {
    const places: Workspace[] = []
    while (places.length < 7) places.push(await bootstrapped(slow))
    const browser = openBrowser(slow)
    const at = async (place: number, email: string, password?: string) => {
      browser.cookies.clear()
      const page = await browser.get(`/auth/login?tenant_slug=${places[place]!.tenantSlug}`)
      return (await attempt(browser, page, email, password)).status
    }
    const { email, password } = places[6]!
    // Correct passwords are no guesses.
    for (let n = 0; n < 12; n += 1) t.is(await at(6, email, password), 303)
    for (const typed of [email, `none.${email}`]) {
      for (let place = 0; place < 5; place += 1)
        for (let n = 0; n < GUESSES; n += 1) t.is(await at(place, typed), 200, `${place} ${n}`)
      t.is(await at(5, typed), 429, 'a tenant without failures')
      t.is(await at(6, typed, password), 429, 'the right password too')
    }
    t.is(await at(5, `other.${email}`), 200)
  },
)

test.serial('strangers do not lock a browser out in which the person signed in', async (t) => {
  const { browser: strangers, page, workspace } = await signInPage(slow)
  const { email, password, tenantSlug } = workspace
  const own = openBrowser(slow)
  t.is((await signIn(own, workspace)).status, 303)
  const guess = (browser: TestBrowser, form: Page, typed?: string) =>
    attempt(browser, form, email, typed).then(({ status }) => status)
  for (let n = 0; n < GUESSES; n += 1) t.is(await guess(strangers, page), 200)
  t.is(await guess(strangers, page, password), 429)
  t.is(await guess(strangers, page), 429)

  own.cookies.delete(SESSION_COOKIE)
  const path = `/auth/login?tenant_slug=${tenantSlug}`
  const form = await own.get(path)
  t.is(await guess(own, form), 200, 'a mistyped password is judged')
  t.is(await guess(own, form, password), 303)
  t.is(await guess(strangers, page, password), 429, 'they are still locked')

  own.cookies.delete(SESSION_COOKIE)
  const again = await own.get(path)
  for (let n = 0; n < GUESSES; n += 1) t.is(await guess(own, again), 200)
  t.is(await guess(own, again, password), 429, 'its own guesses are limited too')
})
