/** People on the hosted pages, over HTTP, on both transports, and what the sign-in page loads (docs/reference/page-design.md). */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, enrol, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { TRANSPORTS, sharedService } from '../../../support/service.js'

for (const transport of TRANSPORTS) {
  test(`${transport}: a person signs in, sees the account and signs out`, async (t) => {
    const running = await sharedService('plain', { transport })
    t.teardown(() => running.end())
    const workspace = await bootstrapped(running)
    const browser = openBrowser(running)

    const answer = await signIn(browser, workspace)
    t.is(answer.status, 303, answer.html)
    t.is(answer.location, '/auth/account')
    const isSecure = running.issuer.startsWith('https:')
    const name = isSecure ? '__Host-svc_session' : 'svc_session'
    const cookie = answer.setCookies.find((line) => line.startsWith(`${name}=`)) ?? ''
    for (const attribute of ['Path=/', 'HttpOnly', 'SameSite=Lax']) {
      t.true(cookie.split('; ').includes(attribute), attribute)
    }
    t.is(/; Secure/.test(cookie), isSecure)
    t.notRegex(cookie, /Domain|Max-Age/i)

    const account = await browser.follow(answer).gives(200)
    t.true(account.html.includes(workspace.email))
    t.is(account.headers['cache-control'], 'no-store')
    t.is(account.headers['referrer-policy'], 'no-referrer')
    const policy = account.headers['content-security-policy']!
    t.regex(policy, /default-src 'none'/)
    t.regex(policy, /frame-ancestors 'none'/)
    t.notRegex(policy, /unsafe|script-src/)
    t.notRegex(account.html, /<script|<style|\sstyle=|\son[a-z]+=/)

    const out = await browser.submit(account, {}, '/auth/logout').gives(200)
    t.false(browser.cookies.has(name))
    t.true(out.html.includes(`href="/auth/login?tenant_id=${workspace.tenantId}"`), 'back there')
    const after = await browser.get('/auth/account').gives(303)
    t.regex(after.location!, /^\/auth\/login\?return_to=%2Fauth%2Faccount$/)
  })
}

test('a second factor is enrolled, then required at every sign-in', async (t) => {
  const running = await sharedService('plain')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const first = await enrolledBrowser(running, workspace)
  t.is(first.page.status, 200)
  t.is(first.recoveryCodes.length, 10)
  t.true(first.page.html.includes('href="/auth/account"'))
  t.is((await first.browser.get('/auth/account')).status, 200)

  const second = openBrowser(running)
  const answer = await signIn(second, workspace)
  t.regex(answer.location!, /^\/auth\/mfa\?flow=/)
  t.is((await second.get('/auth/account')).status, 303, 'not signed in before the second step')
  const asked = await second.follow(answer)
  const wrong = await second.submit(asked, { code: '000000' }).gives(200)
  t.true(wrong.html.includes('role="alert"'))
  const done = await second.submit(wrong, { code: first.codes.next() })
  t.is(done.location, '/auth/account')
  t.is((await second.follow(done)).status, 200)

  const third = openBrowser(running)
  const page = await third.follow(await signIn(third, workspace))
  const recovered = await third.submit(page, { code: first.recoveryCodes[0]!.toLowerCase() })
  t.is(recovered.location, '/auth/account')
  const account = await third.follow(recovered)
  t.true(account.html.includes('9'), 'one recovery code is used up')
})

test('with two_factor every user must enrol a second factor before being signed in', async (t) => {
  const running = await sharedService('factors')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const answer = await signIn(browser, workspace)
  t.regex(answer.location!, /^\/auth\/mfa\/enroll\?flow=/)
  t.regex((await browser.get('/auth/account')).location!, /^\/auth\/login/)
  const { page } = await enrol(browser, await browser.follow(answer))
  t.is(page.status, 200)
  t.is((await browser.get('/auth/account')).status, 200)
})

test('a tenant sets its session lifetimes', async (t) => {
  const running = await sharedService('plain')
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  await sql(running)`
    update tenants set settings =
    ${JSON.stringify({ session: { idle_secs: 120, absolute_secs: 600 } })}
    where id = ${workspace.tenantId}`
  const browser = openBrowser(running)
  await signIn(browser, workspace)
  const rows = await sql(running)`
    select idle_secs as idle, extract(epoch from expires_at - created_at)::int as absolute
    from browser_sessions where tenant_id = ${workspace.tenantId}`
  t.deepEqual(rows, [{ idle: 120, absolute: 600 }])
})

// What the sign-in page loads: only from this service, and how many bytes (docs/reference/page-design.md).

const PAGE_BYTES_MAX = 60 * 1024
const FONT_BYTES_MAX = 400 * 1024

test('the sign-in page has at most 60 KiB besides its type faces, all from this service', async (t) => {
  const running = await sharedService('people')
  t.teardown(() => running.end())
  const { tenantSlug } = await bootstrapped(running)
  const url = new URL(`/auth/login?tenant_slug=${tenantSlug}`, running.baseUrl)
  const load = async (address: string) => {
    const answer = await fetch(new URL(address, url))
    t.is(answer.status, 200, address)
    return { answer, body: Buffer.from(await answer.arrayBuffer()) }
  }
  const page = await load(url.href)
  const html = page.body.toString()
  t.regex(page.answer.headers.get('content-security-policy')!, /font-src 'self'/)

  const linked = [...html.matchAll(/<(?:link|script|img)[^>]* (?:href|src)="([^"]+)"/g)]
    .map(([, address]) => address!)
    .filter((address) => !address.startsWith('data:'))
  t.deepEqual(
    linked.filter((address) => !address.startsWith('/auth/')),
    ['/favicon.svg'],
  )
  t.true(linked.some((address) => address.startsWith('/auth/script/')))
  const files = await Promise.all(linked.map(load))
  const typeOf = ({ answer }: (typeof files)[number]) => answer.headers.get('content-type')!
  const fonts = (of: typeof files) => of.filter((one) => typeOf(one) === 'font/woff2')
  const others = files.filter((one) => typeOf(one) !== 'font/woff2')
  const bytes = others.reduce((sum, { body }) => sum + body.length, page.body.length)
  t.true(bytes <= PAGE_BYTES_MAX, `${bytes} bytes`)

  const style = others.find((one) => typeOf(one).startsWith('text/css'))!.body.toString()
  const sources = [...style.matchAll(/url\(([^)]+)\)/g)].map(([, address]) => address!)
  t.true(sources.length >= 2)
  t.true(sources.every((address) => address.startsWith('/auth/font/')))
  t.true(sources.includes(new URL(fonts(files)[0]!.answer.url).pathname), 'one is preloaded')
  const faces = await Promise.all(sources.map(load))
  const faceBytes = faces.reduce((sum, { body }) => sum + body.length, 0)
  t.true(faceBytes <= FONT_BYTES_MAX, `${faceBytes} bytes`)
  for (const { answer, body } of faces) {
    t.is(body.subarray(0, 4).toString('latin1'), 'wOF2')
    t.is(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  }
  t.is((await fetch(new URL('/auth/font/0000000000000000', url))).status, 404)
})
