/** Mail domains in letters and in A-labels are one domain everywhere. docs/reference/identity.md */
import { createHash } from 'node:crypto'
import { domainToASCII } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import type { Client } from 'pg'
import { convertMailDomains } from '../../../migrations/mail-domains.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { apiOf, type Json } from '../../support/api.js'
import { mailDomain } from '../../support/identity/addresses.js'
import { openDirectory } from '../../support/identity/directory.js'
import { signIn } from '../../support/identity/person.js'
import { ownDomain } from '../../support/identity/squatting.js'
import { codeIn, pathIn, sharedMail } from '../../support/operations/letters.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const USERS = '/api/v1/tenant-users'
const PASSWORD = 'seven boats left at noon'

/** An address that no other test has, in each spelling. */
function address(name = 'ada') {
  const letters = `bücher-${mailDomain()}`
  const ascii = `${name}@${domainToASCII(letters)}`
  return { ascii, letters: `${name}@${letters}`, capitals: `${name}@${letters.toUpperCase()}` }
}

async function stage(t: ExecutionContext, profile: 'people' | 'enterprise' = 'people') {
  const running = await sharedService(profile)
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  const tenantSlug = String(workspace.body['tenant_slug'])
  const { token } = workspace
  const db = running.db.database
  return {
    api,
    workspace,
    tenantSlug,
    token,
    db,
    mail: await sharedMail(),
    browser: () => openBrowser(running),
    make: (json: Json) => api.call('POST', USERS, { token, json }),
    accounts: (ascii: string, letters: string) =>
      sql<{ email: string }>(db, 'select email from accounts where lower(email) in ($1, $2)', [
        ascii,
        letters,
      ]),
    emails: async (query: string) =>
      (await api.list(`${USERS}?${query}`, token)).rows.map((row) => row['email']),
  }
}

test.serial('a person signs up and in with either spelling, and has one account', async (t) => {
  const at = await stage(t)
  const { ascii, letters, capitals } = address()
  const browser = at.browser()
  const start = `/auth/register?tenant_slug=${at.tenantSlug}`
  const sent = await browser.submit(await browser.get(start), { email: capitals })
  t.true(sent.html.includes(letters), sent.html)
  // The mail server of the tests shows the domain of a recipient in letters. It got A-labels.
  const letter = await at.mail.letterTo(letters, /\/auth\/register\//)
  t.is(letter.headers['to'], ascii)
  const finish = await browser.get(pathIn(letter, '/auth/register/'))
  t.true(finish.html.includes(letters), 'a page shows letters')
  t.is((await browser.submit(finish, { password: PASSWORD })).status, 303)
  t.deepEqual(await at.emails(`email=${encodeURIComponent(letters)}`), [ascii])
  t.deepEqual(await at.emails(`q=${encodeURIComponent(letters)}`), [ascii])

  const again = at.browser()
  await again.submit(await again.get(start), { email: ascii })
  await at.mail.letterTo(letters, /\/auth\/login\?/)
  for (const email of [ascii, letters, capitals]) {
    const one = at.browser()
    const { location } = await signIn(one, { ...at, email, password: PASSWORD })
    t.is(location, '/auth/account', email)
    const account = await one.get('/auth/account')
    t.true(account.html.includes(letters) && !account.html.includes(ascii))
  }
  t.deepEqual(await at.accounts(ascii, letters), [{ email: ascii }])
})

test.serial('codes and links by mail go to the account of either spelling', async (t) => {
  const at = await stage(t)
  const { ascii, letters } = address()
  await ownDomain(at.api, at.workspace, ascii)
  const made = await at.make({ email: letters, password: PASSWORD })
  t.like(
    made.body,
    { email: ascii, status: 'pre_provisioned' },
    'the verified domain is its domain',
  )
  t.is((await at.make({ email: ascii, password: PASSWORD })).status, 409)

  const browser = at.browser()
  const login = await browser.get(
    `/auth/login?tenant_slug=${at.tenantSlug}&return_to=/auth/account`,
  )
  const { fields } = login.forms[0]!
  const forgot = await browser.get(`/auth/password/forgot?flow=${fields['flow']}`)
  t.is((await browser.submit(forgot, { email: letters })).status, 200)
  const reset = pathIn(
    await at.mail.letterTo(letters, /\/auth\/password\/reset\//),
    '/auth/password/',
  )
  t.true((await browser.get(reset)).html.includes(letters))
  const asked = await browser.post('/auth/login/mail', { ...fields, email: letters })
  const waiting = await browser.follow(asked)
  const code = codeIn(await at.mail.letterTo(letters, /[A-Z]{4}-[A-Z]{4}/))
  const done = await browser.submit(waiting, { code }, '/auth/login/code')
  t.is(done.location, '/auth/account', done.html)
})

test.serial('a guest does not get the address of an account by its other spelling', async (t) => {
  const at = await stage(t)
  const { ascii, letters } = address()
  const json = { anonymous: { enabled: true } }
  await at.api.call('PATCH', '/api/v1/tenant/settings', { token: at.token, json })
  t.is((await at.make({ email: ascii })).status, 201)
  const browser = at.browser()
  const login = await browser.get(
    `/auth/login?tenant_slug=${at.tenantSlug}&return_to=/auth/account`,
  )
  await browser.follow(await browser.submit(login, {}, '/auth/login/guest'))
  const form = await browser.get('/auth/account/email/new')
  const asked = await browser.submit(form, { email: letters })
  const page = asked.status === 303 ? await browser.follow(asked) : asked
  const code = codeIn(await at.mail.letterTo(letters, /[A-Z]{4}-[A-Z]{4}/))
  await browser.submit(page, { code }, '/auth/account/email/code')
  t.deepEqual(await at.accounts(ascii, letters), [{ email: ascii }])
  const [guest] = await sql<{ n: number }>(
    at.db,
    `select count(*)::int as n from accounts a join tenant_users u on u.account_id = a.id
     where u.tenant_id = $1 and a.guest_since is not null`,
    [at.workspace.tenantId],
  )
  t.is(guest!.n, 1)
})

test.serial('a member of an organization is invited once', async (t) => {
  const at = await stage(t)
  const { ascii, letters } = address()
  const { organizationId, operator } = at.workspace
  const path = `/api/v1/organizations/${organizationId}/members`
  const invite = (email: string) => at.api.post(path, operator, { email, role: 'member' })
  const first = await invite(letters)
  t.is(first.status, 201, JSON.stringify(first.body))
  t.is(first.body['email'], ascii)
  t.is((await invite(ascii)).status, 409)
})

test.serial('a directory finds a user by either spelling of name and address', async (t) => {
  const at = await stage(t, 'enterprise')
  const { ascii, letters, capitals } = address()
  const directory = await openDirectory(at.api, {}, at.workspace)
  const emails = [{ value: capitals, type: 'work', primary: true }]
  const made = await directory.create(letters, { emails })
  t.like(made, { userName: ascii, emails: [{ value: ascii, type: 'work', primary: true }] })
  for (const spelling of [ascii, letters, capitals])
    for (const filter of [
      `userName eq "${spelling}"`,
      `emails.value eq "${spelling}"`,
      `emails[type eq "work" and value eq "${spelling}"]`,
      `userName eq "${spelling}" and displayName ne "${spelling}"`,
    ])
      t.deepEqual(await directory.names(filter), [ascii], filter)
  const other = await directory.send('POST', '/Users', {
    schemas: made['schemas'],
    userName: ascii,
  })
  t.is(other.status, 409)
  const path = `emails[value eq "${letters}"].display`
  const patched = await directory.patch(made['id'], { op: 'replace', path, value: 'Work' })
  t.is(patched.status, 200, JSON.stringify(patched.body))
  t.like(patched.body, { emails: [{ value: ascii, display: 'Work' }] })
  t.deepEqual(await at.emails(`email=${encodeURIComponent(letters)}`), [ascii])
})

test.serial('domains that look alike are two accounts', async (t) => {
  const at = await stage(t)
  const domain = mailDomain()
  const [latin, cyrillic] = [`ada@apple-${domain}`, `ada@аpple-${domain}`]
  const made = await Promise.all([at.make({ email: latin }), at.make({ email: cyrillic })])
  t.deepEqual(
    made.map(({ status, body }) => [status, body['email']]),
    [
      [201, latin],
      [201, `ada@${domainToASCII(`аpple-${domain}`)}`],
    ],
  )
})

for (const email of [
  'ada@bücher..works',
  'ada@xn--zzzzzz.works',
  'jörg@bücher.works',
  'ada@☕.works',
])
  test.serial(`${email} is refused everywhere`, async (t) => {
    const at = await stage(t, 'enterprise')
    t.is((await at.make({ email })).status, 400)
    const { organizationId, operator } = at.workspace
    const path = `/api/v1/organizations/${organizationId}/members`
    t.is((await at.api.post(path, operator, { email, role: 'member' })).status, 400)
    const directory = await openDirectory(at.api, {}, at.workspace)
    const json = { schemas: [], userName: 'ada', emails: [{ value: email, primary: true }] }
    t.is((await directory.send('POST', '/Users', json)).status, 400)
  })

/** Addresses as an earlier release stored them. */
async function asBefore(at: Awaited<ReturnType<typeof stage>>, ascii: string, letters: string) {
  await sql(at.db, 'update accounts set email = $2, email_key = lower($2) where email = $1', [
    ascii,
    letters,
  ])
}

async function convert({ db }: Awaited<ReturnType<typeof stage>>) {
  const query = async (text: string, values: readonly unknown[] = []) => {
    if (text.startsWith('set ')) return undefined
    const name = `test.${createHash('sha1').update(text).digest('hex')}`
    return db.system((tx) => tx.query({ name, text, values }))
  }
  await convertMailDomains({ query } as unknown as Client, silentLogger)
}

test.serial('an earlier account keeps its password, whichever spelling is typed', async (t) => {
  const at = await stage(t)
  const { ascii, letters } = address()
  await ownDomain(at.api, at.workspace, ascii)
  t.is((await at.make({ email: ascii, password: PASSWORD })).status, 201)
  await asBefore(at, ascii, letters)
  await convert(at)
  t.deepEqual(await at.accounts(ascii, letters), [{ email: ascii }])
  for (const email of [ascii, letters]) {
    const done = await signIn(at.browser(), { ...at, email, password: PASSWORD })
    t.is(done.location, '/auth/account', email)
  }
  await convert(at)
  t.deepEqual(await at.accounts(ascii, letters), [{ email: ascii }], 'a second run changes nothing')
})

test.serial('two earlier accounts that become equal stay two, each in its tenant', async (t) => {
  const [one, other] = [await stage(t), await stage(t)]
  const { ascii, letters } = address()
  await ownDomain(one.api, one.workspace, ascii)
  t.is((await one.make({ email: ascii, password: PASSWORD })).status, 201)
  await asBefore(one, ascii, letters)
  await sql(one.db, 'delete from verified_domains where tenant_id = $1', [one.workspace.tenantId])
  await sql(one.db, 'delete from domain_owners where domain = $1', [ascii.slice(4)])
  await ownDomain(other.api, other.workspace, ascii)
  const theirs = 'eleven boats came back at night'
  t.is((await other.make({ email: ascii, password: theirs })).status, 201)
  await convert(one)
  const keys = await sql<{ key: string; typed: string | null }>(
    one.db,
    'select email_key as key, typed_email as typed from accounts where email = $1 order by email_key',
    [ascii],
  )
  t.deepEqual(keys, [
    { key: ascii, typed: null },
    { key: `${ascii}/${one.workspace.tenantId}`, typed: letters },
  ])
  for (const email of [ascii, letters])
    for (const [at, password] of [
      [one, PASSWORD],
      [other, theirs],
    ] as const) {
      t.is((await signIn(at.browser(), { ...at, email, password })).location, '/auth/account')
      const wrong = password === theirs ? PASSWORD : theirs
      t.is((await signIn(at.browser(), { ...at, email, password: wrong })).status, 200)
    }
})
