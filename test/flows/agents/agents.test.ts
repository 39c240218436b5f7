/** Agent registration and login over HTTP. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import test from 'ava'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { TENANT_SCOPES } from '../../../actors/domain/scopes.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import {
  BOOTSTRAP,
  callerOf,
  complete,
  demand,
  type Json,
  REGISTER,
  start,
  verify,
} from '../../support/agents/journey.js'
import { sql } from '../../support/storage/sql.js'
import { DEFAULT_TRANSPORT, sharedService } from '../../support/service.js'

const running = await sharedService('plain')
const early = await sharedService('patient')
const { baseUrl } = running
const keySet = createRemoteJWKSet(new URL(`${baseUrl}/.well-known/jwks.json`))

const caller = callerOf(baseUrl)
const { call, post, form } = caller

async function workspace(change: Json = {}) {
  const started = await start(caller)
  const { body } = demand(await complete(caller, started, change), 201)
  const agentId = String((body['agent'] as Json)['id'])
  return { key: started.key, body, agentId }
}

const claimsOf = async (token: unknown) =>
  (await jwtVerify(String(token), keySet, { issuer: baseUrl, typ: 'at+jwt' })).payload

test('both tokens of a bootstrap verify against the published keys', async (t) => {
  const { body, agentId } = await workspace()
  const { body: metadata } = await call(BOOTSTRAP)
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
    tenant_id: metadata['control_plane_tenant_id'],
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
  const verified = await verify(
    caller,
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
  const [row] = await sql<{ hash: string }>(running)`
    select password_hash as hash from accounts where email = ${email}`
  const { verify } = await import('argon2')
  t.true(await verify(row!.hash, password))
  t.false(await verify(row!.hash, `${password}x`))
})

test('a change of tenant settings in the database takes effect', async (t) => {
  const { body } = await workspace()
  const tenantId = String(body['tenant_id'])
  const register = async () => {
    const sent = createAgentKey().registration({ issuer: baseUrl, tenantId })
    const start = { name: 'Guest', tenant_id: tenantId, ...sent }
    return (await post('/api/v1/agents/auth/register/pow', start)).status
  }
  t.is(await register(), 200)
  await sql(running)`update tenants set admit_agents = false where id = ${tenantId}`
  // By a notification, well before the cached tenant expires.
  const endMs = Date.now() + 5_000
  while ((await register()) === 200 && Date.now() < endMs) continue
  t.is(await register(), 403)
})

test('a proof before the minimum duration completes after Retry-After', async (t) => {
  const at = callerOf(early.baseUrl)
  const { challengeId, nonce } = await start(at, `${REGISTER}/pow`)
  const again = () => at.post(`${REGISTER}/pow/complete`, { challenge_id: challengeId, nonce })
  const first = await again()
  t.is(first.status, 425)
  const seconds = Number(first.headers.get('retry-after'))
  t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= 2)
  t.is(first.body['retry_after'], seconds)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  t.is((await again()).status, 200)
})
