import test from 'ava'
import { ISSUER } from '../../support/identity/identity.js'
import { sql } from '../../support/storage/sql.js'
import { BOOTSTRAP, type Json, openDoors } from './doors.js'

const doors = await openDoors()
const early = await openDoors({ minDurationSecs: 60 })
test.after.always(async () => {
  await doors.close()
  await early.close()
})
const { resources, post, get, started } = doors

test('the bootstrap metadata says what a proof must sign, and may be cached', async (t) => {
  const answer = await get(BOOTSTRAP)
  t.is(answer.status, 200)
  t.is(answer.headers['cache-control'], 'public, max-age=300')
  t.deepEqual(JSON.parse(answer.text), {
    issuer: ISSUER,
    control_plane_tenant_id: resources.controlPlane.id,
    tenant_id: resources.controlPlane.id,
    key_ownership_proof: {
      suite: 'svc-agent-key-ownership-v1',
      fields: ['suite', 'issuer', 'tenant_id', 'anchor_type', 'key_algorithm', 'public_key'],
      separator: '\n',
      signature_encoding: 'base64url',
    },
    key_algorithms_supported: ['ed25519', 'es256'],
    anchor_types_supported: ['did_key', 'did_web'],
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

test('a proof that is too early gets the time to wait', async (t) => {
  const { challenge_id, nonce } = await early.started(`${BOOTSTRAP}/pow`)
  const body = { challenge_id, nonce, organization_name: 'Early', redirect_uris: [] }
  const answer = await early.post(`${BOOTSTRAP}/pow/complete`, body)
  t.is(answer.status, 425)
  const seconds = Number(answer.headers['retry-after'])
  t.true(seconds > 0 && seconds <= 60)
  t.is(answer.body['retry_after'], seconds)
  t.is(answer.body['error'], 'too_early')
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
  t.true(page.text.includes('operate Acme.'))
  await sql(resources.database)`
    update operator_invites set used_at = now() where tenant_id = ${answer.body['tenant_id']}`
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
  t.true(page.text.includes('operate &lt;script&gt;&quot;&#39;&amp;.'))
  t.false(page.text.includes('<script>'))
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
