/** Administrators reset passwords and second factors. docs/guides/identity/organizations-tenants-users.md. */
import test, { type ExecutionContext } from 'ava'
import { type Answer, apiOf, type Json, type Workspace } from '../../../support/api.js'
import {
  delegate,
  fixtureOf,
  type Human,
  newFixture,
  ownToken,
  type Person,
  present,
} from '../../../support/agents/delegation.js'
import { openDirectory } from '../../../support/identity/directory.js'
import { sql } from '../../../support/storage/sql.js'
import { signIn } from '../../../support/identity/person.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'

const USERS = '/api/v1/tenant-users'
const NEW = 'a new password by the link'
const WHATS = ['reset-password', 'reset-factors'] as const
const running = await sharedService('enterprise')
const mail = await sharedMail()
const api = apiOf(running)

const idOf = async ({ token }: Workspace, email: string) =>
  String((await api.list(`${USERS}?email=${email}`, token)).rows[0]?.['id'])

const reset = (token: string, id: string, what: (typeof WHATS)[number]) =>
  api.post(`${USERS}/${id}/${what}`, token)

/** Another user of the workspace with these roles and a fresh sign-in with two factors. */
async function personWith(t: ExecutionContext, workspace: Workspace, ...roles: string[]) {
  const human = await newFixture(api, workspace)
  const at = `${USERS}/${await idOf(workspace, human.email)}`
  t.is((await api.patch(at, workspace.token, { roles })).status, 200)
  const person = await present(api, human)
  return person
}

/** A workspace with an administrator, and a user with a second factor. */
async function scene(t: ExecutionContext) {
  const workspace = await api.workspace()
  const admin = await personWith(t, workspace, 'admin')
  const user = await present(api, fixtureOf(workspace))
  return {
    workspace,
    admin,
    user,
    token: await ownToken(api, workspace, admin, 'openid users:manage'),
    id: await idOf(workspace, user.human.email),
  }
}

/** Where the sign-in page leads with a password. Undefined: the password is wrong. */
async function enters(human: Human): Promise<string | undefined> {
  const browser = openBrowser(running)
  return (await signIn(browser, human)).location?.split('?')[0]
}

/** What a reset could change. */
const stateOf = async ({ email }: Human) =>
  JSON.stringify(
    await sql(running)`
      select a.password_hash, a.updated_at,
      (select count(*) from totp_factors f where f.account_id = a.id) as factors,
      (select count(*) from recovery_codes c where c.account_id = a.id
      and c.used_at is null) as codes,
      (select count(*) from browser_sessions s where s.account_id = a.id
      and s.ended_at is null) as open
      from accounts a where a.email = ${email}`,
  )

const dataOf = async ({ tenantId }: Workspace, type: string) =>
  sql<{ data: Json }>(running)`
    select data from all_events where tenant_id = ${tenantId} and type = ${type} order by sequence`

function refused(t: ExecutionContext, answer: Answer, status: number, error: string, why = '') {
  t.is(answer.status, status, `${why} ${JSON.stringify(answer.body)}`)
  t.is(answer.body['error'], error, why)
}

/** The user is also one of this other tenant. */
const join = (workspace: Workspace, { email }: Human, status = 'active', roles: string[] = []) =>
  sql(running)`
    insert into tenant_users (tenant_id, id, account_id, sub, status, roles, created_at,
    updated_at)
    select ${workspace.tenantId}, gen_random_uuid(), id, gen_random_uuid()::text, ${status},
    ${roles}, now(), now()
    from accounts where email = ${email}`

test('a reset password stops working immediately, sessions end, and a link in a mail sets a new one', async (t) => {
  const { workspace, user, token, id } = await scene(t)
  const own = await ownToken(api, workspace, user, 'openid')
  const { token: delegated } = await delegate(api, workspace.token, user)
  t.is((await reset(token, id, 'reset-password')).status, 202)
  t.is(await enters(user.human), undefined)
  t.is((await user.browser.get('/auth/account')).status, 303)
  t.is((await api.get('/userinfo', own)).status, 401)
  t.is((await api.get('/userinfo', delegated)).status, 401)
  const letter = await mail.letterTo(user.human.email, /administrator .* reset your password/)
  const path = pathIn(letter, '/auth/password/reset/')

  // A second reset replaces the link.
  t.is((await reset(token, id, 'reset-password')).status, 202)
  const browser = openBrowser(running)
  t.is((await browser.get(path)).status, 410)
  const second = await mail.letterTo(user.human.email, /administrator .* reset your password/, 1)
  const page = await browser.get(pathIn(second, '/auth/password/reset/'))
  t.is((await browser.submit(page, { password: NEW })).status, 200)
  t.is(await enters({ ...user.human, password: NEW }), '/auth/mfa', 'the factors stay')
  const events = await dataOf(workspace, 'admin.user.password_reset')
  t.is(events.length, 2)
  t.like(events[0]!.data, { email: user.human.email, resource: { type: 'tenant_user', id } })
})

test('after a reset of the factors the next sign-in has the password only and enrols new ones', async (t) => {
  const { workspace, user, token, id } = await scene(t)
  t.is(await enters(user.human), '/auth/mfa')
  t.is((await reset(token, id, 'reset-factors')).status, 202)
  t.is((await user.browser.get('/auth/account')).status, 303)
  const letter = await mail.letterTo(user.human.email, /removed your passkeys/)
  t.false(letter.text.includes('/auth/password/reset/'), 'the password is left')
  t.is(await enters(user.human), '/auth/account')
  const again = await present(api, user.human)
  t.is(again.recoveryCodes.length, 10)
  const [event] = await dataOf(workspace, 'admin.user.factors_reset')
  t.like(event!.data, { email: user.human.email, passkeys: 0, authenticators: 1 })
})

test('a reset of the factors leaves a way in: where none is left the message sets a password', async (t) => {
  const { user, token, id } = await scene(t)
  await sql(running)`update accounts set password_hash = null where email = ${user.human.email}`
  t.is((await reset(token, id, 'reset-factors')).status, 202)
  const letter = await mail.letterTo(user.human.email, /removed your passkeys/)
  const browser = openBrowser(running)
  const page = await browser.get(pathIn(letter, '/auth/password/reset/'))
  t.is((await browser.submit(page, { password: NEW })).status, 200)
  t.is(await enters({ ...user.human, password: NEW }), '/auth/account')
})

test('only an administrator of the tenant with fresh factors resets, and never an owner', async (t) => {
  const { workspace, admin, user, token, id } = await scene(t)
  const owner = await personWith(t, workspace, 'owner')
  const ownerId = await idOf(workspace, owner.human.email)
  const member = await ownToken(api, workspace, user)
  const { token: delegated } = await delegate(api, workspace.token, admin, {
    scope: 'openid users:manage',
  })
  const stranger = await scene(t)
  await sql(running)`
    update browser_sessions set auth_time = auth_time - interval '6 minutes'
    where account_id = (select id from accounts where email = ${admin.human.email})`
  const stale = await ownToken(api, workspace, admin, 'openid users:manage')
  const before = [await stateOf(user.human), await stateOf(owner.human)]
  for (const what of WHATS) {
    const by = (token: string, whom = id) => reset(token, whom, what)
    refused(t, await by(token, ownerId), 403, 'forbidden', 'an owner')
    refused(t, await by(member), 403, 'insufficient_scope', 'a member')
    refused(t, await by(workspace.token), 403, 'forbidden', 'an agent')
    refused(t, await by(delegated), 403, 'forbidden', 'a delegated token')
    const ofControlPlane = await by(workspace.operator)
    refused(t, ofControlPlane, 403, 'forbidden', 'the control plane')
    t.is(ofControlPlane.body['reason'], 'control_plane_token')
    refused(t, await by(stranger.token), 404, 'not_found', 'an administrator of another tenant')
    refused(t, await by(token, 'nothing'), 404, 'not_found')
    const late = await by(stale)
    refused(t, late, 401, 'insufficient_user_authentication', 'an old sign-in')
    t.regex(String(late.headers['www-authenticate']), /max_age="300"/)
  }
  t.deepEqual([await stateOf(user.human), await stateOf(owner.human)], before)
  // An owner may reset another owner.
  const above = await ownToken(api, workspace, owner, 'openid users:manage tenant:manage')
  t.is((await reset(above, ownerId, 'reset-factors')).status, 202)
})

test('users who are suspended or did not accept are not reset', async (t) => {
  const { workspace, user, token, id } = await scene(t)
  const invited = await api.post(USERS, token, { email: mailbox(`i.${workspace.tenantId}`) })
  t.is((await api.post(`${USERS}/${id}/suspend`, token)).status, 200)
  const before = await stateOf(user.human)
  for (const what of WHATS) {
    refused(t, await reset(token, id, what), 409, 'user_not_active')
    refused(t, await reset(token, String(invited.body['id']), what), 409, 'user_not_active')
  }
  t.is(await stateOf(user.human), before)
})

test('an account that reaches elsewhere is not reset: nothing changes and the person gets a mail', async (t) => {
  const { workspace, user, token, id } = await scene(t)
  const other = await api.workspace()
  await join(other, user.human)
  const before = await stateOf(user.human)
  for (const [n, what] of WHATS.entries()) {
    refused(t, await reset(token, id, what), 409, 'account_shared', what)
    await mail.letterTo(user.human.email, /Nothing was changed/, n)
  }
  const { rows: audit } = await api.list(
    '/api/v1/audit-events?type=admin.user.reset_refused',
    workspace.token,
  )
  t.deepEqual(
    audit.map(({ outcome, resource, data }) => ({ outcome, resource, data })),
    ['factors', 'password'].map((what) => ({
      outcome: 'denied',
      resource: { type: 'tenant_user', id },
      data: { reset: what, reason: 'account_shared' },
    })),
  )
  t.is(await stateOf(user.human), before)
  t.is((await user.browser.get('/auth/account')).status, 200)
  t.is(await enters(user.human), '/auth/mfa')
  // A suspension there may be lifted.
  await sql(running)`
    update tenant_users set status = 'suspended', suspended_from = 'active'
    where tenant_id = ${other.tenantId}`
  refused(t, await reset(token, id, 'reset-factors'), 409, 'account_shared')
})

test('an invitation elsewhere that the person has not accepted blocks no reset', async (t) => {
  const { user, token, id } = await scene(t)
  const { token: strange } = await api.workspace()
  t.is((await api.post(USERS, strange, { email: user.human.email })).body['status'], 'invited')
  t.is((await reset(token, id, 'reset-factors')).status, 202)
})

test('within the organization a verified domain is needed, and sessions of the other tenant stay', async (t) => {
  const { workspace, user, token, id } = await scene(t)
  const sister = await api.workspace()
  await sql(running)`
    update tenants set organization_id = ${workspace.organizationId} where id = ${sister.tenantId}`
  await join(sister, user.human)
  const there: Human = { ...user.human, tenantSlug: String(sister.body['tenant_slug']) }
  refused(t, await reset(token, id, 'reset-factors'), 409, 'account_shared')
  await ownDomain(api, workspace, user.human.email)

  const owns = 'update tenant_users set roles = $3 where tenant_id = $1 and account_id = $2'
  const [account] = await sql<{ id: string }>(running)`
    select id from accounts where email = ${user.human.email}`
  await sql(running, owns, [sister.tenantId, account!.id, ['owner']])
  refused(t, await reset(token, id, 'reset-factors'), 403, 'forbidden', 'an owner of the sister')
  await sql(running, owns, [sister.tenantId, account!.id, []])

  const elsewhere: Pick<Person, 'browser'> = { browser: openBrowser(running) }
  const challenge = await elsewhere.browser.follow(await signIn(elsewhere.browser, there))
  const [code = ''] = user.recoveryCodes
  await elsewhere.browser.submit(challenge, { code })
  t.is((await elsewhere.browser.get('/auth/account')).status, 200)
  for (const what of WHATS) t.is((await reset(token, id, what)).status, 202)
  t.is((await user.browser.get('/auth/account')).status, 303)
  t.is((await elsewhere.browser.get('/auth/account')).status, 200)
  t.is(await enters(there), undefined, 'the account has one password')
})

test('a user whom a directory provisioned gets the link of a first password', async (t) => {
  const { workspace, token } = await scene(t)
  const email = mailbox(`dir.${workspace.tenantId}`)
  const directory = await openDirectory(api, {}, workspace)
  await directory.create(email)
  t.is((await reset(token, await idOf(workspace, email), 'reset-password')).status, 202)
  const letter = await mail.letterTo(email, /reset your password/)
  const browser = openBrowser(running)
  const page = await browser.get(pathIn(letter, '/auth/password/reset/'))
  t.is((await browser.submit(page, { password: NEW })).status, 200)
  const tenantSlug = String(workspace.body['tenant_slug'])
  t.is(await enters({ tenantSlug, email, password: NEW }), '/auth/account')
})
