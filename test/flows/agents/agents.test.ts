/** Agent registration and login over HTTP. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import test from 'ava'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { TENANT_SCOPES } from '../../../actors/domain/scopes.js'
import { createAgentKey } from '../../../runtime/client/agent.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { sql } from '../../support/storage/sql.js'
import { DEFAULT_TRANSPORT, sharedService } from '../../support/service.js'

const running = await sharedService('plain')
const early = await sharedService('patient')
test.after.always(async () => {
  await running.end()
  await early.end()
})
const { baseUrl } = running
const keySet = createRemoteJWKSet(new URL(`${baseUrl}/.well-known/jwks.json`))

type Json = Record<string, unknown>
type Answer = { status: number; headers: Headers; body: Json }

async function call(path: string, init: RequestInit = {}, at = baseUrl): Promise<Answer> {
  const response = await fetch(at + path, init)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? (JSON.parse(text) as Json) : {},
  }
}

const post = (path: string, body: unknown, at = baseUrl) =>
  call(
    path,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    },
    at,
  )

const form = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  call(path, { method: 'POST', headers, body: new URLSearchParams(fields) })

/** Metadata, key, start and nonce. */
async function started(path: string, at = baseUrl) {
  const { body: metadata } = await call('/api/v1/agents/workspace/bootstrap', {}, at)
  const key = createAgentKey()
  const target = {
    issuer: String(metadata['issuer']),
    tenantId: String(metadata['control_plane_tenant_id']),
  }
  const answer = await post(path, { name: 'Journey', ...key.registration(target) }, at)
  const nonce = nonceFor({
    challengeToken: String(answer.body['challenge_token']),
    difficultyBits: Number(answer.body['difficulty_bits']),
  })
  return { key, controlPlane: target.tenantId, challenge_id: answer.body['challenge_id'], nonce }
}

async function workspace(change: Json = {}) {
  const { key, controlPlane, challenge_id, nonce } = await started(
    '/api/v1/agents/workspace/bootstrap/pow',
  )
  const { status, body } = await post('/api/v1/agents/workspace/bootstrap/pow/complete', {
    challenge_id,
    nonce,
    organization_name: 'Journey',
    redirect_uris: ['http://localhost:3000/callback'],
    issue_operator_invite: false,
    framework: 'generic',
    ...change,
  })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return { key, controlPlane, body, agentId: (body['agent'] as { id: string }).id }
}

async function login(
  key: Awaited<ReturnType<typeof started>>['key'],
  selector: Json,
  scope?: string,
) {
  const { body } = await post('/api/v1/agents/auth/challenge', selector)
  return post('/api/v1/agents/auth/verify', {
    challenge_id: body['challenge_id'],
    signature: key.signChallenge(String(body['payload'])),
    ...(scope === undefined ? {} : { scope }),
  })
}

const claimsOf = async (token: unknown) =>
  (await jwtVerify(String(token), keySet, { issuer: baseUrl, typ: 'at+jwt' })).payload

test('both tokens of a bootstrap verify against the published keys', async (t) => {
  const { body, controlPlane, agentId } = await workspace()
  t.is(decodeProtectedHeader(String(body['tenant_access_token'])).alg, 'ES256')
  const shared = {
    sub: agentId,
    client_id: agentId,
    subject_type: 'agent',
    amr: ['pop'],
  }
  const operator = await claimsOf(body['control_plane_access_token'])
  t.like(operator, {
    ...shared,
    tenant_id: controlPlane,
    scope: 'org:read org:create org:manage tenant:manage',
  })
  const tenant = await claimsOf(body['tenant_access_token'])
  t.like(tenant, { ...shared, tenant_id: body['tenant_id'], scope: TENANT_SCOPES.join(' ') })
  for (const claims of [operator, tenant]) {
    t.deepEqual([claims.aud].flat(), [baseUrl])
    t.false('acr' in claims || 'aal' in claims || 'act' in claims)
    t.is(claims.exp! - claims.iat!, 300)
  }
})

test('the agent reads itself with either token, and not without one', async (t) => {
  const { body } = await workspace()
  for (const name of ['control_plane_access_token', 'tenant_access_token']) {
    const authorization = `Bearer ${String(body[name])}`
    const me = await call('/api/v1/agents/me', { headers: { authorization } })
    t.is(me.status, 200)
    t.deepEqual(me.body, body['agent'])
  }
  t.is((await call('/api/v1/agents/me')).status, 401)
})

test('the agent logs in and refreshes, and reuse of a refresh token ends the session', async (t) => {
  const { key, body, agentId } = await workspace()
  const verified = await login(
    key,
    { agent_id: agentId, tenant_id: body['tenant_id'] },
    'users:read vault:list',
  )
  t.is(verified.status, 200)
  t.is(verified.headers.get('cache-control'), 'no-store')
  t.like(verified.body, {
    token_type: 'Bearer',
    expires_in: 300,
    scope: 'users:read vault:list',
    agent_id: agentId,
    tenant_id: body['tenant_id'],
    subject_type: 'agent',
  })
  const refresh = (token: unknown) =>
    form('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: agentId,
      refresh_token: String(token),
    })
  const second = await refresh(verified.body['refresh_token'])
  t.is(second.status, 200)
  const claims = await claimsOf(second.body['access_token'])
  t.like(claims, { sub: agentId, scope: 'users:read vault:list', tenant_id: body['tenant_id'] })
  const third = await refresh(second.body['refresh_token'])
  t.is(third.status, 200)
  t.is((await refresh(verified.body['refresh_token'])).body['error'], 'invalid_grant')
  t.is((await refresh(third.body['refresh_token'])).body['error'], 'invalid_grant')
})

test('the created application gets a token, which introspection accepts', async (t) => {
  const { body } = await workspace()
  const basic = Buffer.from(`${String(body['client_id'])}:${String(body['client_secret'])}`)
  const authorization = `Basic ${basic.toString('base64')}`
  const token = await form('/oauth/token', { grant_type: 'client_credentials' }, { authorization })
  t.is(token.status, 200)
  const access = String(token.body['access_token'])
  const claims = await claimsOf(access)
  t.like(claims, {
    sub: body['client_id'],
    subject_type: 'service',
    tenant_id: body['tenant_id'],
  })
  t.true([claims.aud].flat().includes(String(body['audience'])))
  const known = await form('/oauth/introspect', { token: access }, { authorization })
  t.like(known.body, { active: true, sub: body['client_id'] })
  const foreign = await workspace()
  const other = Buffer.from(
    `${String(foreign.body['client_id'])}:${String(foreign.body['client_secret'])}`,
  )
  const unknown = await form(
    '/oauth/introspect',
    { token: access },
    { authorization: `Basic ${other.toString('base64')}` },
  )
  t.deepEqual(unknown.body, { active: false })
})

// The fetch of a plain Node program speaks HTTP/1.1 only.
const onHttp1 = DEFAULT_TRANSPORT === 'plain_http' ? test : () => undefined
onHttp1('the generic start sample runs on the environment block as it is', async (t) => {
  const { body } = await workspace({ framework: 'generic' })
  const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'start.mjs')
  writeFileSync(file, String(body['start_snippet']))
  const { stdout } = await promisify(execFile)(process.execPath, [file], {
    env: parseEnv(String(body['env_block'])),
  })
  t.like(JSON.parse(stdout), { iss: baseUrl, sub: body['client_id'], tenant_id: body['tenant_id'] })
})

test('the fixture user is stored with an argon2 hash of the shown password', async (t) => {
  const { body } = await workspace()
  const { email, password } = body['fixture_end_user'] as { email: string; password: string }
  const [row] = await sql<{ hash: string }>(
    running.db.database,
    'select password_hash as hash from accounts where email = $1',
    [email],
  )
  const { verify } = await import('argon2')
  t.true(await verify(row!.hash, password))
  t.false(await verify(row!.hash, `${password}x`))
})

// Alone: fifty waiting transactions take all connections, and other requests would be refused as overload.
test.serial(
  'of 50 concurrent completions of a registration one succeeds, the others get 400',
  async (t) => {
    const { challenge_id, nonce } = await started('/api/v1/agents/auth/register/pow')
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        post('/api/v1/agents/auth/register/pow/complete', { challenge_id, nonce }),
      ),
    )
    t.is(answers.filter(({ status }) => status === 200).length, 1)
    t.is(answers.filter(({ status }) => status === 400).length, 49)
  },
)

test('a change of tenant settings in the database takes effect', async (t) => {
  const { body } = await workspace()
  const tenantId = String(body['tenant_id'])
  const register = async () => {
    const sent = createAgentKey().registration({ issuer: baseUrl, tenantId })
    const start = { name: 'Guest', tenant_id: tenantId, ...sent }
    return (await post('/api/v1/agents/auth/register/pow', start)).status
  }
  t.is(await register(), 200)
  await sql(running.db.database, 'update tenants set admit_agents = false where id = $1', [
    tenantId,
  ])
  // By a notification, well before the cached tenant expires.
  const endMs = Date.now() + 5_000
  while ((await register()) === 200 && Date.now() < endMs) continue
  t.is(await register(), 403)
})

test.serial('of 50 concurrent completions of a workspace one succeeds', async (t) => {
  const { challenge_id, nonce } = await started('/api/v1/agents/workspace/bootstrap/pow')
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      post('/api/v1/agents/workspace/bootstrap/pow/complete', {
        challenge_id,
        nonce,
        organization_name: 'Raced',
        redirect_uris: [],
      }),
    ),
  )
  t.is(answers.filter(({ status }) => status === 201).length, 1)
  t.is(answers.filter(({ status }) => status === 400).length, 49)
})

test.serial('of 50 concurrent verifies of one challenge one succeeds', async (t) => {
  const { key, agentId } = await workspace()
  const { body } = await post('/api/v1/agents/auth/challenge', { agent_id: agentId })
  const signature = key.signChallenge(String(body['payload']))
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      post('/api/v1/agents/auth/verify', { challenge_id: body['challenge_id'], signature }),
    ),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  const lost = answers.filter(({ status }) => status === 400)
  t.is(lost.length, 49)
  t.true(lost.every(({ body }) => body['error'] === 'invalid_grant'))
})

test('a proof before the minimum duration completes after Retry-After', async (t) => {
  const at = early.baseUrl
  const { challenge_id, nonce } = await started('/api/v1/agents/auth/register/pow', at)
  const complete = () =>
    post('/api/v1/agents/auth/register/pow/complete', { challenge_id, nonce }, at)
  const first = await complete()
  t.is(first.status, 425)
  const seconds = Number(first.headers.get('retry-after'))
  t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= 2)
  t.is(first.body['retry_after'], seconds)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  t.is((await complete()).status, 200)
})
