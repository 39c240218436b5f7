/**
 * Refusals of operations outside of OAuth endpoints (docs/reference/errors.md).
 *
 * `wallet_*`, `recipient_not_allowed`, `contract_not_allowed` and `billing_*` belong to features that do not exist.
 * `budget_exceeded` is tested in flows/egress-limits, `captcha_degraded_throttled` in flows/captcha.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { KEY_LIFETIME_MS } from '../../../storage/platform/sealing/seal.js'
import { apiOf, claimsOf } from '../../support/api.js'
import { ask, decide, delegate, DEVICE } from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { BOOTSTRAP, callerOf, REGISTER, start } from '../../support/agents/journey.js'
import { proofFor } from '../../support/identity/proof.js'
import { isProblem } from '../../support/service/refusals.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { ownService } from '../../support/service/own-service.js'
import { PUBLIC } from '../../support/commerce/shop.js'
import { bearer, type Row, type Scene, test, UNKNOWN_ID } from './scene.js'

const get = (
  { running }: Pick<Scene, 'running'>,
  path: string,
  headers: Record<string, string> = {},
) => callerOf(running.baseUrl).call(path, { headers })
const post = (
  { running }: Scene,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) => callerOf(running.baseUrl).post(path, body, headers)
const asHere = (scene: Scene, path: string, body: unknown, headers: Record<string, string> = {}) =>
  post(scene, path, body, { ...bearer(scene.here.token), ...headers })
const APPLICATIONS = '/api/v1/applications'
const APPLICATION = { name: 'A', redirect_uris: [] }

/** A DPoP-bound token for the API of the service. */
async function bound({ running, here }: Scene): Promise<string> {
  const { clientId, secret } = await relyingParty(running, here, {
    scopes: ['applications:read'],
    grantTypes: ['client_credentials'],
  })
  const dpop = await proofFor('POST', `${running.baseUrl}/oauth/token`)
  const fields = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: secret,
    audience: running.issuer,
  }
  const { body } = await callerOf(running.baseUrl).form('/oauth/token', fields, { dpop })
  return String(body['access_token'])
}

async function polled(scene: Scene, change: (userCode: string, deviceCode: string) => unknown) {
  const asked = await ask(scene.api, scene.here.token, { scope: 'openid' })
  await change(asked.userCode, asked.deviceCode)
  return asHere(scene, `${DEVICE}/token`, { device_code: asked.deviceCode })
}

const NO_CHALLENGE = { 'www-authenticate': null }
const METADATA = String.raw`resource_metadata="http[^"]+/\.well-known/oauth-protected-resource"`
const SCOPES = 'scope="applications:read applications:manage"'
const INVALID_TOKEN = {
  'www-authenticate': new RegExp(
    `^Bearer error="invalid_token", error_description="[^"]+", ${METADATA}(?:, scope="[a-z:]+( [a-z:]+)*")?$`,
  ),
}

async function delegatedTo({ api, here, ada }: Scene): Promise<string> {
  return (await delegate(api, here.token, ada)).token
}

type Told = readonly [
  row: string,
  name: string,
  when: string,
  provoke: Row['provoke'],
  headers?: Row['headers'],
]
// biome-ignore format: a table
const ROWS: readonly Told[] = [
  ['400 bad_request', 'bad-request', 'a missing field', (s) => asHere(s, APPLICATIONS, {}), NO_CHALLENGE],
  ['400 bad_request', 'bad-request', 'unsupported input', (s) => asHere(s, APPLICATIONS, { ...APPLICATION, grant_types: ['password'] })],
  ['400 bad_request', 'bad-request', 'a limit of 0', (s) => get(s, `${APPLICATIONS}?limit=0`, bearer(s.here.token))],
  ['400 bad_request', 'bad-request', 'half a cursor', (s) => get(s, `${APPLICATIONS}?cursor_id=${UNKNOWN_ID}`, bearer(s.here.token))],
  ['400 invalid_redirect_uri', 'bad-request', 'a redirect URI with a wildcard', (s) => asHere(s, APPLICATIONS, { ...APPLICATION, redirect_uris: ['https://*.example/'] })],
  ['400 invalid_grant', 'bad-request', 'an unknown challenge', (s) => post(s, '/api/v1/agents/auth/verify', { challenge_id: UNKNOWN_ID, signature: 'x' })],
  ['400 invalid_grant', 'bad-request', 'an unknown delegation', (s) => asHere(s, `${DEVICE}/token`, { device_code: 'x' })],
  ['400 invalid_scope', 'bad-request', 'an unknown scope of a delegation', (s) => asHere(s, DEVICE, { scope: 'fly' })],
  ['400 authorization_pending', 'bad-request', 'the user has not decided', (s) => polled(s, () => undefined), { 'retry-interval': /^5$/ }],
  ['400 slow_down', 'bad-request', 'two concurrent polls', (s) => polled(s, (_, code) => asHere(s, `${DEVICE}/token`, { device_code: code })), { 'retry-interval': /^10$/ }],
  ['400 access_denied', 'bad-request', 'the user denied the request', (s) => polled(s, (userCode) => decide(s.ada, { userCode }, 'deny'))],
  ['400 expired_token', 'bad-request', 'the request has expired', (s) => polled(s, (_, code) => sql(s.running)`
    update delegation_requests set expires_at = now()
    where device_code_sha256 = sha256(${Buffer.from(code)}::bytea)`)],
  ['401 unauthorized', 'unauthorized', 'an unknown scheme', (s) => get(s, APPLICATIONS, { authorization: 'Negotiate x' }), INVALID_TOKEN],
  ['401 unauthorized', 'unauthorized', 'userinfo with a malformed token', (s) => get(s, '/userinfo', { authorization: 'Bearer a b' }), INVALID_TOKEN],
  ['401 unauthorized', 'unauthorized', 'userinfo without a token', (s) => get(s, '/userinfo'), { 'www-authenticate': /^Bearer / }],
  ['401 token_revoked', 'token-revoked', 'the client revoked it', async (s) => {
    const { key, agentId } = await s.api.register(s.here.tenantId)
    const { body } = await s.api.login(key, { agent_id: agentId, tenant_id: s.here.tenantId })
    await callerOf(s.running.baseUrl).form('/oauth/revoke', { client_id: agentId, token: String(body['access_token']) })
    return get(s, '/api/v1/agents/me', bearer(body['access_token']))
  }, INVALID_TOKEN],
  ['401 invalid_dpop_proof', 'unauthorized', 'a bound token as bearer', async (s) => get(s, APPLICATIONS, bearer(await bound(s))), { 'www-authenticate': /^DPoP error="invalid_dpop_proof", error_description="[^"]+", algs="/ }],
  ['401 invalid_dpop_proof', 'unauthorized', 'a proof by another key', async (s) => get(s, APPLICATIONS, { authorization: `DPoP ${await bound(s)}`, dpop: await proofFor('GET', s.running.baseUrl + APPLICATIONS) }), { 'www-authenticate': /^DPoP error="invalid_dpop_proof"/ }],
  ['403 forbidden', 'forbidden', 'a delegated token where a direct one is needed', async (s) => get(s, '/api/v1/agents/me', bearer(await delegatedTo(s))), NO_CHALLENGE],
  ['403 insufficient_scope', 'insufficient-scope', 'a token without the scope', async (s) => get(s, APPLICATIONS, bearer(await delegatedTo(s))), { 'www-authenticate': new RegExp(`^Bearer error="insufficient_scope", ${SCOPES}, ${METADATA}, error_description="[^"]+"$`) }],
  ['403 policy_denied', 'policy-denied', 'a registration that the tenant does not admit', async (s) => {
    await sql(s.running)`update tenants set admit_agents = false where id = ${s.there.tenantId}`
    const registration = createAgentKey().registration({ issuer: s.running.issuer, tenantId: s.there.tenantId })
    return post(s, `${REGISTER}/pow`, { name: 'x', tenant_id: s.there.tenantId, ...registration })
  }],
  ['404 not_found', 'not-found', 'no such route', (s) => get(s, '/api/v1/nothing')],
  ['404 not_found', 'not-found', 'an application of another tenant', async (s) => {
    const { clientId } = await relyingParty(s.running, s.there)
    return get(s, `${APPLICATIONS}/${clientId}`, bearer(s.here.token))
  }],
  ['404 not_found', 'not-found', 'a tenant that issues no credentials', (s) => get(s, `/credential-issuers/${String(s.here.body['tenant_slug'])}/.well-known/jwks.json`)],
  ['404 not_found', 'not-found', 'registration that is not enabled', (s) => post(s, '/oauth/register', { redirect_uris: [] })],
  ['409 conflict', 'conflict', 'a key that is registered', async (s) => {
    const registration = s.here.key.registration({ issuer: s.running.issuer, tenantId: s.here.controlPlane })
    return post(s, `${BOOTSTRAP}/pow`, { name: 'again', ...registration })
  }],
  ['422 unprocessable_content', 'unprocessable-content', 'an idempotency key with another body', async (s) => {
    const key = { 'idempotency-key': crypto.randomUUID() }
    await asHere(s, APPLICATIONS, APPLICATION, key)
    return asHere(s, APPLICATIONS, { ...APPLICATION, name: 'B' }, key)
  }],
]

export const OPERATIONS: readonly Row[] = ROWS.map(([row, name, when, provoke, headers]) => {
  const [status = '', code = ''] = row.split(' ')
  return { form: 'problem', status: Number(status), code, name, when, provoke, headers }
})

test.serial('401 delegation_expired: a delegation has ended, and its token with it', async (t) => {
  const { running, strict, api, here, ada } = t.context
  const asked = await ask(api, here.token, { scope: 'openid vault:list' })
  t.is((await decide(ada, asked)).status, 303)
  const body = { device_code: asked.deviceCode }
  const given = await callerOf(strict.baseUrl).post(`${DEVICE}/token`, body, bearer(here.token))
  t.is(given.status, 200, given.text)
  t.true(Number(given.body['expires_in']) <= 4)
  const list = () => get(t.context, '/api/v1/vault/credentials', bearer(given.body['access_token']))
  let answer = await list()
  while (answer.status === 200) {
    await sleep(100)
    answer = await list()
  }
  isProblem(t, answer, running.issuer, {
    status: 401,
    code: 'delegation_expired',
    name: 'delegation-expired',
    headers: INVALID_TOKEN,
  })
  // Expired, not revoked.
  const { delegation_id: id } = claimsOf(given.body['access_token'])
  await sql(running)`
    update delegations set revoked_at = expires_at, revoked_reason = 'revoked' where id = ${id}`
  t.is((await list()).body['error'], 'token_expired')
})

test.serial('codes of features that are off are neither produced nor described', async (t) => {
  const codes = [
    'wallet_frozen',
    'wallet_not_provisioned',
    'recipient_not_allowed',
    'contract_not_allowed',
    'billing_feature_disabled',
    'billing_suspended',
  ]
  const { strict } = t.context
  const described = await (await fetch(`${strict.baseUrl}/openapi.json`)).text()
  for (const code of codes) {
    t.false(described.includes(code), code)
    const page = await fetch(`${strict.baseUrl}/errors/${code.replaceAll('_', '-')}`)
    t.is(page.status, 404)
  }
})

test.serial('401 use_dpop_nonce: the nonce comes with it, and serves', async (t) => {
  const { running, strict } = t.context
  const token = await bound(t.context)
  const address = strict.baseUrl + APPLICATIONS
  const dpop = await proofFor('GET', address)
  const headers = { authorization: `DPoP ${token}`, dpop }
  const refused = await callerOf(strict.baseUrl).call(APPLICATIONS, { headers })
  isProblem(t, refused, running.issuer, {
    status: 401,
    // The key is checked before the nonce.
    code: 'invalid_dpop_proof',
    name: 'unauthorized',
    headers: { 'www-authenticate': /^DPoP error="invalid_dpop_proof"/, 'dpop-nonce': /^.+$/ },
  })
})

test.serial('403 forbidden: a token at the host of another tenant', async (t) => {
  const { api, here, there } = t.context
  const host = `${String(there.body['tenant_slug'])}.localhost`
  const refused = await api.call('GET', '/api/v1/agents/me', {
    token: here.token,
    headers: { host },
  })
  t.like(refused, { status: 403, body: { error: 'forbidden' } })
  t.is(refused.headers['content-type'], 'application/problem+json')
})

test.serial('421 misdirected_request: an unknown host', async (t) => {
  const elsewhere = apiOf(t.context.strict)
  t.teardown(() => elsewhere.close())
  const refused = await elsewhere.call('GET', '/api/v1/capabilities', {
    headers: { host: 'evil.example' },
  })
  t.like(refused, { status: 421, body: { error: 'misdirected_request' } })
})

test.serial('425 too early: Retry-After and retry_after say the same', async (t) => {
  const { running, strict } = t.context
  const caller = callerOf(strict.baseUrl)
  for (const path of [BOOTSTRAP, REGISTER]) {
    const { challengeId, nonce } = await start(caller, `${path}/pow`)
    const workspace = { organization_name: 'x', redirect_uris: [], framework: 'generic' }
    const answer = await caller.post(`${path}/pow/complete`, {
      challenge_id: challengeId,
      nonce,
      issue_operator_invite: false,
      ...(path === BOOTSTRAP ? workspace : {}),
    })
    isProblem(t, answer, running.issuer, {
      status: 425,
      code: 'too_early',
      name: 'too-early',
      headers: { 'retry-after': /^[1-9][0-9]?$/ },
    })
    t.is(answer.body['retry_after'], Number(answer.headers.get('retry-after')))
  }
})

test.serial('429 rate_limited: the eleventh registration within a minute', async (t) => {
  const { running, strict } = t.context
  const { post: send } = callerOf(strict.baseUrl)
  let answer = await send(`${REGISTER}/pow`, {})
  for (let n = 0; n < 12 && answer.status !== 429; n += 1)
    answer = await send(`${REGISTER}/pow`, {})
  isProblem(t, answer, running.issuer, {
    status: 429,
    code: 'rate_limited',
    name: 'rate-limited',
    headers: {
      'retry-after': /^[1-9][0-9]*$/,
      ratelimit: /"registration";r=0;t=[0-9]+/,
      'ratelimit-policy': /"registration";q=10;w=60/,
    },
    members: { 'violated-policies': ['registration'] },
  })
  t.is(answer.body['retry_after'], Number(answer.headers.get('retry-after')))
})

test.serial('402: what x402 asks for, in the header and in the body', async (t) => {
  const { running } = t.context
  const make = async (path: string, body: unknown) => {
    const made = await asHere(t.context, `/api/v1/commerce/${path}`, body)
    t.is(made.status, 201, made.text)
    return made.body
  }
  const { id: product_id } = await make('products', { name: 'Tea' })
  const price = { product_id, amount_minor: 100, currency: 'USD' }
  const { id: price_id } = await make('prices', price)
  const pay_to = `0x${'1'.repeat(40)}`
  const x402 = { network: 'eip155:84532', pay_to }
  const link = await make('payment-links', { price_id, quantity: 1, x402 })
  const path = `${PUBLIC}/payment-links/${String(link['token'])}/x402`
  const answer = await get({ running }, `${path}?buyer_country=US&buyer_region=CA`)
  t.is(answer.status, 402, answer.text)
  const header = Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString()
  t.deepEqual(JSON.parse(header), answer.body)
})

test.serial('503: not ready has no reason in the answer and is not cached', async (t) => {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  // The gateway sets deadlines by the real clock.
  const environment = { SVC_SERVER__REQUEST_TIMEOUT_SECS: '7200' }
  const cut = await ownService({ transport: 'plain_http', clock, environment })
  t.teardown(() => cut.end())
  await cut.kms.interrupt()
  // Keys in memory have run out.
  aheadMs = KEY_LIFETIME_MS
  const { call } = callerOf(cut.baseUrl)
  let answer = await call('/health/ready')
  for (let n = 0; n < 200 && answer.status === 200; n += 1) {
    await sleep(50)
    answer = await call('/health/ready')
  }
  await cut.kms.resume()
  t.is(answer.status, 503)
  t.deepEqual(answer.body, { status: 'unavailable' })
  t.is(answer.headers.get('cache-control'), 'no-store')
})
