/** Operator invites reveal nothing about accounts: the response is always the same, and the mail contains the rest. */
import test, { type ExecutionContext } from 'ava'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { ownerHome } from '../../../support/identity/owner.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'

/** A sandbox asks for no mail from a reserved domain. */
const DOMAIN = mailDomain()
const PASSWORD = 'a password of the harbour master'
const running = await sharedService('people')
const mail = await sharedMail()
const db = running.db.database
test.after.always(async () => {
  await running.end()
})

function browserOf(t: ExecutionContext): TestBrowser {
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  return browser
}

async function invited(t: ExecutionContext) {
  const made = await bootstrapped(running)
  const browser = browserOf(t)
  const form = await browser.get(new URL(made.inviteUrl).pathname)
  const give = (email: string) => browser.submit(form, { name: 'Ada', email, password: PASSWORD })
  const letter = async (email: string, skip = 0) =>
    pathIn(await mail.letterTo(email, /(?:)/, skip), '/auth/invites/letters/')
  return { ...made, browser, give, letter }
}

const membersOf = (tenantId: string, email: string) =>
  sql(
    db,
    `select u.status, u.roles, a.email_verified as proved,
       (select m.role from organization_members m join tenants t on t.id = u.tenant_id
         where m.member_id = a.id and m.organization_id = t.organization_id) as role
     from tenant_users u join accounts a on a.id = u.account_id
     where u.tenant_id = $1 and a.email = $2`,
    [tenantId, email],
  )

const OWNER = { status: 'active', roles: ['owner'], proved: true, role: 'owner' }

test.serial(
  'a new address becomes the owner by its mail, in the browser that chose the password',
  async (t) => {
    const at = await invited(t)
    const email = `grace@${DOMAIN}`
    const sent = await at.give(email)
    t.is(sent.status, 200)
    t.true(sent.html.includes(`We sent an email to ${email}`))
    t.is((await at.browser.get('/auth/account')).status, 303, 'not signed in yet')
    t.deepEqual(await sql(db, 'select from accounts where email = $1', [email]), [])
    const page = await at.browser.get(await at.letter(email))
    t.false(page.html.includes('type="password"'), 'chosen already')
    t.is((await at.browser.submit(page)).location, await ownerHome(running, at.tenantId))
    t.is((await at.browser.get('/auth/account')).status, 200)
    t.deepEqual(await membersOf(at.tenantId, email), [OWNER])
    t.is((await at.browser.submit(page)).status, 410)
    t.is((await at.give(`other@${DOMAIN}`)).status, 410)
    t.is(
      (await signIn(browserOf(t), { ...at, email, password: PASSWORD })).location,
      '/auth/account',
    )
    const [row] = await sql(db, 'select letters from operator_invites where tenant_id = $1', [
      at.tenantId,
    ])
    t.deepEqual(row, { letters: {} }, 'the stored messages are removed')
  },
)

test.serial(
  'an address with an account gets the same response, and keeps its password',
  async (t) => {
    const [first, second] = [await invited(t), await invited(t)]
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
    const done = await signIn(browserOf(t), { ...second, email, password: PASSWORD })
    t.is(done.location, '/auth/account')
  },
)

test.serial('an invite accepts five addresses, each repeatedly, and no sixth', async (t) => {
  const at = await invited(t)
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
  const at = await invited(t)
  await at.give(`link@${DOMAIN}`)
  const path = await at.letter(`link@${DOMAIN}`)
  for (const wrong of [`${path}x`, path.replace(/\..*/, '.x'), '/auth/invites/letters/x'])
    t.is((await at.browser.get(wrong)).status, 410, wrong)
  t.is((await at.browser.get(path)).status, 200)
})

test.serial('an invite does not reactivate a suspended user', async (t) => {
  const at = await invited(t)
  const email = `sue@${DOMAIN}`
  await at.give(email)
  const path = await at.letter(email)
  await sql(
    db,
    `insert into accounts (id, email, email_key, email_verified, created_at, updated_at)
     values (gen_random_uuid(), $1, $1, true, now(), now())`,
    [email],
  )
  await sql(
    db,
    `insert into tenant_users (tenant_id, id, account_id, sub, status, suspended_from, created_at,
       updated_at)
     select $1, gen_random_uuid(), id, 'sue', 'suspended', 'active', now(), now()
     from accounts where email = $2`,
    [at.tenantId, email],
  )
  const page = await at.browser.get(path)
  t.is((await at.browser.submit(page, { password: PASSWORD })).status, 410)
  t.like((await membersOf(at.tenantId, email))[0], { status: 'suspended' })
})
