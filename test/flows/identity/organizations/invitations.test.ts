/** Invitations of users and operators. What a tenant sees of an account before its user has signed in. docs/reference/identity.md, "Users of a tenant". */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { type TestBrowser, openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { sharedService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { bootstrapped, enrol, signIn } from '../../../support/identity/person.js'
import { ownerHome } from '../../../support/identity/owner.js'

const running = await sharedService('people')
const mail = await sharedMail()

const USERS = '/api/v1/tenant-users'
const NOTHING = { display_name: '', email_verified: false }

/** A service that sends invitations, and a browser to open them. */
async function inviting() {
  const api = apiOf(running)
  const browser = openBrowser(running)
  return { mail, running, api, browser, ada: `ada@${mailDomain()}` }
}

test('an invited user has no name until accepting', async (t) => {
  const { mail, running, api, browser, ada } = await inviting()
  const home = await api.workspace()
  await ownDomain(api, home, ada)
  const json = { email: ada, password: 'the password of ada', display_name: 'Ada Lovelace' }
  t.is((await api.call('POST', USERS, { token: home.token, json })).status, 201)
  await sql(running)`update accounts set email_verified = true where email = ${ada}`

  const { token } = await api.workspace()
  const made = await api.call('POST', USERS, { token, json: { email: ada } })
  t.like(made.body, { status: 'invited', ...NOTHING })
  const user = `${USERS}/${String(made.body['id'])}`
  t.like((await api.get(user, token)).body, NOTHING)
  const patch = (name: string | null) => api.patch(user, token, { display_name: name })
  t.is((await patch('Our Ada')).body['display_name'], 'Our Ada')
  t.like((await patch(null)).body, NOTHING)
  t.like((await api.post(`${user}/suspend`, token)).body, NOTHING)
  t.like((await api.post(`${user}/reactivate`, token)).body, { status: 'invited', ...NOTHING })
  const { rows } = await api.list(`${USERS}?status=invited`, token)
  t.deepEqual(
    rows.map(({ display_name: name }) => name),
    [''],
  )
  t.is((await api.delete(user, token)).status, 204)
  const removed = await api.list(`${USERS}?status=removed`, token)
  t.like(removed.rows[0]!, NOTHING)

  t.is((await api.call('POST', USERS, { token, json: { email: ada } })).status, 201)
  const path = pathIn(await mail.letterTo(ada, /(?:)/, 1), '/auth/invitations/')
  t.is((await browser.submit(await browser.get(path))).status, 303)
  const known = { status: 'active', display_name: 'Ada Lovelace', email_verified: true }
  t.like((await api.get(user, token)).body, known)
})

test('a typed name cannot change the direction of other text', async (t) => {
  const { mail, api, browser, ada } = await inviting()
  const { token } = await api.workspace()
  const made = await api.call('POST', USERS, { token, json: { email: ada } })
  const path = pathIn(await mail.letterTo(ada), '/auth/invitations/')
  const page = await browser.get(path)
  const name = ' \u202eAda\u2066 Lovelace\u2069\t'
  await browser.submit(page, { name, password: 'the password of ada' })
  const user = await api.get(`${USERS}/${String(made.body['id'])}`, token)
  t.like(user.body, { status: 'active', display_name: 'Ada Lovelace' })
})

// Invitations of addresses that already have an account, and withdrawn invitations.

const OLD = 'the old password of ada'
const NEW = 'the new password of ada'

async function harbour() {
  const ada = `ada@${mailDomain()}`
  const api = apiOf(running)
  const workspace = await api.workspace()
  const { token, body } = workspace
  await ownDomain(api, workspace, ada)
  const tenantSlug = String(body['tenant_slug'])
  return {
    mail,
    ada,
    api,
    token,
    tenantId: workspace.tenantId,
    database: running.db.database,
    browser() {
      const opened = openBrowser(running)
      return opened
    },
    create: (json: Record<string, string>) => api.call('POST', USERS, { token, json }),
    enter: (at: TestBrowser, password: string) => signIn(at, { tenantSlug, email: ada, password }),
  }
}

test.serial('accepting an invitation drops the sign-in methods a squatter set', async (t) => {
  const at = await harbour()
  // Anybody with a tenant can create an account for any address.
  await at.create({ email: at.ada, password: OLD })
  const squatter = at.browser()
  const account = await squatter.follow(await at.enter(squatter, OLD))
  const page = await squatter.follow(await squatter.submit(account, {}, '/auth/account/factors'))
  const { recoveryCodes } = await enrol(squatter, page)
  t.is(recoveryCodes.length, 10)

  const { token, body, tenantId } = await at.api.workspace()
  const made = await at.api.call('POST', USERS, { token, json: { email: at.ada } })
  t.is(made.body['status'], 'invited')
  const browser = at.browser()
  const invitation = await browser.get(pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/'))
  t.true(invitation.html.includes('type="password"'))
  t.is((await browser.submit(invitation, { password: NEW })).location, '/auth/account')

  t.is((await squatter.get('/auth/account')).status, 303, 'signed out')
  const tenantSlug = String(body['tenant_slug'])
  const old = await signIn(at.browser(), { tenantSlug, email: at.ada, password: OLD })
  t.is(old.status, 200, 'the old password')
  const mine = await signIn(at.browser(), { tenantSlug, email: at.ada, password: NEW })
  t.is(mine.location, '/auth/account', 'no second factor of the squatter')
  const rows = await sql<{ count: number }>(at.database)`
    select count(*)::int from (select account_id from totp_factors union all
    select account_id from recovery_codes) x join accounts a on a.id = account_id
    where email = ${at.ada}`
  t.deepEqual(rows, [{ count: 0 }])
  const [told] = await sql<{ tenant_id: string }>(at.database)`
    select tenant_id from audit_events where type = 'account.password.reset'
    and tenant_id = any(${[at.tenantId, tenantId]})`
  t.is(told?.tenant_id, tenantId)
})

test.serial('a second factor is also required after an invitation', async (t) => {
  const at = await harbour()
  await at.create({ email: at.ada, password: OLD })
  const first = at.browser()
  const account = await first.follow(await at.enter(first, OLD))
  const page = await first.follow(await first.submit(account, {}, '/auth/account/factors'))
  await enrol(first, page)
  // An account created by a federated sign-in has no password.
  await sql(at.database)`
    update accounts set email_verified = true, password_hash = null where email = ${at.ada}`
  const { token, tenantId } = await at.api.workspace()
  await at.api.call('POST', USERS, { token, json: { email: at.ada } })
  const browser = at.browser()
  const invitation = await browser.get(pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/'))
  const accepted = await browser.submit(invitation, { password: NEW })
  t.is(accepted.location, `/auth/login?tenant_id=${tenantId}`)
  t.is((await browser.get('/auth/account')).status, 303)
})

test.serial('a withdrawn invitation has no effect', async (t) => {
  const at = await harbour()
  const made = await at.create({ email: at.ada })
  const first = pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/')
  const browser = at.browser()
  const page = await browser.get(first)
  const user = `${USERS}/${String(made.body['id'])}`
  t.is((await at.api.delete(user, at.token)).status, 204)
  t.is((await browser.get(first)).status, 410)
  t.is((await browser.submit(page, { password: OLD })).status, 410)
  t.deepEqual(await sql(at.database)`select password_hash from accounts where email = ${at.ada}`, [
    { password_hash: null },
  ])

  t.is((await at.create({ email: at.ada })).body['status'], 'invited')
  const second = pathIn(await at.mail.letterTo(at.ada, /(?:)/, 1), '/auth/invitations/')
  t.is((await browser.get(first)).status, 410, 'the previous mail')
  t.is((await at.api.post(`${user}/suspend`, at.token)).status, 200)
  t.is((await browser.get(second)).status, 410, 'suspended')
  t.is((await browser.submit(page, { password: OLD }, /invitations/)).status, 410)
})

// Operator invites reveal nothing about accounts: the response is always the same, and the mail contains the rest.

/** A sandbox asks for no mail from a reserved domain. */
const DOMAIN = mailDomain()
const PASSWORD = 'a password of the harbour master'

const browserOf = () => openBrowser(running)

async function invited() {
  const made = await bootstrapped(running)
  const browser = browserOf()
  const form = await browser.get(new URL(made.inviteUrl).pathname)
  const give = (email: string) => browser.submit(form, { name: 'Ada', email, password: PASSWORD })
  const letter = async (email: string, skip = 0) =>
    pathIn(await mail.letterTo(email, /(?:)/, skip), '/auth/invites/letters/')
  return { ...made, browser, give, letter }
}

const membersOf = (tenantId: string, email: string) =>
  sql(running)`
    select u.status, u.roles, a.email_verified as proved,
    (select m.role from organization_members m join tenants t on t.id = u.tenant_id
    where m.member_id = a.id and m.organization_id = t.organization_id) as role
    from tenant_users u join accounts a on a.id = u.account_id
    where u.tenant_id = ${tenantId} and a.email = ${email}`

const OWNER = { status: 'active', roles: ['owner'], proved: true, role: 'owner' }

test.serial(
  'a new address becomes the owner by its mail, in the browser that chose the password',
  async (t) => {
    const at = await invited()
    const email = `grace@${DOMAIN}`
    const sent = await at.give(email)
    t.is(sent.status, 200)
    t.true(sent.html.includes(`We sent an email to ${email}`))
    t.is((await at.browser.get('/auth/account')).status, 303, 'not signed in yet')
    t.deepEqual(await sql(running)`select from accounts where email = ${email}`, [])
    const page = await at.browser.get(await at.letter(email))
    t.false(page.html.includes('type="password"'), 'chosen already')
    t.is((await at.browser.submit(page)).location, await ownerHome(running, at.tenantId))
    t.is((await at.browser.get('/auth/account')).status, 200)
    t.deepEqual(await membersOf(at.tenantId, email), [OWNER])
    t.is((await at.browser.submit(page, { password: OLD })).status, 410)
    t.is((await at.give(`other@${DOMAIN}`)).status, 410)
    t.is(
      (await signIn(browserOf(), { ...at, email, password: PASSWORD })).location,
      '/auth/account',
    )
    const [row] = await sql(running)`
      select letters from operator_invites where tenant_id = ${at.tenantId}`
    t.deepEqual(row, { letters: {} }, 'the stored messages are removed')
  },
)

test.serial(
  'an address with an account gets the same response, and keeps its password',
  async (t) => {
    const [first, second] = [await invited(), await invited()]
    const email = `linus@${DOMAIN}`
    await first.give(email)
    const page = await first.browser.get(await first.letter(email))
    t.is((await first.browser.submit(page)).location, await ownerHome(running, first.tenantId))

    const known = await second.give(email)
    const stranger = `unknown@${DOMAIN}`
    const unknown = await second.give(stranger)
    t.is(known.status, unknown.status)
    t.is(known.html.replaceAll(email, stranger), unknown.html)
    const there = await second.browser.get(await second.letter(email, 1))
    t.false(there.html.includes('type="password"'))
    t.true(there.html.includes('You already have an account'))
    const accepted = await second.browser.submit(there, { password: 'another password of linus' })
    const home = await ownerHome(running, second.tenantId)
    const login = new URLSearchParams({ tenant_id: second.tenantId })
    if (home !== '/auth/account') login.set('return_to', home)
    t.is(accepted.location, `/auth/login?${login}`)
    t.deepEqual(await membersOf(second.tenantId, email), [OWNER])
    const done = await signIn(browserOf(), { ...second, email, password: PASSWORD })
    t.is(done.location, '/auth/account')
  },
)

test.serial('an invite accepts five addresses, each repeatedly, and no sixth', async (t) => {
  const at = await invited()
  const emails = Array.from({ length: 7 }, (_, n) => `person-${n}@${DOMAIN}`)
  const answers = await Promise.all(emails.map((email) => at.give(email)))
  t.is(answers.filter(({ status }) => status === 200).length, 5)
  t.is(answers.filter(({ status }) => status === 410).length, 2)
  const taken = emails.filter((_, n) => answers[n]!.status === 200)
  t.is((await at.give(taken[0]!.toUpperCase())).status, 200)
  t.is((await at.give(`sixth@${DOMAIN}`)).status, 410)
  // The first mail to an address becomes invalid with the second one. The others stay valid.
  t.is((await at.browser.get(await at.letter(taken[0]!))).status, 410)
  const pages = await Promise.all(
    taken.slice(1).map(async (email) => at.browser.get(await at.letter(email))),
  )
  const accepted = await Promise.all(pages.map((page) => at.browser.submit(page)))
  t.is(
    accepted.filter(({ status }) => status === 303).length,
    1,
    'one of them becomes the operator',
  )
  t.is(accepted.filter(({ status }) => status === 410).length, 3)
})

test.serial('a forged link is refused', async (t) => {
  const at = await invited()
  await at.give(`link@${DOMAIN}`)
  const path = await at.letter(`link@${DOMAIN}`)
  for (const wrong of [`${path}x`, path.replace(/\..*/, '.x'), '/auth/invites/letters/x'])
    t.is((await at.browser.get(wrong)).status, 410, wrong)
  t.is((await at.browser.get(path)).status, 200)
})

test.serial('an invite does not reactivate a suspended user', async (t) => {
  const at = await invited()
  const email = `sue@${DOMAIN}`
  await at.give(email)
  const path = await at.letter(email)
  await sql(
    running,
    `insert into accounts (id, email, email_key, email_verified, created_at, updated_at)
     values (gen_random_uuid(), $1, $1, true, now(), now())`,
    [email],
  )
  await sql(running)`
    insert into tenant_users (tenant_id, id, account_id, sub, status, suspended_from, created_at,
    updated_at)
    select ${at.tenantId}, gen_random_uuid(), id, 'sue', 'suspended', 'active', now(), now()
    from accounts where email = ${email}`
  const page = await at.browser.get(path)
  t.is((await at.browser.submit(page, { password: PASSWORD })).status, 410)
  t.like((await membersOf(at.tenantId, email))[0], { status: 'suspended' })
})
