/**
 * Slow users: what they were asked for still exists when they continue. Guests who do not return are deleted. The rounds of
 * retention are of all tenants: a service of this file.
 */
import { systemRandom } from '../../../../runtime/kernel/random.js'
import test from 'ava'
import { Registry } from 'prom-client'
import { sweepExpired } from '../../../../actors/operations/retention/sweeps.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { callbackOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { testService } from '../../../support/service.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const running = await testService({
  environment: {
    SVC_ANONYMOUS__ENABLED: 'true',
    SVC_ANONYMOUS__REQUESTS_PER_ADDRESS_MAX: '2',
  },
})
const person = await bootstrapped(running)
const party = await relyingParty(running, person, { grantTypes: ['authorization_code', DEVICE] })

async function post(path: string, fields: Readonly<Record<string, string>>) {
  const basic = Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')
  const answer = await fetch(running.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams(fields),
  })
  return (await answer.json()) as Record<string, string>
}

/** Runs the retention rounds of a later time. */
function swept(laterMs: number) {
  return sweepExpired(
    {
      database: running.db.database,
      clock: { ...systemClock, now: () => new Date(Date.now() + laterMs) },
      random: systemRandom(systemClock),
      registry: new Registry(),
      retention: {
        delivery_retention_days: 30,
        checkout_retention_days: 90,
        guest_retention_secs: 86_400,
      },
    },
    new AbortController().signal,
  )
}

for (const action of ['allow', 'deny'] as const)
  test.serial(
    `a pushed request opened in time can be answered much later: ${action}`,
    async (t) => {
      const { url } = await party.journey({ prompt: 'consent' })
      const { request_uri } = await post('/oauth/par', Object.fromEntries(url.searchParams))
      const query = new URLSearchParams({ client_id: party.clientId, request_uri: request_uri! })
      const path = `/oauth/authorize?${query.toString()}`
      const browser = openBrowser(running)
      const late = openBrowser(running)
      const login = await browser.follow(await browser.get(path))
      const second = await late.follow(await late.get(path))
      await swept(25 * MINUTE_MS)

      const asked = await browser.follow(await browser.submit(login, person))
      const answer = callbackOf(await browser.submit(asked, { action }))
      t.is(answer.searchParams.has('code'), action === 'allow')
      t.is(answer.searchParams.get('error'), action === 'allow' ? null : 'access_denied')

      await swept(25 * MINUTE_MS)
      const again = await late.follow(await late.submit(second, person))
      const other = again.status === 200 ? await late.submit(again, { action: 'allow' }) : again
      t.is(other.status, 400, 'the request was used up in the other browser')
    },
  )

test.serial(
  'a user who returns from sign-in after most of an hour still gets the consent page',
  async (t) => {
    const { url } = await party.journey({ prompt: 'consent' })
    const browser = openBrowser(running)
    const login = await browser.follow(await browser.get(url.pathname + url.search))
    await sql(running)`
      update authorization_requests set created_at = created_at - interval '50 minutes',
      expires_at = expires_at - interval '50 minutes'`
    const asked = await browser.follow(await browser.submit(login, person)).gives(200)
    t.true(callbackOf(await browser.submit(asked, { action: 'allow' })).searchParams.has('code'))
  },
)

test.serial('a device that polls long after its code expired gets expired_token', async (t) => {
  const { device_code } = await post('/oauth/device/code', { scope: 'openid' })
  await swept(45 * MINUTE_MS)
  await sql(running)`update backchannel_requests set expires_at = now() - interval '30 minutes'`
  const answer = await post('/oauth/token', { grant_type: DEVICE, device_code: device_code! })
  t.is(answer['error'], 'expired_token')
})

test.serial('a decision in the last moment of a device code counts', async (t) => {
  const later = (seconds: number) =>
    sql(running)`
      update backchannel_requests set expires_at = expires_at + make_interval(secs => ${seconds})`
  const browser = openBrowser(running)
  for (const [action, error] of [
    ['approve', undefined],
    ['deny', 'access_denied'],
  ] as const) {
    const begun = await post('/oauth/device/code', { scope: 'openid' })
    await later(20 - 900)
    const path = `/oauth/device/verify?user_code=${begun['user_code']}`
    const page = await browser.follow(await browser.get(path))
    const asked = page.path.startsWith('/auth/login')
      ? await browser.follow(await browser.submit(page, person))
      : page
    await browser.submit(asked, { action })
    // As if 25 seconds had passed.
    await later(-25)
    const answer = await post('/oauth/token', {
      grant_type: DEVICE,
      device_code: begun['device_code']!,
    })
    t.is(answer['error'], error)
    t.is(typeof answer['access_token'], action === 'approve' ? 'string' : 'undefined')
  }
})

test.serial('going back after the code was redeemed shows a link to the application', async (t) => {
  const { url, verifier } = await party.journey({ prompt: 'consent', ui_locales: 'de' })
  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(url.pathname + url.search))
  const asked = await browser.follow(await browser.submit(login, person))
  const back = callbackOf(await browser.submit(asked, { action: 'allow' }))
  const redeemed = await post('/oauth/token', {
    grant_type: 'authorization_code',
    code: back.searchParams.get('code')!,
    redirect_uri: back.origin + back.pathname,
    code_verifier: verifier,
  })
  t.truthy(redeemed['access_token'], JSON.stringify(redeemed))
  for (const page of [
    await browser.get(asked.path),
    await browser.submit(asked, { action: 'deny' }),
  ]) {
    t.is(page.status, 200)
    t.regex(page.html, /<html lang="de"/)
    t.regex(page.html, /href="https:\/\/app\.example\/">Zurück zu Lighthouse</)
  }
  const unknown = await browser.get(`/oauth/authorize/resume/${'x'.repeat(43)}`).gives(400)
  t.false(unknown.html.includes('app.example'))
})

test.serial(
  'guests are limited per network address, and deleted after the retention time',
  async (t) => {
    const workspace = await bootstrapped(running)
    await sql(running)`
      update tenants set settings = ${JSON.stringify({ anonymous: { enabled: true } })}
      where id = ${workspace.tenantId}`
    const browsers = [1, 2, 3].map(() => openBrowser(running))
    t.teardown(() => Promise.all(browsers.map((browser) => browser.close())))
    const statuses = []
    for (const browser of browsers) {
      const path = `/auth/login?tenant_slug=${workspace.tenantSlug}&return_to=/auth/account`
      const answer = await browser.submit(await browser.get(path), {}, '/auth/login/guest')
      statuses.push(answer.status)
    }
    t.deepEqual(statuses, [303, 303, 429])
    const count = async () => {
      const [row] = await sql<{ guests: number; accounts: number }>(running)`
        select count(*) filter (where guest_since is not null)::int as guests,
        count(*)::int as accounts from accounts`
      return row!
    }
    const before = await count()
    t.is(before.guests, 2)
    t.is((await swept(DAY_MS / 2))['guests'], 0)
    t.is((await swept(DAY_MS * 2))['guests'], 2)
    t.deepEqual(await count(), { guests: 0, accounts: before.accounts - 2 })
    t.is((await browsers[0]!.get('/auth/account')).status, 303)
    const events = await sql(running)`
      select data ->> 'status' as status from all_events
      where type = 'tenant_user.removed' and tenant_id = ${workspace.tenantId}`
    t.deepEqual(events, [{ status: 'removed' }, { status: 'removed' }])
  },
)
