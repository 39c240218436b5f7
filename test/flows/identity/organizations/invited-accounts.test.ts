/** Invitations of addresses that already have an account, and withdrawn invitations. */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { enrol, signIn } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'

const USERS = '/api/v1/tenant-users'
const OLD = 'the old password of ada'
const NEW = 'the new password of ada'

async function harbour(t: ExecutionContext) {
  const [running, mail] = [await sharedService('people'), await sharedMail()]
  const ada = `ada@${mailDomain()}`
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await running.end()
  })
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
      t.teardown(() => opened.close())
      return opened
    },
    create: (json: Record<string, string>) => api.call('POST', USERS, { token, json }),
    enter: (at: TestBrowser, password: string) => signIn(at, { tenantSlug, email: ada, password }),
  }
}

test.serial('accepting an invitation drops the sign-in methods a squatter set', async (t) => {
  const at = await harbour(t)
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
  const rows = await sql<{ count: number }>(
    at.database,
    `select count(*)::int from (select account_id from totp_factors union all
       select account_id from recovery_codes) x join accounts a on a.id = account_id
     where email = $1`,
    [at.ada],
  )
  t.deepEqual(rows, [{ count: 0 }])
  const [told] = await sql<{ tenant_id: string }>(
    at.database,
    `select tenant_id from audit_events where type = 'account.password.reset'
       and tenant_id = any($1)`,
    [[at.tenantId, tenantId]],
  )
  t.is(told?.tenant_id, tenantId)
})

test.serial('a second factor is also required after an invitation', async (t) => {
  const at = await harbour(t)
  await at.create({ email: at.ada, password: OLD })
  const first = at.browser()
  const account = await first.follow(await at.enter(first, OLD))
  const page = await first.follow(await first.submit(account, {}, '/auth/account/factors'))
  await enrol(first, page)
  // An account created by a federated sign-in has no password.
  await sql(
    at.database,
    'update accounts set email_verified = true, password_hash = null where email = $1',
    [at.ada],
  )
  const { token, tenantId } = await at.api.workspace()
  await at.api.call('POST', USERS, { token, json: { email: at.ada } })
  const browser = at.browser()
  const invitation = await browser.get(pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/'))
  const accepted = await browser.submit(invitation, { password: NEW })
  t.is(accepted.location, `/auth/login?tenant_id=${tenantId}`)
  t.is((await browser.get('/auth/account')).status, 303)
})

test.serial('a withdrawn invitation has no effect', async (t) => {
  const at = await harbour(t)
  const made = await at.create({ email: at.ada })
  const first = pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/')
  const browser = at.browser()
  const page = await browser.get(first)
  const user = `${USERS}/${String(made.body['id'])}`
  t.is((await at.api.call('DELETE', user, { token: at.token })).status, 204)
  t.is((await browser.get(first)).status, 410)
  t.is((await browser.submit(page, { password: OLD })).status, 410)
  t.deepEqual(
    await sql(at.database, 'select password_hash from accounts where email = $1', [at.ada]),
    [{ password_hash: null }],
  )

  t.is((await at.create({ email: at.ada })).body['status'], 'invited')
  const second = pathIn(await at.mail.letterTo(at.ada, /(?:)/, 1), '/auth/invitations/')
  t.is((await browser.get(first)).status, 410, 'the previous mail')
  t.is((await at.api.post(`${user}/suspend`, at.token)).status, 200)
  t.is((await browser.get(second)).status, 410, 'suspended')
  t.is((await browser.submit(page, { password: OLD }, /invitations/)).status, 410)
})
