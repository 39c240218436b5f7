/** Forms that use a link or an invite up, and that a browser sends again: a double click, or Back and again. */
import { createHash } from 'node:crypto'
import test from 'ava'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { mailbox, mailDomain } from '../../../support/identity/addresses.js'
import { bootstrapped, enrolledBrowser, SESSION_COOKIE } from '../../../support/identity/person.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { sharedApi } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const USERS = '/api/v1/tenant-users'
const PASSWORD = 'a password of the harbour master'
const mail = await sharedMail()
const { api, running } = await sharedApi('people')
const strangerSession = bootstrapped(running)
  .then((person) => enrolledBrowser(running, person))
  .then(({ browser }) => browser.cookies.get(SESSION_COOKIE)!)

type Sent = {
  readonly tenantId: string
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
}

async function workspaceOf() {
  const workspace = await api.workspace()
  const email = `ada@${mailDomain()}`
  const { token, tenantId, body } = workspace
  const create = async (json: Record<string, string> = {}) => {
    await ownDomain(api, workspace, email)
    await api.call('POST', USERS, { token, json: { email, ...json } }).gives(201)
  }
  const query = `tenant_slug=${String(body['tenant_slug'])}`
  const link = async (start: string) => pathIn(await mail.letterTo(email), start)
  return { tenantId, email, create, query, link }
}

const FORMS: Readonly<Record<string, (browser: TestBrowser) => Promise<Sent>>> = {
  async 'an operator invite'() {
    const { tenantId, tenantSlug, inviteUrl } = await bootstrapped(running)
    const fields = { name: 'Ada', email: mailbox(`ada-${tenantSlug}`), password: PASSWORD }
    return { tenantId, path: new URL(inviteUrl).pathname, fields }
  },
  async 'an operator invite by mail'() {
    const { tenantId, inviteUrl } = await bootstrapped(running)
    const email = `ada@${mailDomain()}`
    const holder = openBrowser(running)
    const form = await holder.get(new URL(inviteUrl).pathname)
    await holder.submit(form, { name: 'Ada', email, password: PASSWORD }).gives(200)
    const path = pathIn(await mail.letterTo(email), '/auth/invites/letters/')
    return { tenantId, path, fields: { password: PASSWORD } }
  },
  async 'an invitation'() {
    const { tenantId, create, link } = await workspaceOf()
    await create()
    const path = await link('/auth/invitations/')
    return { tenantId, path, fields: { name: 'Ada', password: PASSWORD } }
  },
  async 'a new password'(browser) {
    const { tenantId, email, create, query, link } = await workspaceOf()
    await create({ password: 'the password before this one' })
    await browser.submit(await browser.get(`/auth/password/forgot?${query}`), { email })
    return { tenantId, path: await link('/auth/password/reset/'), fields: { password: PASSWORD } }
  },
  async 'a sign-up'(browser) {
    const { tenantId, email, query, link } = await workspaceOf()
    await browser.submit(await browser.get(`/auth/register?${query}`), { email })
    const path = await link('/auth/register/')
    return { tenantId, path, fields: { name: 'Ada', password: PASSWORD } }
  },
}

for (const [form, prepare] of Object.entries(FORMS))
  test(`${form} that is sent again gets the first answer`, async (t) => {
    const [browser, other] = [openBrowser(running), openBrowser(running)]
    const { tenantId, path, fields } = await prepare(browser)
    const pages = [await browser.get(path), await other.get(path)] as const
    const send = async (more: Sent['fields'] = {}, at: 0 | 1 = 0) => {
      const answer = await [browser, other][at]!.submit(pages[at], { ...fields, ...more })
      const { status, location } = answer
      return { status, location, session: browser.cookies.get(SESSION_COOKIE) }
    }
    const clicks = await Promise.all([send(), send(), send()])
    const first = await send()
    t.true(first.status < 400)
    for (const click of clicks) t.like(click, { status: first.status, location: first.location })
    t.deepEqual(await send(), first)
    const [sessions] = await sql<{ count: number }>(running)`
      select count(*)::int from browser_sessions where tenant_id = ${tenantId}`
    t.is(sessions!.count, first.session === undefined ? 0 : 1, 'it had its effect once')
    t.is((await send({ password: `${PASSWORD}!` })).status, 410, 'another form')
    t.is((await send({}, 1)).status, 410, 'another browser')
    t.is((await browser.get(path)).status, 410, 'the page')
    const stranger = await strangerSession
    browser.cookies.set(SESSION_COOKIE, stranger)
    t.like(await send(), { status: 410, session: stranger }, 'another user has signed in since')
    if (first.session === undefined) browser.cookies.delete(SESSION_COOKIE)
    else browser.cookies.set(SESSION_COOKIE, first.session)
    t.deepEqual(await send(), first)
    await sql(running)`
      update form_answers set expires_at = expires_at - interval '61 seconds'
      where tenant_id = ${tenantId}`
    t.is((await send()).status, 410, 'after a minute')
  })

test('a form that is sent again after signing out opens no session', async (t) => {
  const browser = openBrowser(running)
  const { path, fields } = await FORMS['an operator invite']!(browser)
  const page = await browser.get(path)
  const signsIn = async () => (await browser.submit(page, fields)).status
  t.is(await signsIn(), 303)
  t.is(await signsIn(), 303)
  const token = browser.cookies.get(SESSION_COOKIE)!
  const hash = createHash('sha256').update(token).digest()
  await sql(running)`
    update browser_sessions set ended_at = now(), ended_reason = 'logout'
    where token_sha256 = ${hash}`
  browser.cookies.delete(SESSION_COOKIE)
  t.is(await signsIn(), 410)
})

test('a link of an account that stays leads to the sign-in again', async (t) => {
  const at = await workspaceOf()
  await at.create({ password: PASSWORD })
  await sql(running)`update accounts set email_verified = true where email = ${at.email}`
  const { token, tenantId } = await api.workspace()
  await api.call('POST', USERS, { token, json: { email: at.email } }).gives(201)
  const browser = openBrowser(running)
  const page = await browser.get(await at.link('/auth/invitations/'))
  for (const _ of [1, 2])
    t.is((await browser.submit(page)).location, `/auth/login?tenant_id=${tenantId}`)
})
