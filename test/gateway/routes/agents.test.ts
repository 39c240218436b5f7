import test from 'ava'
import type { GatewayOptions } from '../../../gateway/gateway.js'
import { agentRoutes } from '../../../gateway/routes/agents.js'
import { workspaceRoutes } from '../../../gateway/routes/workspaces.js'
import { createAgentKey } from '../../../runtime/client/agent.js'
import { identityHouse, ISSUER, nonceFor, sql } from '../../support/identity.js'
import { openStage } from '../stage.js'

const house = await identityHouse()
const early = await identityHouse({ minDurationSecs: 60 })
const stageOf = ({ agents, workspaces }: typeof house) =>
  openStage({
    transport: 'uws',
    issuer: ISSUER,
    server: { endpoint_throttle: { enabled: false } },
    gateway: {
      routes: [...agentRoutes, ...workspaceRoutes],
      refs: new Map<string, never>([
        ['agents', agents as never],
        ['workspaces', workspaces as never],
      ]) as GatewayOptions['refs'],
    },
  })
const stage = await stageOf(house)
const earlyStage = await stageOf(early)
test.after.always(async () => {
  await stage.close()
  await earlyStage.close()
  await house.close()
  await early.close()
})

const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'
const REGISTER = '/api/v1/agents/auth/register'

type Json = Record<string, unknown>

async function post(path: string, body: unknown, at = stage, headers: Record<string, string> = {}) {
  const answer = await at.call({
    method: 'POST',
    path,
    headers: { host: 'auth.svc.example', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { ...answer, body: JSON.parse(answer.text) as Json }
}
const get = (path: string) => stage.call({ path, headers: { host: 'auth.svc.example' } })

function registrationBody(tenantId = house.controlPlane.id, change: Json = {}) {
  const key = createAgentKey()
  return {
    key,
    body: { name: 'Agent', ...key.registration({ issuer: ISSUER, tenantId }), ...change },
  }
}

async function started(path: string, at = stage, tenantId = house.controlPlane.id) {
  const { key, body } = registrationBody(tenantId)
  const answer = await post(path, body, at)
  if (answer.status !== 200) throw new Error(answer.text)
  const nonce = nonceFor({
    challengeToken: String(answer.body['challenge_token']),
    difficultyBits: Number(answer.body['difficulty_bits']),
  })
  return { key, answer, challenge_id: String(answer.body['challenge_id']), nonce }
}

test('the bootstrap metadata says what a proof must sign, and may be cached', async (t) => {
  const answer = await get(BOOTSTRAP)
  t.is(answer.status, 200)
  t.is(answer.headers['cache-control'], 'public, max-age=300')
  t.deepEqual(JSON.parse(answer.text), {
    issuer: ISSUER,
    control_plane_tenant_id: house.controlPlane.id,
    tenant_id: house.controlPlane.id,
    key_ownership_proof: {
      suite: 'svc-agent-key-ownership-v1',
      fields: ['suite', 'issuer', 'tenant_id', 'anchor_type', 'key_algorithm', 'public_key'],
      separator: '\n',
      signature_encoding: 'base64url',
    },
    key_algorithms_supported: ['ed25519', 'es256'],
    anchor_types_supported: ['did_key'],
    frameworks_supported: [
      'nextjs',
      'express',
      'fastify',
      'remix',
      'sveltekit',
      'python',
      'go',
      'generic',
    ],
  })
})

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
    tenant_id: house.controlPlane.id,
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
  ['an anchor type that is not built', { anchor_type: 'did_web' }, 400],
  ['an unknown algorithm', { key_algorithm: 'rs256' }, 400],
  ['the algorithm of another key', { key_algorithm: 'es256' }, 400],
  ['a tenant id that is none', { tenant_id: 'x' }, 400],
  ['an unknown tenant', { tenant_id: crypto.randomUUID() }, 404],
  ['an unknown slug', { tenant_slug: 'nobody' }, 404],
  ['a slug in place of the id', { tenant_slug: 'control-plane' }, 200],
  ['an unknown member', { colour: 'red' }, 200],
] as const) {
  test(`a start with ${title} is answered ${status}`, async (t) => {
    const { body } = registrationBody(house.controlPlane.id, change)
    const answer = await post(`${REGISTER}/pow`, body)
    t.is(answer.status, status, answer.text)
    if (status === 400) t.is(answer.body['error'], 'bad_request')
  })
}

for (const key_ownership_proof of [undefined, '', 'AAAA', 'A'.repeat(86)]) {
  test(`the proof ${JSON.stringify(key_ownership_proof)} is refused with a description`, async (t) => {
    const { body } = registrationBody(house.controlPlane.id, { key_ownership_proof })
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
  const { body } = registrationBody(house.controlPlane.id, {
    tenant_id: house.controlPlane.id,
    tenant_slug: 'control-plane',
  })
  t.is((await post(`${REGISTER}/pow`, body)).status, 400)
})

test('direct registration is refused by policy, and answers 201 where it is allowed', async (t) => {
  const refused = await post(REGISTER, registrationBody().body)
  t.is(refused.status, 403)
  t.is(refused.body['error'], 'policy_denied')
  const id = crypto.randomUUID()
  await sql(
    house.database,
    `insert into organizations values ($1, 'Direct', 'direct', 'active', now(), now())`,
    [id],
  )
  await sql(
    house.database,
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

test('a proof that is too early is told how long to wait', async (t) => {
  const { challenge_id, nonce } = await started(
    `${BOOTSTRAP}/pow`,
    earlyStage,
    early.controlPlane.id,
  )
  const body = { challenge_id, nonce, organization_name: 'Early', redirect_uris: [] }
  const answer = await post(`${BOOTSTRAP}/pow/complete`, body, earlyStage)
  t.is(answer.status, 425)
  const seconds = Number(answer.headers['retry-after'])
  t.true(seconds > 0 && seconds <= 60)
  t.is(answer.body['retry_after'], seconds)
  t.is(answer.body['error'], 'too_early')
})

test('a second complete is 400, a known key 409', async (t) => {
  const { key, challenge_id, nonce } = await started(`${REGISTER}/pow`)
  const path = `${REGISTER}/pow/complete`
  t.is((await post(path, { challenge_id, nonce })).status, 200)
  t.is((await post(path, { challenge_id, nonce })).status, 400)
  const sent = key.registration({ issuer: ISSUER, tenantId: house.controlPlane.id })
  const again = await post(`${REGISTER}/pow`, { name: 'Again', ...sent })
  t.is(again.status, 409)
  t.is(again.body['error'], 'conflict')
})

test('a workspace is answered 201 with everything once', async (t) => {
  const { challenge_id, nonce } = await started(`${BOOTSTRAP}/pow`)
  const answer = await post(`${BOOTSTRAP}/pow/complete`, {
    challenge_id,
    nonce,
    organization_name: 'Acme',
    redirect_uris: ['https://app.example/callback'],
    issue_operator_invite: true,
    framework: 'cobol',
  })
  t.is(answer.status, 201, answer.text)
  t.is(answer.headers['cache-control'], 'no-store')
  t.deepEqual(Object.keys(answer.body), [
    'agent',
    'organization_id',
    'organization_name',
    'organization_slug',
    'tenant_id',
    'tenant_name',
    'tenant_slug',
    'environment',
    'application_id',
    'client_id',
    'client_secret',
    'audience',
    'redirect_uris',
    'token_endpoint_auth_method',
    'fixture_end_user',
    'control_plane_access_token',
    'control_plane_expires_in',
    'tenant_access_token',
    'tenant_expires_in',
    'start_snippet',
    'env_block',
    'operator_invite',
    'issuer',
    'discovery_url',
  ])
  t.like(answer.body, { environment: 'sandbox', control_plane_expires_in: 300, issuer: ISSUER })
  t.deepEqual(Object.keys(answer.body['fixture_end_user'] as Json), [
    'id',
    'email',
    'password',
    'status',
    'created_at',
  ])
  const { url } = answer.body['operator_invite'] as { url: string }
  const page = await get(new URL(url).pathname)
  t.is(page.status, 200)
  t.regex(page.headers['content-type'] ?? '', /^text\/html/)
  t.true(page.text.includes('<strong>Acme</strong>'))
  await sql(house.database, 'update operator_invites set used_at = now() where tenant_id = $1', [
    answer.body['tenant_id'],
  ])
  t.is((await get(new URL(url).pathname)).status, 410)
  t.is((await get('/auth/invites/unknown')).status, 404)
})

test('the name of an organization cannot write HTML into the invite page', async (t) => {
  const { challenge_id, nonce } = await started(`${BOOTSTRAP}/pow`)
  const answer = await post(`${BOOTSTRAP}/pow/complete`, {
    challenge_id,
    nonce,
    organization_name: `<script>"'&`,
    redirect_uris: [],
    issue_operator_invite: true,
  })
  const { url } = answer.body['operator_invite'] as { url: string }
  const page = await get(new URL(url).pathname)
  t.true(page.text.includes('<strong>&lt;script&gt;&quot;&#39;&amp;</strong>'))
})

for (const [title, change, pointer] of [
  ['no organization name', { organization_name: undefined }, /organization_name/],
  ['21 redirect URIs', { redirect_uris: Array(21).fill('https://a.example/') }, /redirect_uris/],
  ['a plain redirect URI', { redirect_uris: ['http://a.example/'] }, /redirect_uris\/0/],
  ['an invite flag that is no boolean', { issue_operator_invite: 'yes' }, /issue_operator_invite/],
  ['a framework of 41 characters', { framework: 'f'.repeat(41) }, /framework/],
] as const) {
  test(`a bootstrap with ${title} is a bad request that says where`, async (t) => {
    const { challenge_id, nonce } = await started(`${BOOTSTRAP}/pow`)
    const good = { challenge_id, nonce, organization_name: 'Acme', redirect_uris: [] }
    const answer = await post(`${BOOTSTRAP}/pow/complete`, { ...good, ...change })
    t.is(answer.status, 400)
    t.regex(JSON.stringify(answer.body['errors']), pointer)
    t.is((await post(`${BOOTSTRAP}/pow/complete`, good)).status, 201)
  })
}

for (const [title, body] of [
  ['nobody', {}],
  ['two names', { agent_id: crypto.randomUUID(), key_id: 'x' }],
  ['an id that is none', { agent_id: 'x' }],
  ['an unknown agent', { agent_id: crypto.randomUUID() }],
  ['an unknown key', { key_id: 'unknown' }],
  ['an unknown did', { did: 'did:key:z6MkUnknown' }],
] as const) {
  test(`a login challenge for ${title} is a bad request`, async (t) => {
    const answer = await post('/api/v1/agents/auth/challenge', body)
    t.is(answer.status, 400)
    t.is(answer.body['error'], 'bad_request')
  })
}

test('a failed verify does not say why', async (t) => {
  const { key, challenge_id, nonce } = await started(`${REGISTER}/pow`)
  await post(`${REGISTER}/pow/complete`, { challenge_id, nonce })
  const challenge = async () =>
    (await post('/api/v1/agents/auth/challenge', { key_id: key.fingerprint })).body
  const verify = (body: Json, headers = {}) =>
    post('/api/v1/agents/auth/verify', body, stage, headers)
  const wrong = await challenge()
  const signature = key.signChallenge('something else')
  const failed = await verify({ challenge_id: wrong['challenge_id'], signature })
  const unknown = await verify({ challenge_id: crypto.randomUUID(), signature })
  for (const answer of [failed, unknown]) {
    t.is(answer.status, 400)
    t.is(answer.body['error'], 'invalid_grant')
  }
  t.is(failed.body['detail'], unknown.body['detail'])

  const scoped = await challenge()
  const outside = await verify({
    challenge_id: scoped['challenge_id'],
    signature: key.signChallenge(String(scoped['payload'])),
    scope: 'tenant:manage',
  })
  t.is(outside.status, 400)
  t.is(outside.body['error'], 'invalid_scope')

  const bound = await challenge()
  const proof = {
    challenge_id: bound['challenge_id'],
    signature: key.signChallenge(String(bound['payload'])),
  }
  const refused = await verify(proof, { dpop: 'bad' })
  t.is(refused.status, 401)
  t.is(refused.body['error'], 'use_dpop_nonce')
  t.is(refused.headers['dpop-nonce'], 'nonce')
  t.regex(refused.headers['www-authenticate'] ?? '', /^DPoP error="use_dpop_nonce"/)
  const accepted = await verify(proof, { dpop: 'good' })
  t.is(accepted.body['token_type'], 'DPoP')
})

test('reading oneself needs a token', async (t) => {
  t.is((await get('/api/v1/agents/me')).status, 401)
})
