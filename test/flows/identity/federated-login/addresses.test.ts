/** Addresses that lead to the account of no other person: invited ones, and lookalikes. docs/guides/identity/single-sign-on.md. */
import test, { type ExecutionContext } from 'ava'
import { type Json, apiOf } from '../../../support/api.js'
import { type TestBrowser, dataIn, openBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { openMailServer, pathIn } from '../../../support/operations/mail.js'
import { signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { departed, reachable } from '../../../support/vault/upstream.js'

const USERS = '/api/v1/tenant-users'
const OLD = 'the password of a squatter'
const NEW = 'the new password of ada'
const VICTIM = 'ivi@kiosk.works'
const LOOKALIKES = ['ivi@k\u0130osk.works', '\u0130vi@kiosk.works', 'ivi@\u212aiosk.works']
const PASSWORD = 'a password of the harbour master'
const LOCKED_AFTER = 3
const CALLBACK = '/auth/sso/callback/oidc'
const THEIRS = { email: 'mallory@evil.example', email_verified: true }

const [provider, mail] = [await hostileProvider(), await openMailServer()]
const way = await reachable([provider.pem])
const running = await testService({
  environment: {
    ...way.environment,
    ...mail.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_SOCIAL__ACCOUNT_LINKING__ENABLED: 'true',
    SVC_INVITATIONS__ENABLED: 'true',
    SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: String(LOCKED_AFTER),
    SVC_EMAIL_OTP__ENABLED: 'true',
    SVC_USER_SELF_SERVICE__ENABLED: 'true',
  },
})
const api = apiOf(running)
const workspace = await api.workspace()
await ownDomain(api, workspace, VICTIM)
const tenantSlug = String(workspace.body['tenant_slug'])
const victim = { email: VICTIM, password: PASSWORD }
const made = await api.call('POST', USERS, { token: workspace.token, json: victim })
test.after.always(() => Promise.all([provider.close(), mail.close()]))

function browser(): TestBrowser {
  const opened = openBrowser(running)
  return opened
}

async function tenant(settings?: unknown) {
  const workspace = await api.workspace()
  if (settings !== undefined) {
    await sql(running)`
      update tenants set settings = ${JSON.stringify(settings)} where id = ${workspace.tenantId}`
  }
  return { ...workspace, tenantSlug: String(workspace.body['tenant_slug']) }
}
type Tenant = Awaited<ReturnType<typeof tenant>>

/** The callback with these claims from the provider. */
function back(at: TestBrowser, away: string, claims: Json) {
  const asked = new URL(away).searchParams
  provider.nonce = asked.get('nonce')!
  provider.mood = { claims }
  const query = new URLSearchParams({
    code: 'abc',
    state: asked.get('state')!,
    iss: provider.issuer,
  })
  return at.get(`${CALLBACK}?${query.toString()}`)
}

async function arrive(at: Tenant, claims: Json) {
  const opened = browser()
  const away = await departed(opened, at)
  const answer = await back(opened, away.location ?? '', claims)
  return { answer, isSignedIn: (await opened.get('/auth/account')).status === 200 }
}

/** Creates an account for an address in another tenant and links it to an identity at the provider. */
async function squat(t: ExecutionContext, email: string, claims: Json) {
  const own = await tenant()
  await ownDomain(api, own, email)
  const json = { email, password: OLD }
  t.is((await api.call('POST', USERS, { token: own.token, json })).status, 201)
  const opened = browser()
  const account = await opened.follow(await signIn(opened, { ...own, email, password: OLD }))
  const away = await opened.submit(account, {}, '/auth/account/identities')
  t.is((await back(opened, dataIn(away.html, 'onward')[0]!, claims)).status, 200)
}

async function invite({ token }: Tenant, email: string): Promise<string> {
  const made = await api.call('POST', USERS, { token, json: { email } })
  if (made.body['status'] !== 'invited') throw new Error(JSON.stringify(made.body))
  return `${USERS}/${String(made.body['id'])}`
}

const statusOf = async ({ token }: Tenant, user: string) =>
  (await api.get(user, token)).body['status']

for (const [what, claims] of [
  ['another address', THEIRS],
  ['an address that the provider does not vouch for', { email_verified: false }],
] as const) {
  test.serial(`a squatter of the address with ${what} accepts no invitation`, async (t) => {
    const email = `ada.${what.length}@harbour.works`
    const said = { email, sub: what, ...claims }
    await squat(t, email, said)
    const theirs = await tenant()
    const user = await invite(theirs, email)

    const before = await arrive(theirs, said)
    t.is(before.answer.status, 403, before.answer.html)
    t.true(before.answer.html.includes('You have an invitation'))
    t.false(before.isSignedIn)
    t.is(await statusOf(theirs, user), 'invited')

    const ada = browser()
    const letter = pathIn(await mail.letterTo(email), '/auth/invitations/')
    t.is((await ada.submit(await ada.get(letter), { password: NEW })).location, '/auth/account')
    t.is(await statusOf(theirs, user), 'active')
    const after = await arrive(theirs, said)
    t.is(after.answer.status, 403, after.answer.html)
    t.false(after.isSignedIn, 'accepting the invitation removed the linked identity')
  })
}

test.serial('a provider that vouches for the invited address admits the user', async (t) => {
  const email = 'grace@harbour.works'
  const said = { email, sub: 'grace', email_verified: true }
  await squat(t, email, said)
  const theirs = await tenant()
  const user = await invite(theirs, email)
  const { answer, isSignedIn } = await arrive(theirs, said)
  t.is(answer.status, 200, answer.html)
  t.true(isSignedIn)
  t.is(await statusOf(theirs, user), 'active')
})

test.serial('provisioning requires a verified address', async (t) => {
  const email = 'linus@harbour.works'
  const said = { ...THEIRS, sub: 'linus' }
  await squat(t, email, said)
  const open = await tenant({ social: { provision: true } })
  const { answer, isSignedIn } = await arrive(open, said)
  t.is(answer.status, 403, answer.html)
  t.true(answer.html.includes('has not verified your email address'))
  t.false(isSignedIn)
  const { rows } = await api.list(USERS, open.token)
  t.false(rows.some((row) => row['email'] === email))
})

test.serial('impossible claim values are ignored', async (t) => {
  const open = await tenant({ social: { provision: true } })
  for (const [n, claims] of [
    { auth_time: 1e20 },
    { auth_time: 9e15 },
    { name: `${'\u202e'}Ada\u2066 ${'L'.repeat(200)}` },
  ].entries()) {
    const email = `unknown.${n}@harbour.works`
    const { answer, isSignedIn } = await arrive(open, {
      email,
      email_verified: true,
      sub: `unknown ${n}`,
      ...claims,
    })
    t.is(answer.status, 200, answer.html)
    t.true(isSignedIn)
    const { body } = await api.get(`${USERS}?email=${encodeURIComponent(email)}`, open.token)
    const [{ display_name: name }] = body as unknown as [{ display_name: string }]
    t.regex(name, /^[^\u202a-\u202e\u2066-\u2069]{0,120}$/u)
  }
})

// Addresses whose lower case equals another address: PostgreSQL folds U+0130 to `i` and U+212A to `k`. Mail to
// `gİthub.com` is delivered to another domain than mail to `github.com` (UTS 46).

const loginPage = (at: TestBrowser) => at.get(`/auth/login?tenant_slug=${tenantSlug}`)

test.serial('mail is sent to the address of the account, never to a lookalike', async (t) => {
  t.is(made.status, 201)
  const opened = browser()
  const login = await loginPage(opened)
  const { fields } = login.forms[0]!
  const forgot = await opened.get(`/auth/password/forgot?flow=${fields['flow']}`)
  for (const email of LOOKALIKES) {
    t.is((await opened.submit(forgot, { email })).status, 200)
    t.is((await opened.post('/auth/login/mail', { ...fields, email })).status, 200)
  }
  // Mail is sent in the order of the requests, so all earlier messages have arrived.
  await opened.submit(forgot, { email: VICTIM.toUpperCase() })
  await opened.post('/auth/login/mail', { ...fields, email: VICTIM.toUpperCase() })
  await mail.letterTo(VICTIM, /password/)
  await mail.letterTo(VICTIM, /code/)
  t.deepEqual(
    mail.received.map(({ to }) => to).filter(([to]) => LOOKALIKES.includes(to!) || to === VICTIM),
    [[VICTIM], [VICTIM]],
  )
})

test.serial('an identity with a lookalike address is not linked to the account', async (t) => {
  // Verified: a provider that vouches for this exact address would be linked.
  await sql(running)`update accounts set email_verified = true where email = ${VICTIM}`
  for (const email of LOOKALIKES) {
    const opened = browser()
    const away = new URL((await departed(opened, { tenantSlug })).location!)
    provider.nonce = away.searchParams.get('nonce')!
    provider.mood = { claims: { sub: 'mallory', email, email_verified: true } }
    const state = away.searchParams.get('state')!
    const query = new URLSearchParams({ code: 'abc', state, iss: provider.issuer })
    const answer = await opened.get(`/auth/sso/callback/oidc?${query.toString()}`)
    t.is(answer.status, 403, answer.html)
    t.is((await opened.get('/auth/account')).status, 303)
  }
})

test.serial('a provider may spell the domain of an account in letters', async (t) => {
  const email = 'ada@xn--bcher-kva.works'
  const own = await tenant()
  await ownDomain(api, own, email)
  const json = { email, password: PASSWORD }
  t.is((await api.call('POST', USERS, { token: own.token, json })).status, 201)
  const claims = { sub: 'spelled', email: 'Ada@BÜCHER.works', email_verified: true }
  const { answer, isSignedIn } = await arrive(own, claims)
  t.is(answer.status, 200, answer.html)
  t.true(isSignedIn)
  const rows = await sql(running)`
    select id from accounts where lower(email) in (${email}, 'ada@bücher.works')`
  t.is(rows.length, 1)
})

test.serial('all spellings of an address share one guess limit', async (t) => {
  const opened = browser()
  const login = await loginPage(opened)
  for (let guess = 0; guess < LOCKED_AFTER; guess += 1) {
    await opened.submit(login, { email: VICTIM, password: 'a wrong one' })
  }
  for (const email of [VICTIM, VICTIM.toUpperCase(), ...LOOKALIKES]) {
    const answer = await opened.submit(login, { email, password: PASSWORD })
    t.true([200, 429].includes(answer.status), `${email}: ${answer.status}`)
  }
})
