/**
 * A squatter creates an account for an address and adds every kind of sign-in method. Then the owner of the mailbox
 * proves it. docs/guides/identity/sign-in-and-sign-up.md, "First proof of a mailbox".
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { PLACES, placesIn } from '../../../support/identity/proof-places.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { codeIn, openMailServer, pathIn } from '../../../support/operations/mail.js'
import { ownerHome } from '../../../support/identity/owner.js'
import { optionsOf } from '../../../support/identity/passkeys.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import {
  arrive,
  link,
  nothingIsLeft,
  ownDomain,
  SQUATTERS,
  squat,
  type Squatted,
} from '../../../support/identity/squatting.js'
import { reachable } from '../../../support/vault/upstream.js'
import { IS_LONG } from '../../../support/runs.js'

const USERS = '/api/v1/tenant-users'
const NEW = 'the password that the owner chose'
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
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
    SVC_VERIFIED_DOMAINS__ENABLED: 'true',
    SVC_INVITATIONS__ENABLED: 'true',
    SVC_USER_SELF_SERVICE__ENABLED: 'true',
    SVC_EMAIL_OTP__ENABLED: 'true',
    SVC_MAGIC_LINK__ENABLED: 'true',
    SVC_PASSKEY__ENABLED: 'true',
    SVC_PHONE__ENABLED: 'true',
    SVC_PHONE__PROVIDER: 'log',
    SVC_SIWE__ENABLED: 'true',
    SVC_ANONYMOUS__ENABLED: 'true',
    SVC_ANONYMOUS__REQUESTS_PER_ADDRESS_MAX: '1000',
    SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '5000',
    SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '1000',
    SVC_EMAIL__REQUESTS_PER_ADDRESS_MAX: '5000',
  },
})
const api = apiOf(running)
/** Where owners prove their mailboxes. */
const corp = await tenant()
test.after.always(() => Promise.all([provider.close(), mail.close()]))

const DEPLOYMENT = { id: 'oidc', at: provider }
let count = 0
/** A mailbox at a separate domain. */
const mailbox = () => `ada@corp-${(count += 1)}.works`

const browserOf = () => openBrowser(running)

async function tenant() {
  const workspace = await api.workspace('Corp')
  return { ...workspace, tenantSlug: String(workspace.body['tenant_slug']) }
}
type Tenant = Awaited<ReturnType<typeof tenant>>

/** A provider of the tenant, whose claims the test controls. */
async function ownProvider({ token }: Pick<Tenant, 'token'>) {
  const made = await api.post('/api/v1/sso/providers', token, {
    name: 'Corp ID',
    issuer: provider.issuer,
    client_id: 'rp',
    client_secret: 'the client secret of the relying party',
    trusted_acr_values: ['gold'],
  })
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  return { id: String(made.body['id']), at: provider }
}

/** Requests a mail in the sign-in of a tenant: the waiting page, and the mail. */
async function asked({ tenantSlug, email }: Squatted) {
  const browser = browserOf()
  const page = await browser.get(`/auth/login?tenant_slug=${tenantSlug}&return_to=/auth/account`)
  const sent = await browser.post('/auth/login/mail', { ...page.forms[0]!.fields, email })
  const waiting = await browser.follow(sent)
  return { browser, waiting, letter: await mail.letterTo(email) }
}

async function resetLetter({ tenantSlug, email }: Squatted) {
  const browser = browserOf()
  const login = await browser.get(`/auth/login?tenant_slug=${tenantSlug}`)
  const flow = login.forms[0]!.fields['flow']!
  const forgot = await browser.get(`/auth/password/forgot?flow=${flow}`)
  await browser.submit(forgot, { email })
  return {
    browser,
    path: pathIn(await mail.letterTo(email, /password.reset/), '/auth/password/reset/'),
  }
}

const session = async (t: ExecutionContext, browser: TestBrowser) =>
  t.is((await browser.get('/auth/account')).status, 200)

/**
 * How the owner of the mailbox proves it. Returns what is left afterwards: the owner's own identity, if one was used.
 */
const PROOFS: Readonly<Record<string, (t: ExecutionContext, at: Squatted) => Promise<string[]>>> = {
  async reset(t, at) {
    const { browser, path } = await resetLetter(at)
    t.is((await browser.submit(await browser.get(path), { password: NEW })).status, 200)
    const mine = await signIn(browserOf(), { ...at, password: NEW })
    t.is(mine.location, '/auth/account', 'no second factor of the squatter')
    return []
  },
  async code(t, at) {
    const { browser, waiting, letter } = await asked(at)
    const done = await browser.submit(waiting, { code: codeIn(letter) }, '/auth/login/code')
    t.is(done.location, '/auth/account', 'no second factor of the squatter')
    await session(t, browser)
    return []
  },
  async link(t, at) {
    const { browser, letter } = await asked(at)
    const page = await browser.get(pathIn(letter, '/auth/magic/'))
    t.is((await browser.submit(page)).location, '/auth/account')
    await session(t, browser)
    return []
  },
  async invitation(t, { email }) {
    const { token } = corp
    const made = await api.call('POST', USERS, { token, json: { email } })
    t.is(made.body['status'], 'invited')
    const browser = browserOf()
    const page = await browser.get(pathIn(await mail.letterTo(email), '/auth/invitations/'))
    t.is((await browser.submit(page, { password: NEW })).location, '/auth/account')
    await session(t, browser)
    return []
  },
  async 'a sign-up'(t, { email }) {
    const { tenantSlug } = corp
    const browser = browserOf()
    const start = await browser.get(`/auth/register?tenant_slug=${tenantSlug}`)
    await browser.submit(start, { email })
    const page = await browser.get(pathIn(await mail.letterTo(email), '/auth/register/'))
    const done = await browser.submit(page, { password: NEW })
    t.true(done.location?.startsWith('/auth/login?flow='), done.html)
    await session(t, browser)
    return []
  },
  async 'a provider of the deployment'(t, { email, tenantSlug }) {
    const said = { sub: `owner of ${email}`, email, email_verified: true }
    const { answer, isSignedIn } = await arrive(t, api, tenantSlug, DEPLOYMENT, said)
    t.is(answer.status, 200, answer.html)
    t.true(isSignedIn)
    return [said.sub]
  },
  async 'the provider of the owner of the domain'(t, { email }) {
    const own = await ownProvider(corp)
    await ownDomain(api, corp, email, own.id)
    const said = { sub: `owner of ${email}`, email, email_verified: true }
    const { answer, isSignedIn } = await arrive(t, api, corp.tenantSlug, own, said)
    t.is(answer.status, 200, answer.html)
    t.true(isSignedIn)
    return [said.sub]
  },
  async 'the provider of the owner of the domain, silent about the address'(t, { email }) {
    const own = await ownProvider(corp)
    await ownDomain(api, corp, email, own.id)
    const said = { sub: `owner of ${email}`, email, email_verified: undefined }
    const { answer } = await arrive(t, api, corp.tenantSlug, own, said)
    t.is(answer.status, 200, answer.html)
    return [said.sub]
  },
}

test.serial('the same browser, signed in to another account, verifies nothing', async (t) => {
  const squatted = await squat(t, api, mailbox())
  const { browser, email } = squatted
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, '/auth/account/email/verification')
  const path = pathIn(await mail.letterTo(email), '/auth/email/')
  const page = await browser.get(path)
  const other = await squat(t, api, mailbox())
  const key = [...other.browser.cookies.keys()].find((name) => name.endsWith('svc_session'))!
  browser.cookies.set(key, other.browser.cookies.get(key)!)
  t.is((await browser.submit(page)).status, 403)
  browser.cookies.delete(key)
  t.is((await browser.submit(page)).status, 403, 'signed in nowhere')
})

test.serial(
  'a user who verifies the address in their own session keeps every sign-in method',
  async (t) => {
    const own = await squat(t, api, mailbox())
    const { browser, email, accountId } = own
    const account = await browser.get('/auth/account')
    await browser.submit(account, {}, '/auth/account/email/verification')
    const page = await browser.get(pathIn(await mail.letterTo(email), '/auth/email/'))
    t.is((await browser.submit(page)).status, 200)
    const [row] = await sql(running)`
      select email_verified as proved, password_hash is not null as password,
      (select count(*)::int from passkeys where account_id = a.id) as passkeys
      from accounts a where id = ${accountId}`
    t.deepEqual(row, { proved: true, password: true, passkeys: 1 })
    await session(t, browser)
  },
)

test.serial(
  'linking a provider that vouches for the address keeps every sign-in method',
  async (t) => {
    const own = await squat(t, api, mailbox())
    const said = { sub: `me ${own.email}`, email: own.email, email_verified: true }
    t.is((await link(own.browser, DEPLOYMENT, said)).status, 200)
    const [row] = await sql(running)`
      select email_verified as proved, password_hash is not null as password
      from accounts where id = ${own.accountId}`
    t.deepEqual(row, { proved: true, password: true })
  },
)

test.serial('a password reset of a verified account keeps its factors', async (t) => {
  const own = await squat(t, api, mailbox())
  await sql(running)`update accounts set email_verified = true where id = ${own.accountId}`
  const { browser, path } = await resetLetter(own)
  t.is((await browser.submit(await browser.get(path), { password: NEW })).status, 200)
  const [row] = await sql(
    running,
    `select (select count(*)::int from passkeys where account_id = $1) as passkeys,
       (select count(*)::int from totp_factors where account_id = $1) as apps`,
    [own.accountId],
  )
  t.deepEqual(row, { passkeys: 1, apps: 1 })
})

test.serial(
  'a tenant sets passwords only for its domains, and learns nothing about others',
  async (t) => {
    const squatted = await squat(t, api, mailbox())
    const proved = await squat(t, api, mailbox())
    await sql(running)`update accounts set email_verified = true where id = ${proved.accountId}`
    const { token, tenantSlug } = await tenant()
    const answers = []
    for (const email of [squatted.email, proved.email, mailbox()]) {
      const json = { email: email.toUpperCase(), password: NEW }
      const { status, body } = await api.call('POST', USERS, { token, json })
      const { id: _id, sub: _sub, email: said, created_at: _c, updated_at: _u, ...rest } = body
      const [, local = '', domain] = /^(.*)@(.*)$/.exec(email) ?? []
      t.is(said, `${local.toUpperCase()}@${domain}`, 'as it was sent, however the account has it')
      answers.push({ status, ...rest })
      const tried = await signIn(browserOf(), { tenantSlug, email, password: NEW })
      t.is(tried.status, 200, 'the password was not kept')
    }
    t.like(answers[0], { status: 'invited' })
    t.deepEqual(answers[1], answers[0])
    t.deepEqual(answers[2], answers[0])
  },
)

test.serial('a tenant’s provider is not trusted for foreign domains', async (t) => {
  const email = mailbox()
  const attacker = await tenant()
  const own = await ownProvider(attacker)
  const trojan = { sub: 'trojan', email, email_verified: true, acr: 'gold' }
  // Whether or not the address has an account, verified or not: the same response.
  const free = await arrive(t, api, attacker.tenantSlug, own, trojan)
  const squatted = await squat(t, api, email)
  const taken = await arrive(t, api, attacker.tenantSlug, own, trojan)
  await sql(running)`update accounts set email_verified = true where id = ${squatted.accountId}`
  const proved = await arrive(t, api, attacker.tenantSlug, own, trojan)
  for (const { answer, isSignedIn } of [free, taken, proved]) {
    t.is(answer.status, 403)
    t.true(answer.html.includes('not a member'), answer.html)
    t.false(isSignedIn)
  }
  const reasons = await sql<{ reason: string }>(running)`
    select data ->> 'reason' as reason from all_events where tenant_id = ${attacker.tenantId}
    and type = 'sso.login.failed'`
  t.deepEqual(
    reasons.map(({ reason }) => reason),
    ['not_member', 'not_member', 'not_member'],
  )
})

test.serial('an identity linked by the squatter at their own provider does not work', async (t) => {
  const email = mailbox()
  const squatted = await squat(t, api, email)
  const own = await ownProvider(squatted)
  const trojan = { sub: 'trojan horse', email, email_verified: true, acr: 'gold' }
  t.is((await link(squatted.browser, own, trojan)).status, 200)
  await PROOFS['invitation']!(t, squatted)
  await nothingIsLeft(t, api, squatted)
  const again = await arrive(t, api, squatted.tenantSlug, own, trojan)
  t.is(again.answer.status, 403, again.answer.html)
  t.false(again.isSignedIn)
})

type Attack = (t: ExecutionContext) => Promise<void>

/** A page that the squatter opened before the proof and submits afterwards: it has no effect. */
const late =
  (
    path: string,
    action: string,
    fields: (at: Squatted, page: Awaited<ReturnType<TestBrowser['get']>>) => Promise<object>,
  ): Attack =>
  async (t) => {
    const squatted = await squat(t, api, mailbox())
    const { browser } = squatted
    const page = await browser.get(path)
    t.is(page.status, 200, page.html)
    const sent = (await fields(squatted, page)) as Record<string, string>
    await PROOFS['invitation']!(t, squatted)
    const answer = await browser.submit(page, sent, action)
    t.is(answer.status, 303, answer.html)
    t.true(answer.location!.startsWith('/auth/login'), answer.location!)
    await nothingIsLeft(t, api, squatted)
  }

const ADD = '/auth/account/passkeys'
const lateKey = late(`${ADD}/new`, ADD, async ({ browser, key }, page) => ({
  name: 'Late',
  credential: key.create(await optionsOf(browser, page, ADD)),
}))
const latePassword = late('/auth/account/password', '/auth/account/password', async () => ({
  current: SQUATTERS,
  password: NEW,
}))
const lateCodes = late('/auth/account', '/auth/account/recovery-codes', async () => ({}))
const latePhone = late('/auth/account/phone', '/auth/account/phone', async () => ({
  phone_number: '+4915112345678',
}))
const lateWallet = late('/auth/account/wallets/new', '/auth/account/wallets', async () => ({
  message: 'a message',
  signature: `0x${'ab'.repeat(65)}`,
}))
const lateLink = late('/auth/account', '/auth/account/identities', async () => ({}))
const ownMailbox: Attack = async (t) => {
  const squatted = await squat(t, api, mailbox())
  const { body } = await api.get(`${USERS}?email=${squatted.email}`, squatted.token)
  const [{ id }] = body as unknown as [{ id: string }]
  const path = `/api/v1/sandbox/fixture-users/${id}/rotate-password`
  t.is((await api.post(path, squatted.token)).status, 404, 'fixtures have their own mailboxes')
}

const letterElsewhere: Attack = async (t) => {
  const email = mailbox()
  const squatted = await squat(t, api, email)
  const account = await squatted.browser.get('/auth/account')
  await squatted.browser.submit(account, {}, '/auth/account/email/verification').gives(200)
  const path = pathIn(await mail.letterTo(email), '/auth/email/')
  const victim = browserOf()
  const pressed = await victim.submit(await victim.get(path))
  t.is(pressed.status, 403, pressed.html)
  t.true(pressed.html.includes('in the browser that requested it'))
  const [row] = await sql(
    running,
  )`select email_verified as proved from accounts where email = ${email}`
  t.deepEqual(row, { proved: false })

  // The invitation of a tenant then finds an account with an unverified address, and the squatter is not admitted.
  await api.call('POST', USERS, { token: corp.token, json: { email } })
  const invitation = await mail.letterTo(email, /invited/i)
  const browser = browserOf()
  const page = await browser.get(pathIn(invitation, '/auth/invitations/'))
  t.true(page.html.includes('type="password"'), 'a new password is chosen')
  t.is((await browser.submit(page, { password: NEW })).location, '/auth/account')
  const attack = await signIn(browserOf(), { ...corp, email, password: SQUATTERS })
  t.is(attack.status, 200, 'the password of the squatter opens nothing')
  await nothingIsLeft(t, api, squatted)
}

const preProvisioned: Attack = async (t) => {
  const squatted = await squat(t, api, mailbox(), DEPLOYMENT)
  const { email } = squatted
  await ownDomain(api, corp, email)
  const json = { email, password: NEW }
  const made = await api.call('POST', USERS, { token: corp.token, json })
  t.is(made.body['status'], 'pre_provisioned')
  const browser = browserOf()
  const done = await browser.follow(await signIn(browser, { ...corp, email, password: NEW }))
  t.is(done.path, '/auth/account')
  const attack = await signIn(browserOf(), { ...corp, email, password: SQUATTERS })
  t.is(attack.status, 200)
  t.is((await squatted.browser.get('/auth/account')).status, 303)

  // Another tenant of the owner does not take the account over from the first.
  const sibling = await tenant()
  await ownDomain(api, sibling, email)
  const other = { email, password: 'another password of the owner' }
  const again = await api.call('POST', USERS, { token: sibling.token, json: other })
  t.is(again.body['status'], 'invited')
  await session(t, browser)
}

/** An agent uses an invite for a squatted address: the owner of the mailbox becomes operator by the mail. */
const operatorInvite: Attack = async (t) => {
  const squatted = await squat(t, api, mailbox(), DEPLOYMENT)
  const { email } = squatted
  const made = await bootstrapped(running)
  const holder = browserOf()
  const form = await holder.get(new URL(made.inviteUrl).pathname)
  const chosen = { name: 'Ada', email, password: 'the password of who held the invite' }
  t.is((await holder.submit(form, chosen)).status, 200)
  const path = pathIn(await mail.letterTo(email), '/auth/invites/letters/')
  const owner = browserOf()
  const page = await owner.get(path)
  t.true(page.html.includes('type="password"'), 'not the password of another browser')
  const accepted = await owner.submit(page, { password: NEW })
  t.is(accepted.location, await ownerHome(running, made.tenantId))
  await session(t, owner)
  t.is((await owner.submit(page, { password: SQUATTERS })).status, 410, 'once')
  await nothingIsLeft(t, api, squatted)
  for (const password of [SQUATTERS, chosen.password])
    t.is((await signIn(browserOf(), { ...made, email, password })).status, 200)
}

/** Under a reserved name the tenant gets a separate account. The squatter's account is not touched. */
const operatorInviteAtOnce: Attack = async (t) => {
  const email = `ada-${(count += 1)}@harbour.test`
  const { token } = await api.workspace()
  const json = { email, password: SQUATTERS }
  t.is((await api.call('POST', USERS, { token, json })).body['status'], 'pre_provisioned')
  const made = await bootstrapped(running)
  const holder = browserOf()
  const form = await holder.get(new URL(made.inviteUrl).pathname)
  const answer = await holder.submit(form, { email, password: NEW })
  t.is(answer.status, 303)
  const attack = await signIn(browserOf(), { ...made, email, password: SQUATTERS })
  t.is(attack.status, 200)
  await session(t, holder)
}

/** A guest proves the squatted address: the accounts stay apart, and the address leads to its own account. */
const guestClaims: Attack = async (t) => {
  const squatted = await squat(t, api, mailbox())
  await sql(running)`
    update tenants set settings = settings || '{"anonymous":{"enabled":true}}'
    where id = ${squatted.tenantId}`
  const browser = browserOf()
  const page = await browser.get(`/auth/login?tenant_slug=${squatted.tenantSlug}`)
  t.is((await browser.submit(page, {}, '/auth/login/guest')).status, 303)
  const form = await browser.get('/auth/account/email/new')
  const asked = await browser.submit(form, { email: squatted.email })
  const code = codeIn(await mail.letterTo(squatted.email, /[A-Z]{4}-[A-Z]{4}/))
  t.is((await browser.submit(asked, { code })).status, 409)
  t.is((await squatted.browser.get('/auth/account')).status, 200, 'nothing of the account changed')
  await nothingIsLeft(t, api, squatted, await PROOFS['reset']!(t, squatted))
}

const ATTACKS: Readonly<Record<string, Attack>> = {
  ...Object.fromEntries(
    Object.entries(PROOFS).map(([how, prove]): [string, Attack] => [
      how,
      async (t) => {
        const squatted = await squat(t, api, mailbox(), DEPLOYMENT)
        await nothingIsLeft(t, api, squatted, await prove(t, squatted))
      },
    ]),
  ),
  'a mail opened in another browser': letterElsewhere,
  'pre-provisioning by the owner of the domain': preProvisioned,
  'a passkey after the proof': lateKey,
  'recovery codes after the proof': lateCodes,
  'a password after the proof': latePassword,
  'a link to a provider after the proof': lateLink,
  'a phone number after the proof': latePhone,
  'an Ethereum account after the proof': lateWallet,
  'a guest claims the address': guestClaims,
  'a password for a fixture user': ownMailbox,
  'an operator invite': operatorInvite,
  'an immediate operator invite': operatorInviteAtOnce,
}

test('every place that adds a sign-in method or verifies an address has its attack', (t) => {
  const places = new Set(placesIn('actors'))
  t.deepEqual([...places].toSorted(), Object.keys(PLACES).toSorted())
  for (const attack of Object.values(PLACES).flat()) t.true(attack in ATTACKS, attack)
})

test('one statement marks an address as verified, and one function runs it', (t) => {
  const holding = (folder: string, pattern: RegExp) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name))
      .filter((path) => pattern.test(readFileSync(path, 'utf8')))
  t.deepEqual(holding('storage', /set[^;`]*email_verified\s*=\s*(?!\s)/), [
    'storage/identity/accounts.ts',
  ])
  const text = readFileSync('storage/identity/accounts.ts', 'utf8')
  t.is(text.match(/email_verified\s*=/g)?.length, 1)
  for (const folder of ['actors', 'runtime', 'gateway'])
    t.deepEqual(
      holding(folder, /\b(markMailboxProved|emptyUnprovedAccount)\b/),
      folder === 'actors' ? ['actors/platform/people/mailbox-proof.ts'] : [],
    )
  const proved = holding('actors', /emailVerified: true/)
  t.deepEqual(proved.toSorted(), [
    'actors/agents/workspaces/provision.ts',
    'actors/identity/users/fixtures.ts',
  ])
})

/** Pages that were opened before the proof have one guard. The short form submits two of them. */
const LONG_ONLY: readonly Attack[] = IS_LONG ? [] : [lateCodes, latePhone, lateWallet, lateLink]
for (const [how, attack] of Object.entries(ATTACKS).filter(([, one]) => !LONG_ONLY.includes(one)))
  test.serial(`a squatter keeps nothing: ${how}`, (t) => attack(t))
