/** Visibility and revocation of delegations with two people, three agents, two tenants. */
import test from 'ava'
import { type Api, apiOf, type Json } from '../../support/api.js'
import { softAuthenticator } from '../../support/identity/authenticator.js'
import {
  ask,
  decide,
  fixtureOf,
  type Lent,
  delegate,
  newFixture,
  ownToken,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { ADD, optionsOf, SECOND_FACTOR, useKey } from '../../support/identity/passkeys.js'
import { sharedService } from '../../support/service.js'

const LIST = '/api/v1/delegations'

const api = apiOf(await sharedService('people'))
const [here, there] = [await api.workspace('Here'), await api.workspace('There')]
const ada = await present(api, fixtureOf(here))
const bob = await present(api, await newFixture(api, here))
const stranger = await present(api, fixtureOf(there))
const { key, agentId } = await api.register(here.tenantId)
const login = await api.login(key, { agent_id: agentId, tenant_id: here.tenantId })
const helper = { agentId, token: String(login.body['access_token']) }

const revoke = (api: Api, token: string, { delegationId }: Pick<Lent, 'delegationId'>) =>
  api.post(`${LIST}/${delegationId}/revoke`, token)

const isUsable = async (api: Api, { token }: Pick<Lent, 'token'>) =>
  (await api.get('/api/v1/vault/credentials', token)).status === 200

test.serial(
  'callers see their own delegations, managers all of the tenant, none of another tenant',
  async (t) => {
    const fromAda = await delegate(api, here.token, ada)
    const toHelper = await delegate(api, helper.token, ada)
    const fromBob = await delegate(api, helper.token, bob)
    const elsewhere = await delegate(api, there.token, stranger)
    const [tokenOfAda, tokenOfBob] = [
      await ownToken(api, here, ada),
      await ownToken(api, here, bob),
    ]
    const ids = async (token: string) =>
      (await api.list(LIST, token)).rows.map(({ id }) => id as string)
    const all = [fromBob, toHelper, fromAda].map(({ delegationId }) => delegationId)
    t.deepEqual(await ids(tokenOfAda), [toHelper.delegationId, fromAda.delegationId])
    t.deepEqual(await ids(tokenOfBob), [fromBob.delegationId])
    t.deepEqual(await ids(helper.token), [fromBob.delegationId, toHelper.delegationId])
    t.deepEqual(await ids(here.token), all)
    t.deepEqual(await ids(there.token), [elsewhere.delegationId])
    // The agent that acts for Ada sees its own delegation only.
    t.deepEqual(await ids(toHelper.token), [toHelper.delegationId])

    const page = await api.list(`${LIST}?limit=2`, here.token)
    t.deepEqual(
      page.rows.map(({ id }) => id),
      all.slice(0, 2),
    )
    const rest = await api.list(page.next!, here.token)
    t.deepEqual(
      rest.rows.map(({ id }) => id),
      all.slice(2),
    )
    t.is(rest.next, undefined)

    // Administrators and the person see whose it is, agents see their own without the person.
    const emailsOf = async (token: string) =>
      (await api.list(LIST, token)).rows.map(({ user }) => (user as Json | undefined)?.['email'])
    const [emailOfAda, emailOfBob] = [ada.human.email, bob.human.email]
    t.deepEqual(await emailsOf(here.token), [emailOfBob, emailOfAda, emailOfAda])
    t.deepEqual(await emailsOf(tokenOfAda), [emailOfAda, emailOfAda])
    t.deepEqual(await emailsOf(helper.token), [undefined, undefined])

    const { body } = await api.get(`${LIST}/${fromBob.delegationId}`, tokenOfBob)
    t.like(body, {
      id: fromBob.delegationId,
      tenant_id: here.tenantId,
      agent_id: helper.agentId,
      scope: 'openid vault:list vault:read',
      audience: api.at.baseUrl,
      status: 'active',
      acr: 'aal2',
      revoked_at: null,
    })
    const lifetimeMs =
      Date.parse(String(body['expires_at'])) - Date.parse(String(body['created_at']))
    t.is(lifetimeMs, 604_800_000)
    for (const [token, of] of [
      [tokenOfAda, fromBob],
      [tokenOfBob, elsewhere],
      [helper.token, fromAda],
      [there.token, fromAda],
    ] as const) {
      t.is((await api.get(`${LIST}/${of.delegationId}`, token)).status, 404)
    }
    t.is((await api.get(`${LIST}/nonsense`, here.token)).status, 404)
    t.is((await api.get(`${LIST}?limit=0`, here.token)).status, 400)
    const application = await api.form(
      '/oauth/token',
      { grant_type: 'client_credentials', scope: 'vault:list' },
      {
        authorization: `Basic ${Buffer.from(`${String(here.body['client_id'])}:${String(here.body['client_secret'])}`).toString('base64')}`,
      },
    )
    t.is((await api.get(LIST, String(application.body['access_token']))).status, 403)
  },
)

test.serial('only the person revokes a delegation, idempotently', async (t) => {
  const delegated = await delegate(api, helper.token, ada)
  const [own, other] = [await ownToken(api, here, ada), await ownToken(api, here, bob)]
  const foreign = await ownToken(api, there, stranger)
  t.is((await revoke(api, other, delegated)).status, 404)
  t.is((await revoke(api, foreign, delegated)).status, 404)
  for (const token of [helper.token, here.token, delegated.token]) {
    t.is((await revoke(api, token, delegated)).status, 403)
  }
  const narrow = await ownToken(api, here, ada, 'openid vault:list')
  await revoke(api, narrow, delegated).gives(403, 'insufficient_scope')
  t.true(await isUsable(api, delegated))

  const first = await revoke(api, own, delegated).gives(200)
  t.like(first.body, { id: delegated.delegationId, status: 'revoked' })
  t.false(await isUsable(api, delegated))
  t.deepEqual((await revoke(api, own, delegated)).body, first.body)
  const events = await sql<{ data: Json }>(api.at)`
    select data from all_events where type = 'admin.delegation.revoked'
    and data->>'delegation_id' = ${delegated.delegationId}`
  t.is(events.length, 1)
  t.like(events[0]!.data, { agent_id: helper.agentId, reason: 'revoked' })
  const audit = await api.list('/api/v1/audit-events?type=admin.delegation.revoked', here.token)
  t.is(audit.rows[0]?.['delegation_id'], delegated.delegationId)
})

test.serial('a caller without a recent strong sign-in gets a step-up challenge', async (t) => {
  const delegated = await delegate(api, helper.token, bob)
  const set = (text: string) =>
    sql(
      api.at.db.database,
      `update browser_sessions set ${text} where account_id in
         (select id from accounts where email = $1) and ended_at is null`,
      [bob.human.email],
    )
  await set(`auth_time = auth_time - interval '301 seconds'`)
  const stale = await ownToken(api, here, bob)
  await set(`auth_time = auth_time + interval '301 seconds', level = 1`)
  const weak = await ownToken(api, here, bob)
  await set('level = 2')
  for (const token of [stale, weak]) {
    const { status, headers, body } = await revoke(api, token, delegated)
    t.is(status, 401)
    t.is(body['error'], 'insufficient_user_authentication')
    t.regex(headers['www-authenticate'] ?? '', /^Bearer error="insufficient_user_authentication"/)
    t.regex(headers['www-authenticate'] ?? '', /acr_values="aal3 aal2", max_age="300"$/)
  }
  t.true(await isUsable(api, delegated))
  t.is((await revoke(api, await ownToken(api, here, bob), delegated)).status, 200)
})

test.serial(
  'a person with a device-bound passkey needs it, for the API and the page',
  async (t) => {
    const person = await present(api, await newFixture(api, here))
    const delegated = await delegate(api, helper.token, person)
    const before = await ownToken(api, here, person)
    const page = await person.browser.get(`${ADD}/new`)
    const key = softAuthenticator({ origin: api.at.baseUrl })
    const credential = key.create(await optionsOf(person.browser, page, ADD))
    await person.browser.submit(page, { credential, name: 'Key' }, ADD)

    for (const token of [before, await ownToken(api, here, person)]) {
      const { headers } = await revoke(api, token, delegated).gives(401)
      t.regex(headers['www-authenticate'] ?? '', /acr_values="aal3", max_age="300"$/)
    }
    const account = await person.browser.get('/auth/account')
    const asked = await person.browser.submit(
      account,
      {},
      `/auth/account/delegations/${delegated.delegationId}/revoke`,
    )
    t.regex(asked.location ?? '', /^\/auth\/mfa\?flow=/)
    t.true(await isUsable(api, delegated))

    const stepUp = await person.browser.follow(asked)
    t.is((await useKey(person.browser, stepUp, key, {}, SECOND_FACTOR)).status, 303)
    await revoke(api, await ownToken(api, here, person), delegated).gives(200)
    t.false(await isUsable(api, delegated))
  },
)

test.serial('an administrator revokes delegations of others', async (t) => {
  const carol = await present(api, await newFixture(api, here))
  const delegated = await delegate(api, helper.token, bob)
  const { rows } = await api.list(
    `/api/v1/tenant-users?email=${encodeURIComponent(carol.human.email)}`,
    here.token,
  )
  const user = `/api/v1/tenant-users/${String(rows[0]!['id'])}`
  const setRoles = (roles: string[]) => api.patch(user, here.token, { roles })
  t.is((await setRoles(['admin'])).status, 200)
  const token = await ownToken(api, here, carol)
  t.is((await api.get(`${LIST}/${delegated.delegationId}`, token)).status, 200)
  t.is((await revoke(api, token, delegated)).status, 200)
})

test.serial('an approval that is revoked before the poll gives no token', async (t) => {
  const asked = await ask(api, helper.token, { scope: 'openid vault:list' })
  await decide(ada, asked)
  const own = await ownToken(api, here, ada)
  const { rows } = await api.list(LIST, own)
  const delegationId = String(rows[0]!['id'])
  t.is((await revoke(api, own, { delegationId })).status, 200)
  const polled = await poll(api, helper.token, asked)
  t.like(polled, { status: 400, body: { error: 'access_denied' } })
})

test.serial('a revocation during polls leaves no usable token', async (t) => {
  const own = await ownToken(api, here, ada)
  for (let round = 0; round < 3; round += 1) {
    const asked = await ask(api, helper.token, { scope: 'openid vault:list' })
    await decide(ada, asked)
    const { rows } = await api.list(LIST, own)
    const delegationId = String(rows[0]!['id'])
    const polls = Array.from({ length: 10 }, () => poll(api, helper.token, asked))
    const ends = Array.from({ length: 5 }, () => revoke(api, own, { delegationId }))
    const [polled, ended] = await Promise.all([Promise.all(polls), Promise.all(ends)])
    t.true(ended.every(({ status }) => status === 200))
    t.is(new Set(ended.map(({ body }) => body['revoked_at'])).size, 1)
    const granted = polled.filter(({ status }) => status === 200)
    t.true(granted.length <= 1)
    for (const { body } of granted) {
      t.false(await isUsable(api, { token: String(body['access_token']) }))
    }
  }
})

test.serial('concurrent ends of a delegation emit one event', async (t) => {
  const delegated = await delegate(api, helper.token, bob)
  const answer = await api.form('/oauth/revoke', {
    client_id: helper.agentId,
    token: delegated.refreshToken,
  })
  t.is(answer.status, 200)
  t.false(await isUsable(api, delegated))
  const { body } = await api.get(`${LIST}/${delegated.delegationId}`, here.token)
  t.is(body['status'], 'revoked')
})
