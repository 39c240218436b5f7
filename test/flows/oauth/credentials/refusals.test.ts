/** Refused requests of wallets: every error of OpenID4VCI section 8.3.1.2, with ugly input. */
import test from 'ava'
import type { JWK } from 'jose'
import type { Answer, Json } from '../../../support/api.js'
import { sharedApi } from '../../../support/service.js'
import {
  credentialsOf,
  issuingTenant,
  nonceOf,
  offer,
  offeredToken,
  type ProofParts,
  proofOf,
  redeem,
  requestCredential,
  walletKey,
} from '../../../support/oauth/wallet.js'

const { api, running } = await sharedApi('plain')
const tenant = await issuingTenant(api)
const other = await issuingTenant(api)
const token = await offeredToken(api, tenant)
const key = await walletKey()
const nowSecs = () => Math.floor(Date.now() / 1000)

const ask = (json: unknown, bearer: string = token) =>
  api.post(`${tenant.at}/credential`, bearer, json)
const proof = async (parts: ProofParts = {}) =>
  proofOf(key, tenant, await nonceOf(api, tenant), parts)
const withProofs = (jwt: unknown): Json => ({
  credential_configuration_id: 'TenantMembership',
  proofs: { jwt },
})

/** Members that are wrong, with the error. Each request is otherwise right. */
const REQUESTS: readonly [name: string, members: Json, error: string][] = [
  ['no credential', { credential_configuration_id: undefined }, 'invalid_credential_request'],
  ['both ways to name it', { credential_identifier: 'x' }, 'invalid_credential_request'],
  ['a number', { credential_configuration_id: 7 }, 'invalid_credential_request'],
  [
    'unknown configuration',
    { credential_configuration_id: 'Passport' },
    'unknown_credential_configuration',
  ],
  [
    'a prototype member',
    { credential_configuration_id: '__proto__' },
    'unknown_credential_configuration',
  ],
  [
    'unknown identifier',
    { credential_configuration_id: undefined, credential_identifier: 'x' },
    'unknown_credential_identifier',
  ],
  [
    'encryption',
    { credential_response_encryption: { jwk: {}, alg: 'X', enc: 'Y' } },
    'invalid_encryption_parameters',
  ],
  ['no proofs', { proofs: undefined }, 'invalid_proof'],
  [
    'the form before 1.0',
    { proofs: undefined, proof: { proof_type: 'jwt', jwt: 'x' } },
    'invalid_proof',
  ],
  ['empty proofs', { proofs: {} }, 'invalid_proof'],
  ['an empty list', { proofs: { jwt: [] } }, 'invalid_proof'],
  ['no list', { proofs: { jwt: 'x' } }, 'invalid_proof'],
  ['another type', { proofs: { di_vp: [{}] } }, 'invalid_proof'],
  ['two types', { proofs: { jwt: ['x'], di_vp: [{}] } }, 'invalid_proof'],
  ['no JWT', { proofs: { jwt: ['x'] } }, 'invalid_proof'],
  ['no text', { proofs: { jwt: [null] } }, 'invalid_proof'],
  ['eleven', { proofs: { jwt: Array.from({ length: 11 }, () => 'a.b.c') } }, 'invalid_proof'],
]
for (const [name, members, error] of REQUESTS)
  test(`a request with ${name} is ${error}`, async (t) => {
    const answer = await ask({ ...withProofs([await proof()]), ...members }).gives(400)
    t.is(answer.body['error'], error)
    t.regex(String(answer.body['error_description']), /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    t.is(answer.headers['cache-control'], 'no-store')
  })

const SECRET = { d: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }
const PROOFS: readonly [name: string, parts: () => ProofParts, error: string][] = [
  ['another typ', () => ({ header: { typ: 'jwt' } }), 'invalid_proof'],
  ['no key', () => ({ header: { jwk: undefined } }), 'invalid_proof'],
  ['a kid besides', () => ({ header: { kid: 'did:key:z#z' } }), 'invalid_proof'],
  ['a kid alone', () => ({ header: { jwk: undefined, kid: 'did:key:z#z' } }), 'invalid_proof'],
  ['a chain besides', () => ({ header: { x5c: ['MIIB'] } }), 'invalid_proof'],
  ['a private key', () => ({ header: { jwk: { ...key.jwk, ...SECRET } } }), 'invalid_proof'],
  [
    'a symmetric key',
    () => ({ header: { jwk: { kty: 'oct', k: 'AAAA' } as JWK } }),
    'invalid_proof',
  ],
  ['another audience', () => ({ claims: { aud: running.issuer } }), 'invalid_proof'],
  [
    'two audiences',
    () => ({ claims: { aud: [tenant.identifier, 'https://x.example'] } }),
    'invalid_proof',
  ],
  ['no audience', () => ({ claims: { aud: undefined } }), 'invalid_proof'],
  ['no time', () => ({ claims: { iat: undefined } }), 'invalid_proof'],
  ['an old time', () => ({ claims: { iat: nowSecs() - 310 } }), 'invalid_proof'],
  ['a future time', () => ({ claims: { iat: nowSecs() + 310 } }), 'invalid_proof'],
  ['a past expiry', () => ({ claims: { exp: nowSecs() - 5 } }), 'invalid_proof'],
  ['an expiry that is no number', () => ({ claims: { exp: 'never' } }), 'invalid_proof'],
  ['a start in the future', () => ({ claims: { nbf: nowSecs() + 310 } }), 'invalid_proof'],
  ['an issuer without a client', () => ({ claims: { iss: 'wallet' } }), 'invalid_proof'],
  ['no nonce', () => ({ claims: { nonce: undefined } }), 'invalid_proof'],
  ['an invented nonce', () => ({ claims: { nonce: 'AAAA' } }), 'invalid_nonce'],
  [
    'a nonce with text behind',
    () => ({ claims: { nonce: `${'A'.repeat(90)}=` } }),
    'invalid_nonce',
  ],
]
for (const [name, parts, error] of PROOFS)
  test(`a proof with ${name} is ${error}`, async (t) => {
    const answer = await ask(withProofs([await proof(parts())])).gives(400)
    t.is(answer.body['error'], error)
  })

test('a proof with a wrong signature, or of another algorithm, is refused', async (t) => {
  const good = await proof()
  const [header = '', payload = '', signature = ''] = good.split('.')
  const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
  const none = Buffer.from(
    JSON.stringify({ alg: 'none', typ: 'openid4vci-proof+jwt', jwk: key.jwk }),
  )
  for (const jwt of [
    `${header}.${payload}.${flipped}`,
    `${none.toString('base64url')}.${payload}.${signature}`,
    `${none.toString('base64url')}.${payload}.`,
    `${header}.${payload}.${signature}=`,
    `${header}.${payload}`,
  ]) {
    const answer = await ask(withProofs([jwt]))
    t.is(answer.body['error'], 'invalid_proof', jwt)
  }
})

test('a nonce is used once, for one issuer, and one bad proof spoils the batch', async (t) => {
  const nonce = await nonceOf(api, tenant)
  const first = await proofOf(key, tenant, nonce)
  const second = await proofOf(await walletKey(), tenant, nonce)
  const bad = await proofOf(key, tenant, nonce, { claims: { aud: 'https://x.example' } })
  t.is((await ask(withProofs([first, bad]))).body['error'], 'invalid_proof')
  t.is(credentialsOf(await ask(withProofs([first, second]))).length, 2)
  t.is((await ask(withProofs([first]))).body['error'], 'invalid_nonce')
  const foreign = await proofOf(key, tenant, await nonceOf(api, other))
  t.is((await ask(withProofs([foreign]))).body['error'], 'invalid_nonce')
})

test('of concurrent uses of one nonce one succeeds', async (t) => {
  const nonce = await nonceOf(api, tenant)
  const jwt = await proofOf(key, tenant, nonce)
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(withProofs([jwt]))))
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ body }) => body['error'] === 'invalid_nonce').length, 11)
})

for (const accept of ['text/html', 'application/jwt', 'application/json;q=0', '*/*;q=0'])
  test(`a credential issuer answers JSON to Accept: ${accept}`, async (t) => {
    const post = (path: string, json?: Json) =>
      api.call('POST', `${tenant.at}${path}`, { token, json, headers: { accept } })
    const nonce = await post('/nonce').gives(200)
    t.is(nonce.headers['content-type'], 'application/json')
    const proofs = { jwt: [await proofOf(key, tenant, String(nonce.body['c_nonce']))] }
    const credential_configuration_id = 'TenantMembership'
    const issued = await post('/credential', { credential_configuration_id, proofs }).gives(200)
    t.is(issued.headers['content-type'], 'application/json')
    t.is((await post('/credential', {})).body['error'], 'invalid_credential_request')
  })

test('a body that is no JSON object is refused', async (t) => {
  for (const body of [
    '',
    '{',
    '[]',
    'null',
    '"x"',
    '{"a":1,"a":2}',
    '\uFEFF{}',
    `${'['.repeat(999)}`,
  ]) {
    const answer = await fetch(`${running.baseUrl}${tenant.at}/credential`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
    t.is(answer.status, 400, body)
    t.is(((await answer.json()) as Json)['error'], 'invalid_credential_request', body)
  }
})

test('tokens: absent, in the query, of another tenant, of an agent', async (t) => {
  const json = withProofs([await proof()])
  const at = `${tenant.at}/credential`
  const without = await api.call('POST', at, { json }).gives(401)
  t.regex(String(without.headers['www-authenticate']), /^Bearer /)
  await api.call('POST', `${at}?access_token=${token}`, { json }).gives(401)
  for (const bearer of ['x', tenant.token, await offeredToken(api, other)]) {
    const refused = await ask(json, bearer).gives(401, 'invalid_token')
    t.regex(String(refused.headers['www-authenticate']), /^Bearer error="invalid_token"/)
  }
  const another = { ...json, credential_configuration_id: 'VerifiedEmail' }
  await ask(another).gives(403, 'insufficient_scope')
  t.is((await api.get('/userinfo', token)).status, 401, 'its audience is the credential issuer')
  const applications = await api.get('/api/v1/applications', token)
  t.is(applications.status, 401, 'its audience is the credential issuer')
})

test('token endpoint: faults of pre-authorized codes', async (t) => {
  const plain = await offer(api, tenant)
  const errorOf = ({ status, body }: Answer) => [status, body['error']]
  t.deepEqual(errorOf(await redeem(api, '')), [400, 'invalid_request'])
  t.deepEqual(errorOf(await redeem(api, 'x')), [400, 'invalid_grant'])
  t.deepEqual(errorOf(await redeem(api, 'x'.repeat(500))), [400, 'invalid_grant'])
  t.deepEqual(errorOf(await redeem(api, plain.code, { tx_code: '123456' })), [
    400,
    'invalid_request',
  ])
  t.deepEqual(errorOf(await redeem(api, plain.code, { scope: 'VerifiedEmail' })), [
    400,
    'invalid_scope',
  ])
  t.deepEqual(errorOf(await redeem(api, plain.code, { resource: 'https://x.example' })), [
    400,
    'invalid_target',
  ])
  const details = (id: string) => ({
    authorization_details: JSON.stringify([
      { type: 'openid_credential', credential_configuration_id: id },
    ]),
  })
  t.deepEqual(errorOf(await redeem(api, plain.code, details('VerifiedEmail'))), [
    400,
    'invalid_authorization_details',
  ])
  t.is((await redeem(api, plain.code, { client_id: crypto.randomUUID() })).status, 401)
  const state = await offer(api, tenant, { grant: 'authorization_code' })
  t.deepEqual(errorOf(await redeem(api, state.code)), [400, 'invalid_grant'])
  t.is((await redeem(api, plain.code)).status, 200, 'nothing above used the code up')
  t.deepEqual(errorOf(await redeem(api, plain.code)), [400, 'invalid_grant'])
})

test('details in the token request give identifiers, which the wallet must then use', async (t) => {
  const { code } = await offer(api, tenant)
  const detail = { type: 'openid_credential', credential_configuration_id: 'TenantMembership' }
  const tokens = await redeem(api, code, { authorization_details: JSON.stringify([detail]) })
  t.is(tokens.status, 200, JSON.stringify(tokens.body))
  const [granted] = tokens.body['authorization_details'] as Json[]
  t.like(granted, detail)
  const [identifier] = granted!['credential_identifiers'] as string[]
  const bearer = String(tokens.body['access_token'])
  const byId = await requestCredential(api, tenant, bearer)
  t.is(byId.body['error'], 'invalid_credential_request')
  const named = { credential_configuration_id: undefined, credential_identifier: identifier }
  t.is((await requestCredential(api, tenant, bearer, named)).status, 200)
})

test('of concurrent redemptions of a code one succeeds', async (t) => {
  const { code } = await offer(api, tenant)
  const answers = await Promise.all(Array.from({ length: 12 }, () => redeem(api, code)))
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ body }) => body['error'] === 'invalid_grant').length, 11)
})

test('a transaction code: missing, wrong, right', async (t) => {
  const { code, body } = await offer(api, tenant, { tx_code: true })
  const right = String(body['tx_code'])
  t.regex(right, /^\d{6}$/)
  t.is((await redeem(api, code)).body['error'], 'invalid_request')
  const wrong = right === '000000' ? '000001' : '000000'
  for (let tries = 0; tries < 4; tries += 1)
    t.is((await redeem(api, code, { tx_code: wrong })).body['error'], 'invalid_grant')
  t.is((await redeem(api, code, { tx_code: right })).status, 200)
})

test('five wrong transaction codes burn the offer, also at the same time', async (t) => {
  const { id, code, body } = await offer(api, tenant, { tx_code: true })
  const right = String(body['tx_code'])
  const wrong = right === '000000' ? '000001' : '000000'
  await Promise.all(Array.from({ length: 5 }, () => redeem(api, code, { tx_code: wrong })))
  t.is((await redeem(api, code, { tx_code: right })).body['error'], 'invalid_grant')
  const read = await api.get(`/api/v1/credential-offers/${id}`, tenant.token)
  t.is(read.body['status'], 'expired')
})

test('a withdrawn offer requests nothing, before and after its redemption', async (t) => {
  const before = await offer(api, tenant)
  const remove = (id: string) => api.delete(`/api/v1/credential-offers/${id}`, tenant.token)
  t.is((await remove(before.id)).status, 204)
  t.is((await remove(before.id)).status, 404)
  t.is((await redeem(api, before.code)).body['error'], 'invalid_grant')
  const after = await offer(api, tenant)
  const tokens = await redeem(api, after.code)
  t.is((await remove(after.id)).status, 204)
  const denied = await requestCredential(api, tenant, String(tokens.body['access_token']))
  t.is(denied.body['error'], 'credential_request_denied')
})

test('an offer needs a tenant that issues, and a person of the tenant', async (t) => {
  const silent = await api.workspace()
  const create = (bearer: string, json: Json) => api.post('/api/v1/credential-offers', bearer, json)
  const membership = { credential_configuration_id: 'TenantMembership', user_id: tenant.userId }
  t.is((await create(silent.token, membership)).status, 409)
  t.is((await create(other.token, membership)).status, 404)
  const at = (more: Json) => create(tenant.token, { ...membership, ...more })
  t.is((await at({ user_id: crypto.randomUUID() })).status, 404)
  t.is((await at({ user_id: 'x' })).status, 404)
  t.is((await at({ user_id: undefined })).status, 400)
  t.is((await at({ credential_configuration_id: 'Passport' })).status, 400)
  t.is((await at({ credential_configuration_id: 'AgentDelegation' })).status, 400)
  t.is((await at({ grant: 'authorization_code', tx_code: true })).status, 400)
  t.is((await at({ delegation_id: crypto.randomUUID() })).status, 400)
  const none = {
    credential_configuration_id: 'AgentDelegation',
    delegation_id: crypto.randomUUID(),
  }
  t.is((await at({ ...none, user_id: undefined })).status, 404)
})
