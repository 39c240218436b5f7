/** What a password change ends, and which passwords are refused. docs/guides/identity/sign-in-and-sign-up.md. */
import test, { type ExecutionContext } from 'ava'
import { decodeJwt } from 'jose'
import { type Json, apiOf } from '../../../support/api.js'
import { softAuthenticator } from '../../../support/identity/authenticator.js'
import {
  ask,
  decide,
  delegate,
  fixtureOf,
  ownToken,
  poll,
  present,
} from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain, mailbox } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import {
  ADD,
  loginPage,
  optionsOf,
  passkeysOf,
  useKey,
} from '../../../support/identity/passkeys.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { ownerHome } from '../../../support/identity/owner.js'

const running = await sharedService('people')
const mail = await sharedMail()
const api = apiOf(running)
const NEW = 'an entirely new sentence of hers'
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

/**
 * A user with every kind of factor, an open token, two delegations, one unfetched delegation and one unfetched device
 * approval.
 */
async function scene(t: ExecutionContext) {
  const [running, mail] = [await sharedService('people'), await sharedMail()]
  const api = apiOf(running)
  const workspace = await api.workspace()
  const email = `ada@${mailDomain()}`
  await ownDomain(api, workspace, email)
  const json = { email, password: 'the old password of ada' }
  await api.call('POST', '/api/v1/tenant-users', { token: workspace.token, json })
  // The address is verified, so a reset is not the first proof of the mailbox, which would drop the factors.
  await sql(running)`update accounts set email_verified = true where email = ${email}`
  const human = { ...json, tenantSlug: String(workspace.body['tenant_slug']) }
  const person = await present(api, human)
  t.teardown(async () => {
    await running.end()
  })
  const page = await person.browser.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: running.baseUrl, synced: true })
  const credential = key.create(await optionsOf(person.browser, page, ADD))
  await person.browser.submit(page, { credential, name: 'Key' }, ADD)
  const token = await ownToken(api, workspace, person)
  const delegated = await delegate(api, workspace.token, person)
  const waiting = await ask(api, workspace.token, { scope: 'openid' })
  await decide(person, waiting)
  const television = await relyingParty(running, workspace, {
    clientType: 'public',
    grantTypes: [DEVICE],
  })
  const { clientId: client_id } = television
  const begun = await api.form('/oauth/device/code', { client_id, scope: 'openid' })
  const device_code = String(begun.body['device_code'])
  const verify = `/oauth/device/verify?user_code=${String(begun.body['user_code'])}`
  const asked = await person.browser.follow(await person.browser.get(verify))
  await person.browser.submit(asked, { action: 'approve' })
  const pollDevice = () => api.form('/oauth/token', { grant_type: DEVICE, device_code, client_id })
  const of = { running, workspace: { ...human, tenantId: workspace.tenantId } as never }
  const usable = async () =>
    (await api.get('/api/v1/vault/credentials', delegated.token)).status === 200
  t.true(await usable())
  return {
    mail,
    running,
    api,
    workspace,
    human,
    person,
    key,
    token,
    delegated,
    waiting,
    pollDevice,
    of,
    usable,
  }
}

async function endedWith(
  t: ExecutionContext,
  {
    running,
    api,
    workspace,
    human,
    key,
    token,
    delegated,
    waiting,
    pollDevice,
    of,
    usable,
    person,
  }: Awaited<ReturnType<typeof scene>>,
  reason: string,
) {
  t.false(await usable(), 'the delegation of the agent has ended')
  t.is((await api.get('/api/v1/delegations', token)).status, 401)
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: delegated.refreshToken,
    client_id: workspace.agentId,
  })
  const refreshed = await fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', body })
  t.is(refreshed.status, 400)
  const late = await api.post('/api/v1/agents/delegations/device/token', workspace.token, {
    device_code: waiting.deviceCode,
  })
  t.is(late.body['error'], 'access_denied', 'an approval that was not fetched ends, too')
  t.is((await pollDevice()).body['error'], 'access_denied', 'and the device request')
  const told = await sql<{ data: Json }>(running)`
    select data from all_events where tenant_id = ${workspace.tenantId}
    and type = 'admin.delegation.revoked'`
  t.is(told.length, 2)
  for (const { data } of told) t.like(data, { reason, agent_id: workspace.agentId })

  const other = openBrowser(running)
  const owed = await other.follow(await signIn(other, { ...human, password: NEW }))
  t.regex(owed.path, /^\/auth\/mfa\?flow=/, 'the second step is still asked for')
  t.is((await other.submit(owed, { code: person.codes.next() }, '/auth/mfa')).status, 303)
  const account = await other.get('/auth/account')
  t.notRegex(account.html, /data-delegation=/)
  t.is((await passkeysOf(of)).length, 1)
  const third = openBrowser(running)
  const login = await loginPage(third, human as never)
  t.is((await useKey(third, login, key)).status, 303, 'the passkey still signs in')
}

test('a password reset ends delegations; passkeys and the app stay', async (t) => {
  const at = await scene(t)
  const browser = openBrowser(at.running)
  const login = await browser.get(`/auth/login?tenant_slug=${at.human.tenantSlug}`)
  const forgot = await browser.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!)
  await browser.submit(forgot, { email: at.human.email })
  const letter = await at.mail.letterTo(at.human.email)
  const reset = await browser.get(pathIn(letter, '/auth/password/reset/'))
  t.is((await browser.submit(reset, { password: NEW })).status, 200)
  t.is((await at.person.browser.get('/auth/account')).status, 303, 'signed out')
  await endedWith(t, at, 'password_reset')
})

test('a password change does the same, except for the browser it is made in', async (t) => {
  const at = await scene(t)
  const { browser } = at.person
  const page = await browser.get('/auth/account/password')
  const done = await browser.submit(page, { current: at.human.password, password: NEW })
  t.is(done.location, '/auth/account')
  t.is((await browser.get('/auth/account')).status, 200)
  await endedWith(t, at, 'password_changed')
  // The browser that stays signed in continues to issue tokens, in a new session.
  for (let round = 0; round < 2; round += 1) {
    const token = await ownToken(at.api, at.workspace, at.person)
    t.is((await at.api.get('/api/v1/delegations', token)).status, 200)
    t.not(decodeJwt(token)['sid'], decodeJwt(at.token)['sid'])
  }
  t.is((await at.api.get('/api/v1/delegations', at.token)).status, 401)
})

test('a new password for a fixture user ends its delegations', async (t) => {
  const { api, workspace } = await scene(t)
  const human = fixtureOf(workspace)
  const person = await present(api, human)
  const delegated = await delegate(api, workspace.token, person)
  const waiting = await ask(api, workspace.token, { scope: 'openid' })
  await decide(person, waiting)
  const vault = () => api.get('/api/v1/vault/credentials', delegated.token)
  t.is((await vault()).status, 200)
  const rotated = await api.post('/api/v1/sandbox/fixture-user/rotate-password', workspace.token)
  t.is(rotated.body['email'], human.email)
  t.is((await vault()).body['error'], 'token_revoked')
  t.is((await poll(api, workspace.token, waiting)).body['error'], 'access_denied')
  const path = '/api/v1/audit-events?type=admin.delegation.revoked'
  const { rows } = await api.list(path, workspace.token)
  const reasons = rows.map(({ data }) => (data as Json)['reason'])
  t.deepEqual(new Set(reasons), new Set(['password_rotated']))
})

// Too short or too common passwords are refused wherever one is set, without a breach service.

const USERS = '/api/v1/tenant-users'
const GOOD = 'a password of the harbour master'
const [ADA, BOB] = [mailbox('ada'), mailbox('bob')]
const SHORT = 'elevenchars'
const COMMON = ['password1234', 'QWERTYUIOP12', '123456789012', 'Welcome2026!!']

test.serial('the API refuses a short and a common password', async (t) => {
  const { token } = await api.workspace()
  for (const password of [SHORT, ...COMMON]) {
    const json = { email: BOB, password }
    const { status, body } = await api.call('POST', USERS, { token, json })
    t.is(status, 400, password)
    t.is((body['errors'] as { pointer: string }[])[0]!.pointer, '#/password')
  }
  t.deepEqual(await sql(running)`select from accounts where email = ${BOB}`, [])
  const json = { email: BOB, password: GOOD }
  t.is((await api.call('POST', USERS, { token, json })).body['status'], 'pre_provisioned')
})

test.serial('every page that sets one refuses a short and a common password', async (t) => {
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const refuses = async (form: Awaited<ReturnType<typeof browser.get>>, more = {}) => {
    for (const password of [SHORT, ...COMMON]) {
      const answer = await browser.submit(form, { ...more, password })
      t.is(answer.status, 200, form.path)
      t.true(answer.html.includes('role="alert"'), `${form.path} ${password}`)
      const words = password === SHORT ? '12 to 256 characters' : 'too common'
      t.true(answer.html.includes(words), answer.html)
    }
  }
  const person = { name: 'Ada', email: mailbox('owner') }
  const invite = await browser.get(new URL(workspace.inviteUrl).pathname)
  await refuses(invite, person)
  const accepted = await browser.submit(invite, { ...person, password: GOOD })
  t.is(accepted.location, await ownerHome(running, workspace.tenantId))
  await refuses(await browser.get('/auth/account/password'), { current: GOOD })

  const { token, body } = await api.workspace()
  await api.call('POST', USERS, { token, json: { email: ADA } })
  const invitation = await browser.get(pathIn(await mail.letterTo(ADA), '/auth/invitations/'))
  await refuses(invitation)
  t.is((await browser.submit(invitation, { password: GOOD })).location, '/auth/account')

  const login = openBrowser(running)
  const tenantSlug = String(body['tenant_slug'])
  const page = await signIn(login, { tenantSlug, email: ADA, password: 'not this one' })
  const forgot = await login.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(page.html)![1]!)
  await login.submit(forgot, { email: ADA })
  const reset = pathIn(await mail.letterTo(ADA, /reset/), '/auth/password/reset/')
  await refuses(await browser.get(reset))
})
