/** What ends a credential: its status becomes INVALID in the same transaction. */
import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { request } from 'undici'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { delegate, fixtureOf, present } from '../../../support/agents/delegation.js'
import { proofKey } from '../../../support/identity/proof.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi } from '../../../support/service.js'
import {
  credentialsOf,
  type IssuingTenant,
  issuingTenant,
  nonceOf,
  offer,
  offeredToken,
  partsOf,
  proofOf,
  redeem,
  requestCredential,
  shownRevoked,
  statusOf,
  walletKey,
} from '../../../support/oauth/wallet.js'

const { api, running } = await sharedApi('plain')
const tenant = await issuingTenant(api)

async function newUser(): Promise<string> {
  const made = await api.post('/api/v1/sandbox/fixture-users', tenant.token, {})
  return String(made.body['id'] ?? made.body['user_id'])
}

async function credentialOf(of: IssuingTenant, userId: string, more: Json = {}): Promise<string> {
  const token = await offeredToken(api, of, { user_id: userId, ...more })
  const [credential = ''] = credentialsOf(await requestCredential(api, of, token, more))
  return credential
}

const reasonOf = async (credential: string) => {
  const { status } = partsOf(credential).payload as { status: { status_list: { idx: number } } }
  const { rows } = await api.list('/api/v1/issued-credentials?limit=200', tenant.token)
  const row = rows.find(({ status_list: list }) => (list as Json)['idx'] === status.status_list.idx)
  return row?.['revoked_reason']
}

test('a removed user', async (t) => {
  const user = await newUser()
  const credential = await credentialOf(tenant, user)
  t.is(await statusOf(api, credential), 0)
  await api.delete(`/api/v1/tenant-users/${user}`, tenant.token).gives(204)
  await shownRevoked(api, credential)
  t.is(await reasonOf(credential), 'user_removed')
})

test('a suspended user, for good', async (t) => {
  const user = await newUser()
  const credential = await credentialOf(tenant, user)
  const { code } = await offer(api, tenant, { user_id: user })
  const pending = await offeredToken(api, tenant, { user_id: user })
  await api.post(`/api/v1/tenant-users/${user}/suspend`, tenant.token)
  await shownRevoked(api, credential)
  t.is(await reasonOf(credential), 'user_suspended')
  t.is((await redeem(api, code)).body['error'], 'invalid_grant')
  const denied = await requestCredential(api, tenant, pending)
  t.is(denied.body['error'], 'credential_request_denied')
  await api.post(`/api/v1/tenant-users/${user}/reactivate`, tenant.token)
  await shownRevoked(api, credential)
  t.is(await statusOf(api, await credentialOf(tenant, user)), 0)
})

test('a lost role, but not a new one', async (t) => {
  const user = await newUser()
  const setRoles = (roles: string[]) =>
    api.patch(`/api/v1/tenant-users/${user}`, tenant.token, { roles })
  t.is((await setRoles(['member', 'admin'])).status, 200)
  const credential = await credentialOf(tenant, user)
  t.deepEqual(partsOf(credential).claims['roles'], ['member', 'admin'])
  t.is((await setRoles(['member', 'admin', 'editor'])).status, 200)
  t.is(await statusOf(api, credential), 0)
  t.is((await setRoles(['member', 'editor'])).status, 200)
  await shownRevoked(api, credential)
  t.is(await reasonOf(credential), 'role_lost')
})

test('an address: proved ones only, and until it changes', async (t) => {
  const user = await newUser()
  const config = { credential_configuration_id: 'VerifiedEmail' }
  const accounts = `(select account_id from tenant_users where id = '${user}')`
  await sql(
    running.db.database,
    `update accounts set email_verified = false where id = ${accounts}`,
  )
  const answer = await api.post('/api/v1/credential-offers', tenant.token, {
    ...config,
    user_id: user,
  })
  t.is(answer.status, 409)
  await sql(running.db.database, `update accounts set email_verified = true where id = ${accounts}`)
  const credential = await credentialOf(tenant, user, config)
  const { claims } = partsOf(credential)
  t.deepEqual(Object.keys(claims).toSorted(), ['email', 'email_verified'])
  t.is(claims['email_verified'], true)
  await sql(
    running.db.database,
    `update accounts set email_verified = false where id = ${accounts}`,
  )
  await shownRevoked(api, credential)
  t.is(await reasonOf(credential), 'email_changed')
})

test('an ended delegation; its credential is bound to the key of the agent', async (t) => {
  const person = await present(api, fixtureOf(tenant))
  const { delegationId } = await delegate(api, tenant.token, person)
  const config = {
    credential_configuration_id: 'AgentDelegation',
    delegation_id: delegationId,
    user_id: undefined,
  }
  const token = await offeredToken(api, tenant, config)
  const ask = { credential_configuration_id: 'AgentDelegation' }
  const foreign = await requestCredential(api, tenant, token, ask)
  t.is(foreign.body['error'], 'invalid_proof', 'another key than the agent has')
  const { privateKey } = tenant.key
  const jwk = privateKey.export({ format: 'jwk' })
  const own = { kty: String(jwk.kty), crv: String(jwk.crv), x: String(jwk.x) }
  const agentKey = { alg: 'EdDSA' as const, jwk: own, privateKey: privateKey as never }
  const answer = await requestCredential(api, tenant, token, ask, agentKey)
  const [credential = ''] = credentialsOf(answer)
  const { payload, claims } = partsOf(credential)
  t.deepEqual((payload['cnf'] as Json)['jwk'], own)
  t.deepEqual(Object.keys(claims).toSorted(), ['act', 'delegation_id', 'scope', 'sub'])
  t.deepEqual(claims['act'], { sub: tenant.agentId, subject_type: 'agent' })
  t.is(claims['delegation_id'], delegationId)
  t.is(await statusOf(api, credential), 0)
  const page = await person.browser.get('/auth/account')
  await person.browser.submit(page, {}, `/auth/account/delegations/${delegationId}/revoke`)
  await shownRevoked(api, credential)
  t.is(await reasonOf(credential), 'delegation_ended')
  await api.post('/api/v1/credential-offers', tenant.token, { ...config }).gives(404)
})

// Serial: the other tests of this file change the list.
test.serial('the list: media type, entity tag, gzip, CORS, history, aggregation', async (t) => {
  const credential = await credentialOf(tenant, tenant.userId)
  const { payload } = partsOf(credential)
  const { uri } = (payload['status'] as { status_list: { uri: string } }).status_list
  const url = uri.replace(running.issuer, running.baseUrl)
  const get = (headers: Record<string, string> = {}, at = url) => request(at, { headers })
  const first = await get({ origin: 'https://verifier.example' })
  t.is(first.statusCode, 200)
  t.is(first.headers['content-type'], 'application/statuslist+jwt')
  t.is(first.headers['access-control-allow-origin'], '*')
  t.is(first.headers['cache-control'], 'public, max-age=3600')
  const token = await first.body.text()
  const [header = '', body = ''] = token.split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
  t.like(read(header), { typ: 'statuslist+jwt', alg: 'ES256' })
  const claims = read(body)
  t.like(claims, { sub: uri, iss: tenant.identifier, ttl: 3600 })
  t.is(Number(claims['exp']) - Number(claims['iat']), 7200)
  const etag = String(first.headers['etag'])
  const second = await get({ 'if-none-match': etag })
  t.is(second.statusCode, 304)
  await second.body.dump()
  const zipped = await get({ 'accept-encoding': 'gzip' })
  if (zipped.headers['content-encoding'] === 'gzip') {
    const bytes = gunzipSync(Buffer.from(await zipped.body.arrayBuffer()))
    t.is(bytes.toString(), token)
    t.not(zipped.headers['etag'], etag)
  } else t.fail('it is not compressed')
  const past = await get({}, `${url}?time=1686925000`)
  t.is(past.statusCode, 501)
  await past.body.dump()
  const unknown = await get({}, `${running.baseUrl}/status-lists/${crypto.randomUUID()}`)
  t.is(unknown.statusCode, 404)
  await unknown.body.dump()
  const server = await api.get('/.well-known/oauth-authorization-server')
  const aggregation = String(server.body['status_list_aggregation_endpoint'])
  const all = await api.get(aggregation.replace(running.issuer, ''))
  t.true((all.body['status_lists'] as string[]).includes(uri))
})

test('a token bound to a key needs proofs of that key', async (t) => {
  const key = await proofKey()
  const { code } = await offer(api, tenant)
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
    'pre-authorized_code': code,
  }
  const dpop = await key.proof('POST', `${running.issuer}/oauth/token`)
  const tokens = await api.form('/oauth/token', form, { dpop })
  t.is(tokens.body['token_type'], 'DPoP')
  const token = String(tokens.body['access_token'])
  const bearer = await requestCredential(api, tenant, token)
  t.like(bearer, { status: 401, body: { error: 'invalid_dpop_proof' } })
  const ath = createHash('sha256').update(token).digest('base64url')
  const proof = await proofOf(await walletKey(), tenant, await nonceOf(api, tenant))
  const answer = await api.call('POST', `${tenant.at}/credential`, {
    json: { credential_configuration_id: 'TenantMembership', proofs: { jwt: [proof] } },
    headers: {
      authorization: `DPoP ${token}`,
      dpop: await key.proof('POST', `${tenant.identifier}/credential`, { ath }),
    },
  })
  t.is(answer.status, 200)
})
