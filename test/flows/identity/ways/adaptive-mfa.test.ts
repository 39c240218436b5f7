/** A second factor by risk: a code by mail for a sign-in from a new browser or network, or after failures. */
import test from 'ava'
import { networkOf } from '../../../../actors/identity/sign-in/second-factors/risk.js'
import { apiOf } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import {
  bootstrapped,
  enrolledBrowser,
  SESSION_COOKIE,
  signIn,
  type Workspace,
} from '../../../support/identity/person.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { codeIn, pathIn, sharedMail } from '../../../support/operations/letters.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { PROFILES } from '../../../support/fleet/profiles.js'
import { testService } from '../../../support/service.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { back } from '../../../support/identity/squatting.js'
import { departed, onwardFrom, reachable } from '../../../support/vault/upstream.js'

const CODE = /[A-Z]{4}-[A-Z]{4}/

/** Signs in again in a browser whose session is over. */
function signInAgain(browser: TestBrowser, workspace: Workspace) {
  browser.cookies.delete(SESSION_COOKIE)
  return signIn(browser, workspace)
}

const mail = await sharedMail()
const provider = await hostileProvider()
const way = await reachable([provider.pem])
const running = await testService({
  environment: {
    ...PROFILES.people,
    ...mail.environment,
    ...way.environment,
    SVC_ADAPTIVE_MFA__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
  },
})
let stages = 0

async function stage() {
  const email = mailbox(`ada-${(stages += 1)}`)
  const made = await bootstrapped(running)
  const db = running.db.database
  // The fixture user gets a mailbox that was proved before.
  await sql(
    db,
    `update accounts set email = $2, email_key = $2, email_verified = true where email = $1`,
    [made.email, email],
  )
  return {
    running,
    mail,
    db,
    workspace: { ...made, email },
    email,
    browser(): TestBrowser {
      const opened = openBrowser(running)
      return opened
    },
    /** In the tenant, and in these. */
    triggered: (...tenants: string[]) =>
      sql<{ reasons: string[]; method: string }>(db)`
        select data -> 'reasons' as reasons, data ->> 'method' as method from all_events
        where tenant_id = any (${[made.tenantId, ...tenants]})
        and type = 'auth.adaptive_mfa.triggered'
        order by occurred_at, id`,
  }
}

test.serial('a new browser needs a code by mail once, and is known afterwards', async (t) => {
  const at = await stage()
  const first = at.browser()
  t.is((await signIn(first, at.workspace)).location, '/auth/account', 'the first sign-in of all')
  const again = await signInAgain(first, at.workspace)
  t.is(again.location, '/auth/account', 'a known browser')
  t.regex(
    (
      await at.browser().get(`/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
    ).setCookies.join(),
    /svc_browser=[^;]+; Max-Age=15552000/,
    'the browser cookie outlives the browser session',
  )
  t.deepEqual(await at.triggered(), [])

  const other = at.browser()
  const asked = await signIn(other, at.workspace)
  t.regex(asked.location!, /^\/auth\/mfa\?flow=/)
  t.is((await other.get('/auth/account')).status, 303, 'the sign-in is not complete')
  const page = await other.follow(asked)
  const code = codeIn(await at.mail.letterTo(at.email, CODE))
  const wrong = await other.submit(page, { code: 'BBBB-BBBB' }, '/auth/mfa')
  t.true(wrong.html.includes('aria-invalid="true"'))
  const stranger = at.browser()
  const theirs = await stranger.follow(await signIn(stranger, at.workspace))
  t.is((await stranger.submit(theirs, { code }, '/auth/mfa')).status, 200, 'of another sign-in')
  const both = await Promise.all([
    other.submit(page, { code }, '/auth/mfa'),
    other.submit(page, { code: code.toLowerCase() }, '/auth/mfa'),
  ])
  t.true(both.some(({ location }) => location === '/auth/account'))
  t.is((await other.get('/auth/account')).status, 200)
  const [session] = await sql(at.db)`
    select level, amr from browser_sessions
    where tenant_id = ${at.workspace.tenantId} and 'otp' = any (amr) and ended_at is null`
  t.deepEqual(session, { level: 1, amr: ['pwd', 'otp'] })
  t.is((await signInAgain(other, at.workspace)).location, '/auth/account', 'known by now')
  t.deepEqual(await at.triggered(), [
    { reasons: ['new_device'], method: 'mail' },
    { reasons: ['new_device'], method: 'mail' },
  ])
})

const PASSWORD = 'correct horse battery staple'

type Stage = Awaited<ReturnType<typeof stage>>

/** Ways to open the first session of an account other than a sign-in by password. */
const FIRST_SESSIONS = {
  'an invitation': async (at: Stage, browser: TestBrowser, email: string) => {
    const api = apiOf(at.running)
    const { token, body, tenantId } = await api.workspace()
    await api.post('/api/v1/tenant-users', token, { email }).gives(201)
    const { text } = await at.mail.letterTo(email)
    const page = await browser.get(/\/auth\/invitations\/[\w-]+/.exec(text)![0])
    const opened = await browser.submit(page, { name: 'Bea', password: PASSWORD })
    return { opened, tenantId, tenantSlug: String(body['tenant_slug']) }
  },
  'an invite of the operator': async (
    { workspace }: Stage,
    browser: TestBrowser,
    email: string,
  ) => {
    const page = await browser.get(new URL(workspace.inviteUrl).pathname)
    const opened = await browser.submit(page, { name: 'Bea', email, password: PASSWORD })
    return { opened, ...workspace }
  },
  'a sign-up': async ({ mail, workspace }: Stage, browser: TestBrowser, email: string) => {
    const { tenantId, tenantSlug } = workspace
    const page = await browser.get(`/auth/register?tenant_slug=${tenantSlug}`)
    await browser.submit(page, { email })
    const link = pathIn(await mail.letterTo(email, /\/auth\/register\//), '/auth/register/')
    const fields = { name: 'Bea', password: PASSWORD }
    const opened = await browser.submit(await browser.get(link), fields)
    return { opened, tenantId, tenantSlug }
  },
  'a guest session': async (
    { db, workspace, email: fixture }: Stage,
    browser: TestBrowser,
    email: string,
  ) => {
    const { tenantId, tenantSlug } = workspace
    await sql(db)`
      update tenants set settings = ${JSON.stringify({ anonymous: { enabled: true } })}
      where id = ${tenantId}`
    const page = await browser.get(`/auth/login?tenant_slug=${tenantSlug}&return_to=/auth/account`)
    const opened = await browser.submit(page, {}, '/auth/login/guest')
    await sql(
      db,
      `update accounts set email = $1, email_key = $1, guest_since = null,
         password_hash = (select password_hash from accounts where email = $2)
       where guest_since is not null
         and id in (select account_id from tenant_users where tenant_id = $3)`,
      [email, fixture, tenantId],
    )
    return { opened, tenantId, tenantSlug }
  },
} as const

for (const [way, open] of Object.entries(FIRST_SESSIONS)) {
  test.serial(
    `after ${way} a password from elsewhere is challenged, and its owner is not`,
    async (t) => {
      const at = await stage()
      const email = mailbox(way.replaceAll(' ', '-'))
      const owner = at.browser()
      const { opened, tenantId, tenantSlug } = await open(at, owner, email)
      t.is(opened.status, 303, opened.html)
      await sql(at.db)`update accounts set email_verified = true where email = ${email}`
      const password = way === 'a guest session' ? at.workspace.password : PASSWORD
      const bea = { ...at.workspace, tenantSlug, email, password }
      const attacker = at.browser()
      t.regex((await signIn(attacker, bea)).location!, /^\/auth\/mfa\?flow=/)
      t.is((await attacker.get('/auth/account')).status, 303)
      t.is((await signInAgain(owner, bea)).location, '/auth/account', 'the browser is known')
      t.deepEqual(await at.triggered(tenantId), [{ reasons: ['new_device'], method: 'mail' }])
    },
  )
}

test.serial(
  'after a federated sign-in a password from elsewhere is challenged, and its owner is not',
  async (t) => {
    const { db, workspace, browser } = await stage()
    const [owner, attacker] = [browser(), browser()]
    await sql(db)`
      update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
      where id = ${workspace.tenantId}`
    const email = mailbox('federated')
    const away = await departed(owner, workspace)
    const claims = { sub: 'bea', email, email_verified: true }
    const returned = await back(owner, provider, 'oidc', away.location!, claims)
    t.is((await onwardFrom(owner, returned)).status, 200, returned.html)
    await sql(db)`
      update accounts set password_hash = (select password_hash from accounts
      where email = ${workspace.email})
      where email = ${email} and email_verified`
    const bea = { ...workspace, email }
    t.regex((await signIn(attacker, bea)).location!, /^\/auth\/mfa\?flow=/)
    t.is((await signInAgain(owner, bea)).location, '/auth/account', 'the browser is known')
  },
)

test.serial('a new network and failures raise the risk', async (t) => {
  const at = await stage()
  const browser = at.browser()
  await signIn(browser, at.workspace)
  for (let n = 0; n < 3; n += 1)
    await signInAgain(browser, { ...at.workspace, password: 'a guess' })
  t.regex((await signInAgain(browser, at.workspace)).location!, /^\/auth\/mfa/)
  await sql(at.db)`
    update known_browsers set network = '192.0.2.0/24' where account_id =
    (select id from accounts where email = ${at.email})`
  t.regex((await signInAgain(browser, at.workspace)).location!, /^\/auth\/mfa/)
  t.deepEqual(await at.triggered(), [
    { reasons: ['failures'], method: 'mail' },
    { reasons: ['new_network'], method: 'mail' },
  ])
  t.is(networkOf('198.51.100.77'), '198.51.100.0/24')
  t.is(networkOf('::ffff:198.51.100.77'), '198.51.100.0/24')
  t.is(networkOf('2001:db8:1:2:3::4'), '2001:db8:1::/48')
})

test.serial('another code can be requested, and replaces the first', async (t) => {
  const at = await stage()
  await signIn(at.browser(), at.workspace)
  const browser = at.browser()
  const page = await browser.follow(await signIn(browser, at.workspace))
  const first = codeIn(await at.mail.letterTo(at.email, CODE))
  const again = await browser.submit(page, {}, '/auth/mfa/mail')
  t.regex(again.location!, /^\/auth\/mfa\?flow=/)
  const second = codeIn(await at.mail.letterTo(at.email, CODE, 1))
  t.is((await browser.submit(page, { code: first }, '/auth/mfa')).status, 200)
  t.is((await browser.submit(page, { code: second }, '/auth/mfa')).location, '/auth/account')
})

test.serial('an account with a second factor gives that one, and the event says so', async (t) => {
  const at = await stage()
  const enrolled = await enrolledBrowser(at.running, at.workspace)
  const browser = at.browser()
  const page = await browser.follow(await signIn(browser, at.workspace))
  const done = await browser.submit(page, { code: enrolled.codes.next() }, '/auth/mfa')
  t.is(done.location, '/auth/account', done.html)
  t.deepEqual(await at.triggered(), [{ reasons: ['new_device'], method: 'second_factor' }])
  t.deepEqual(await at.mail.lettersTo(at.email), [])
})

test.serial(
  'an unproved mailbox confirms nothing, and a sign-in by mail needs no second mail',
  async (t) => {
    const at = await stage()
    await signIn(at.browser(), at.workspace)
    const browser = at.browser()
    const login = await browser.get(`/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
    const { fields } = login.forms[0]!
    const waiting = await browser.follow(
      await browser.post('/auth/login/mail', { ...fields, email: at.email }),
    )
    const code = codeIn(await at.mail.letterTo(at.email, CODE))
    t.is((await browser.submit(waiting, { code }, '/auth/login/code')).location, '/auth/account')
    await sql(at.db)`update accounts set email_verified = false where email = ${at.email}`
    t.is((await signIn(at.browser(), at.workspace)).location, '/auth/account')
    const methods = (await at.triggered()).map(({ method }) => method)
    t.deepEqual(methods, ['none', 'none'])
    t.is((await at.mail.lettersTo(at.email)).length, 1)
  },
)
