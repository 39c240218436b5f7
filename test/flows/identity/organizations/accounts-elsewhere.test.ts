/** A tenant does not learn whether an address has an account elsewhere. docs/reference/identity.md, "Accounts and tenant users". */
import test, { type ExecutionContext } from 'ava'
import type { Json } from '../../../support/api.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('people')

const USERS = '/api/v1/tenant-users'
const PASSWORD = 'the password of this tenant'

/** What differs between any two users. */
function alike(body: Json): Json {
  const { id, sub, email, created_at: created, updated_at: updated, ...rest } = body
  return { ...rest, hasAll: [id, sub, email, created, updated].every(Boolean) }
}

async function add(token: string, email: string, password: string | null = PASSWORD) {
  const json = password === null ? { email } : { email, password }
  const made = await api.call('POST', USERS, { token, json })
  const id = String(made.body['id'])
  const events = await sql<{ type: string }>(running)`
    select type from all_events where data #>> '{resource,id}' = ${id} order by sequence`
  const { body: read } = await api.get(`${USERS}/${id}`, token)
  return { status: made.status, made: alike(made.body), read: alike(read), events, id }
}

/** Compares everything but the id. */
function same(t: ExecutionContext, one: { id: string }, other: { id: string }) {
  t.deepEqual({ ...one, id: '' }, { ...other, id: '' })
}

const own = (tenantSlug: string, email: string, password = PASSWORD) => {
  const browser = openBrowser(running)
  return signIn(browser, { tenantSlug, email, password }).finally(() => browser.close())
}

test('a sandbox gets a separate account for a reserved name that another one used first', async (t) => {
  const [one, two] = [await api.workspace(), await api.workspace()]
  const email = `Ada.${one.tenantId}@example.com`
  const first = await add(one.token, email, 'the password of one')
  const second = await add(two.token, email)
  const fresh = await add(two.token, `new.${one.tenantId}@example.com`)
  t.is(second.made['status'], 'pre_provisioned')
  same(t, second, fresh)
  t.deepEqual(first.events, second.events)

  const slugs = [String(one.body['tenant_slug']), String(two.body['tenant_slug'])] as const
  t.is((await own(slugs[1], email.toLowerCase())).status, 303)
  t.is((await own(slugs[1], email, 'the password of one')).status, 200)
  t.is((await own(slugs[0], email, 'the password of one')).status, 303)
  t.is((await own(slugs[0], email)).status, 200)

  const found = await api.list(`${USERS}?email=${encodeURIComponent(email)}`, two.token)
  t.deepEqual(
    found.rows.map((user) => [user['id'], user['email'], user['status']]),
    [[second.id, email, 'active']],
  )
  t.is((await api.call('POST', USERS, { token: two.token, json: { email } })).status, 409)
})

test('of ten concurrent requests of two sandboxes for a reserved name, one of each succeeds', async (t) => {
  const both = [await api.workspace(), await api.workspace()]
  const email = `crowd.${both[0]!.tenantId}@example.net`
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      api.call('POST', USERS, { token: both[n % 2]!.token, json: { email, password: PASSWORD } }),
    ),
  )
  const statuses = answers.map(({ status }) => status).toSorted()
  t.deepEqual(statuses, [201, 201, ...Array.from({ length: 8 }, () => 409)])
  const of = (n: number) => answers.filter(({ status }, at) => status === 201 && at % 2 === n)
  t.deepEqual([of(0).length, of(1).length], [1, 1])
})

test('the owner of a domain gets the same answer for an address with an account', async (t) => {
  const domain = mailDomain()
  const [one, two] = [await api.workspace(), await api.workspace()]
  const email = `ada@${domain}`
  await ownDomain(api, one, email)
  const json = { email, password: 'the password of ada', display_name: 'Ada Lovelace' }
  t.is(
    (await api.call('POST', USERS, { token: one.token, json })).body['status'],
    'pre_provisioned',
  )
  await sql(running)`
    update accounts set email_verified = true, picture = 'https://a.example/a'
    where email = ${email}`
  await sql(running)`delete from verified_domains where tenant_id = ${one.tenantId}`
  await sql(running)`delete from domain_owners where domain = ${domain}`
  await ownDomain(api, two, email)

  const known = await add(two.token, email)
  const fresh = await add(two.token, `bob@${domain}`)
  t.is(known.made['status'], 'pre_provisioned')
  same(t, known, fresh)
  const slug = String(two.body['tenant_slug'])
  t.is((await own(slug, email)).status, 200, 'the password of the person stays')
  t.is((await own(slug, email, 'the password of ada')).status, 303)
  const { body } = await api.get(`${USERS}/${known.id}`, two.token)
  t.like(body, { status: 'active', display_name: 'Ada Lovelace', email_verified: true })
})

test('an invited user with an account that the operator suspended looks like any other', async (t) => {
  const [one, two] = [await api.workspace(), await api.workspace()]
  const email = `eve@${mailDomain()}`
  await add(one.token, email, null)
  await sql(running)`update accounts set status = 'suspended' where email = ${email}`
  const known = await add(two.token, email, null)
  const fresh = await add(two.token, `bob@${mailDomain()}`, null)
  t.is(known.made['status'], 'invited')
  same(t, known, fresh)
  for (const { id } of [known, fresh]) {
    const path = `${USERS}/${id}`
    t.is((await api.post(`${path}/suspend`, two.token)).body['status'], 'suspended')
    const back = await api.post(`${path}/reactivate`, two.token)
    t.like(back, { status: 200, body: { status: 'invited' } })
  }
})

test('an operator invite of a reserved name signs in, with or without an account elsewhere', async (t) => {
  const home = await api.workspace()
  const email = `owner.${home.tenantId}@example.org`
  await add(home.token, email, 'the password of another')
  const accept = async (typed: string) => {
    const browser = openBrowser(running)
    const { inviteUrl, tenantSlug } = await bootstrapped(running)
    const page = await browser.get(new URL(inviteUrl).pathname)
    const answer = await browser.submit(page, { email: typed, password: PASSWORD })
    return { answer, tenantSlug, at: (await browser.get('/auth/account')).status }
  }
  const [taken, free] = [await accept(email), await accept(`free.${email}`)]
  const seen = ({ answer: { status }, at }: typeof taken) => ({ status, at })
  t.deepEqual(seen(taken), { status: 303, at: 200 })
  t.deepEqual(seen(taken), seen(free))
  t.is((await own(taken.tenantSlug, email)).status, 303)
  t.is((await own(taken.tenantSlug, email, 'the password of another')).status, 200)
})
