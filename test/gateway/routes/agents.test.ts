import test from 'ava'
import { ISSUER } from '../../support/identity/identity.js'
import { sql } from '../../support/storage/sql.js'
import { BOOTSTRAP, type Json, openDoors, REGISTER } from './doors.js'

const doors = await openDoors()
test.after.always(() => doors.close())
const { resources, post, get, registrationBody, started } = doors

test('a registration starts, completes, logs in and reads itself', async (t) => {
  const { key, answer, challenge_id, nonce } = await started(`${REGISTER}/pow`)
  t.deepEqual(Object.keys(answer.body).sort(), [
    'algorithm',
    'challenge_id',
    'challenge_token',
    'difficulty_bits',
    'expires_at',
    'expires_in',
    'min_duration_seconds',
    'pow_format',
  ])
  t.like(answer.body, {
    algorithm: 'sha256',
    pow_format: '{challenge_token}:{nonce}',
    expires_in: 300,
  })
  t.is(answer.headers['cache-control'], 'no-store')
  const done = await post(`${REGISTER}/pow/complete`, { challenge_id, nonce })
  t.is(done.status, 200)
  t.deepEqual(Object.keys(done.body).sort(), ['agent', 'agent_id', 'issuer', 'key', 'tenant_id'])
  const agent = done.body['agent'] as Json
  t.deepEqual(Object.keys(agent), [
    'id',
    'tenant_id',
    'name',
    'status',
    'did',
    'anchors',
    'keys',
    'scopes',
    'metadata',
    'created_at',
    'updated_at',
    'last_authenticated_at',
  ])
  t.is(agent['last_authenticated_at'], null)
  t.regex(String(agent['created_at']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  const challenged = await post('/api/v1/agents/auth/challenge', { did: key.did })
  t.is(challenged.status, 200)
  t.like(challenged.body, {
    agent_id: agent['id'],
    key_id: key.fingerprint,
    algorithm: 'ed25519',
    expires_in: 120,
  })
  const verified = await post('/api/v1/agents/auth/verify', {
    challenge_id: challenged.body['challenge_id'],
    signature: key.signChallenge(String(challenged.body['payload'])),
    key_id: key.fingerprint,
    scope: 'openid vault:read',
  })
  t.is(verified.status, 200)
  t.like(verified.body, {
    token_type: 'Bearer',
    expires_in: 300,
    scope: 'openid vault:read',
    agent_id: agent['id'],
    tenant_id: resources.controlPlane.id,
    subject_type: 'agent',
  })
  t.is(verified.headers['cache-control'], 'no-store')
})

for (const [title, change, status] of [
  ['no name', { name: undefined }, 400],
  ['an empty name', { name: '' }, 400],
  ['a name of 121 characters', { name: 'n'.repeat(121) }, 400],
  ['a name of 120 characters outside of the first plane', { name: '🤖'.repeat(120) }, 200],
  ['a control character in the name', { name: 'a\u0007b' }, 400],
  ['a name that is no string', { name: 7 }, 400],
  ['an anchor type that is not built', { anchor_type: 'erc8004' }, 400],
  ['a did:web that is not named', { anchor_type: 'did_web', anchor_value: undefined }, 400],
  ['an unknown algorithm', { key_algorithm: 'rs256' }, 400],
  ['the algorithm of another key', { key_algorithm: 'es256' }, 400],
  ['a malformed tenant id', { tenant_id: 'x' }, 400],
  ['an unknown tenant', { tenant_id: crypto.randomUUID() }, 404],
  ['an unknown slug', { tenant_slug: 'unknown-slug' }, 404],
  ['a slug in place of the id', { tenant_slug: 'control-plane' }, 200],
  ['an unknown member', { colour: 'red' }, 200],
] as const) {
  test(`a start with ${title} is answered ${status}`, async (t) => {
    const { body } = registrationBody(resources.controlPlane.id, change)
    const answer = await post(`${REGISTER}/pow`, body)
    t.is(answer.status, status, answer.text)
    if (status === 400) t.is(answer.body['error'], 'bad_request')
  })
}

for (const key_ownership_proof of [undefined, '', 'AAAA', 'A'.repeat(86)]) {
  test(`the proof ${JSON.stringify(key_ownership_proof)} is refused with a description`, async (t) => {
    const { body } = registrationBody(resources.controlPlane.id, { key_ownership_proof })
    for (const path of [`${REGISTER}/pow`, `${BOOTSTRAP}/pow`]) {
      const answer = await post(path, body)
      t.is(answer.status, 400)
      t.is(answer.headers['content-type'], 'application/problem+json')
      t.like(answer.body['key_ownership_proof'], {
        suite: 'svc-agent-key-ownership-v1',
        separator: '\n',
        signature_encoding: 'base64url',
      })
    }
  })
}

test('id and slug together are a bad request', async (t) => {
  const { body } = registrationBody(resources.controlPlane.id, {
    tenant_id: resources.controlPlane.id,
    tenant_slug: 'control-plane',
  })
  t.is((await post(`${REGISTER}/pow`, body)).status, 400)
})

test('direct registration is refused by policy, and answers 201 where it is allowed', async (t) => {
  const refused = await post(REGISTER, registrationBody().body)
  t.like(refused, { status: 403, body: { error: 'policy_denied' } })
  const id = crypto.randomUUID()
  await sql(resources.database)`
    insert into organizations values (${id}, 'Direct', 'direct', 'active', now(), now())`
  await sql(
    resources.database,
    `insert into tenants (id, organization_id, name, slug, environment, admit_agents,
       direct_agent_registration, created_at, updated_at)
     values ($1, $1, 'Direct', 'direct', 'production', false, true, now(), now())`,
    [id],
  )
  const { body } = registrationBody(id, { tenant_slug: 'direct' })
  const answer = await post(REGISTER, body)
  t.is(answer.status, 201)
  t.like(answer.body, { tenant_id: id, issuer: ISSUER })
  t.is((await post(REGISTER, body)).status, 409)
  const closed = await post(`${REGISTER}/pow`, registrationBody(id, { tenant_id: id }).body)
  t.is(closed.status, 403)
})

for (const nonce of [
  undefined,
  null,
  7,
  '',
  '01',
  '-1',
  '+1',
  '1e3',
  ' 1',
  '18446744073709551616',
]) {
  test(`the nonce ${JSON.stringify(nonce)} is a bad request that changes nothing`, async (t) => {
    const { challenge_id, nonce: right } = await started(`${REGISTER}/pow`)
    for (let count = 0; count < 11; count += 1) {
      const answer = await post(`${REGISTER}/pow/complete`, { challenge_id, nonce })
      t.is(answer.status, 400)
    }
    const done = await post(`${REGISTER}/pow/complete`, { challenge_id, nonce: right })
    t.is(done.status, 200)
  })
}

test('a second complete is 400, a known key 409', async (t) => {
  const { key, challenge_id, nonce } = await started(`${REGISTER}/pow`)
  const path = `${REGISTER}/pow/complete`
  t.is((await post(path, { challenge_id, nonce })).status, 200)
  t.is((await post(path, { challenge_id, nonce })).status, 400)
  const sent = key.registration({ issuer: ISSUER, tenantId: resources.controlPlane.id })
  const again = await post(`${REGISTER}/pow`, { name: 'Again', ...sent })
  t.like(again, { status: 409, body: { error: 'conflict' } })
})

for (const [title, body] of [
  ['neither id nor name', {}],
  ['two names', { agent_id: crypto.randomUUID(), key_id: 'x' }],
  ['a malformed id', { agent_id: 'x' }],
  ['an unknown agent', { agent_id: crypto.randomUUID() }],
  ['an unknown key', { key_id: 'unknown' }],
  ['an unknown did', { did: 'did:key:z6MkUnknown' }],
] as const) {
  test(`a login challenge for ${title} is a bad request`, async (t) => {
    const answer = await post('/api/v1/agents/auth/challenge', body)
    t.like(answer, { status: 400, body: { error: 'bad_request' } })
  })
}

test('a failed verify does not say why', async (t) => {
  const { key, challenge_id, nonce } = await started(`${REGISTER}/pow`)
  await post(`${REGISTER}/pow/complete`, { challenge_id, nonce })
  const challenge = async () =>
    (await post('/api/v1/agents/auth/challenge', { key_id: key.fingerprint })).body
  const verify = (body: Json, headers = {}) => post('/api/v1/agents/auth/verify', body, headers)
  const wrong = await challenge()
  const signature = key.signChallenge('something else')
  const failed = await verify({ challenge_id: wrong['challenge_id'], signature })
  const unknown = await verify({ challenge_id: crypto.randomUUID(), signature })
  for (const answer of [failed, unknown]) {
    t.like(answer, { status: 400, body: { error: 'invalid_grant' } })
  }
  t.is(failed.body['detail'], unknown.body['detail'])

  const scoped = await challenge()
  const outside = await verify({
    challenge_id: scoped['challenge_id'],
    signature: key.signChallenge(String(scoped['payload'])),
    scope: 'tenant:manage',
  })
  t.like(outside, { status: 400, body: { error: 'invalid_scope' } })

  const bound = await challenge()
  const proof = {
    challenge_id: bound['challenge_id'],
    signature: key.signChallenge(String(bound['payload'])),
  }
  const refused = await verify(proof, { dpop: 'bad' })
  t.like(refused, { status: 401, body: { error: 'use_dpop_nonce' } })
  t.is(refused.headers['dpop-nonce'], 'nonce')
  t.regex(refused.headers['www-authenticate'] ?? '', /^DPoP error="use_dpop_nonce"/)
  const accepted = await verify(proof, { dpop: 'good' })
  t.is(accepted.body['token_type'], 'DPoP')
})

test('reading oneself needs a token', async (t) => {
  t.is((await get('/api/v1/agents/me')).status, 401)
})
