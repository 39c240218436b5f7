/** Refusals of the OAuth endpoints (docs/reference/errors.md). */
import type { ExecutionContext } from 'ava'
import { CIBA_GRANT } from '../../support/oauth/ciba.js'
import { delegate, ownToken } from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { type Answer, callerOf } from '../../support/agents/journey.js'
import { proofFor } from '../../support/identity/proof.js'
import { isOAuthError, isProblem, type Refusal } from '../../support/service/refusals.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
} from '../../support/oauth/relying-party.js'
import {
  DEVICE_GRANT,
  EXCHANGE_GRANT,
  type Fields,
  type Row,
  type Scene,
  secretOf,
  send,
  test,
  UNKNOWN_ID,
} from './scene.js'

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const basicOf = ({ clientId }: RelyingParty, secret: string) =>
  `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`
const token = (scene: Scene, fields: Fields, headers: Fields = {}) =>
  send(scene, '/oauth/token', fields, headers)
const asWeb = (scene: Scene, fields: Fields, headers: Fields = {}) =>
  token(scene, { ...secretOf(scene.web), ...fields }, headers)

/** The form that redeems a new code of the application. */
async function code({ human, ada: { browser } }: Scene, party: RelyingParty): Promise<Fields> {
  const { url, verifier } = await party.journey({ scope: 'openid email' })
  const answer = callbackOf(await authorized(browser, human, url))
  return {
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  }
}
const granted = ({ status, body, text }: Answer) => {
  if (status !== 200) throw new Error(text)
  return body
}
async function device(scene: Scene, party = scene.web): Promise<Fields> {
  const fields = { ...secretOf(party), scope: 'openid' }
  const { body } = await send(scene, '/oauth/device/code', fields)
  const { device_code, user_code } = body as { device_code: string; user_code: string }
  return { grant_type: DEVICE_GRANT, device_code, user_code }
}
async function asked(scene: Scene, party = scene.web): Promise<Fields> {
  const fields = { ...secretOf(party), scope: 'openid', login_hint: scene.human.email }
  const { body } = await send(scene, '/bc-authorize', fields)
  return { grant_type: CIBA_GRANT, auth_req_id: String(body['auth_req_id']) }
}
const expire = ({ running }: Scene, secret: string) =>
  sql(running)`
    update backchannel_requests set expires_at = now()
    where code_sha256 = sha256(${Buffer.from(secret)}::bytea)`

type Told = readonly [
  code: string,
  when: string,
  provoke: (scene: Scene) => Promise<Answer>,
  more?: Pick<Refusal, 'headers' | 'members'>,
]

// RFC 6749 section 5.2: a challenge only for the scheme of the request.
const NO_CHALLENGE = { headers: { 'www-authenticate': null, 'dpop-nonce': null } }

// biome-ignore format: a table
const BAD_REQUESTS: readonly Told[] = [
  ['invalid_request', 'grant_type is missing', (s) => asWeb(s, {})],
  ['invalid_request', 'grant_type is empty', (s) => asWeb(s, { grant_type: '' })],
  ['invalid_request', 'code is missing', (s) => asWeb(s, { grant_type: 'authorization_code' })],
  ['invalid_request', 'refresh_token is missing', (s) => asWeb(s, { grant_type: 'refresh_token' })],
  ['invalid_request', 'device_code is missing', (s) => asWeb(s, { grant_type: DEVICE_GRANT })],
  ['invalid_request', 'auth_req_id is missing', (s) => asWeb(s, { grant_type: CIBA_GRANT })],
  ['invalid_request', 'subject_token is missing', (s) => asWeb(s, { grant_type: EXCHANGE_GRANT })],
  ['invalid_request', 'two ways of client authentication', (s) => asWeb(s, { grant_type: 'client_credentials' }, { authorization: basicOf(s.web, s.web.secret) })],
  ['invalid_grant', 'the code is unknown', (s) => asWeb(s, { grant_type: 'authorization_code', code: 'x', redirect_uri: CALLBACK, code_verifier: 'v'.repeat(43) })],
  ['invalid_grant', 'the code belongs to another application', async (s) => asWeb(s, await code(s, s.other))],
  ['invalid_grant', 'the redirect_uri is another one', async (s) => asWeb(s, { ...(await code(s, s.web)), redirect_uri: `${CALLBACK}/` })],
  ['invalid_grant', 'the code_verifier is another one', async (s) => asWeb(s, { ...(await code(s, s.web)), code_verifier: 'v'.repeat(43) })],
  ['invalid_grant', 'a public client leaves the code_verifier out', async (s) => {
    const { code_verifier: _, ...rest } = await code(s, s.spa)
    return token(s, { ...rest, client_id: s.spa.clientId })
  }],
  ['invalid_grant', 'the code has expired', async (s) => {
    const fields = await code(s, s.web)
    await sql(s.running)`
      update authorization_codes set expires_at = now()
      where code_sha256 = sha256(${Buffer.from(fields['code']!)}::bytea)`
    return asWeb(s, fields)
  }],
  ['invalid_grant', 'the code was used', async (s) => {
    const fields = await code(s, s.web)
    granted(await asWeb(s, fields))
    return asWeb(s, fields)
  }],
  ['invalid_grant', 'the refresh token is unknown', (s) => asWeb(s, { grant_type: 'refresh_token', refresh_token: 'x' })],
  ['invalid_grant', 'the refresh token belongs to another application', async (s) => {
    const { refresh_token } = granted(await token(s, { ...secretOf(s.other), ...(await code(s, s.other)) }))
    return asWeb(s, { grant_type: 'refresh_token', refresh_token: String(refresh_token) })
  }],
  ['invalid_grant', 'the refresh token was used, and its successor too', async (s) => {
    const refresh = (refresh_token: unknown) => asWeb(s, { grant_type: 'refresh_token', refresh_token: String(refresh_token) })
    const first = granted(await asWeb(s, await code(s, s.web)))['refresh_token']
    granted(await refresh(granted(await refresh(first))['refresh_token']))
    return refresh(first)
  }],
  ['invalid_grant', 'the device code is unknown', (s) => asWeb(s, { grant_type: DEVICE_GRANT, device_code: 'x' })],
  ['invalid_grant', 'the device code belongs to another application', async (s) => asWeb(s, await device(s, s.other))],
  ['invalid_grant', 'the CIBA request is unknown', (s) => asWeb(s, { grant_type: CIBA_GRANT, auth_req_id: 'x' })],
  ['invalid_grant', 'the CIBA request belongs to another application', async (s) => asWeb(s, await asked(s, s.other))],
  ['invalid_grant', 'the delegation of the subject token was revoked', async (s) => {
    const { token: subject_token, delegationId } = await delegate(s.api, s.here.token, s.ada)
    await sql(s.running)`
      update delegations set revoked_at = now(), revoked_reason = 'test'
      where id = ${delegationId}`
    return token(s, { grant_type: EXCHANGE_GRANT, subject_token, subject_token_type: ACCESS, actor_token: s.here.token, actor_token_type: ACCESS })
  }],
  ['unsupported_grant_type', 'password', (s) => asWeb(s, { grant_type: 'password', username: 'a', password: 'b' })],
  ['unsupported_grant_type', 'implicit', (s) => asWeb(s, { grant_type: 'implicit' })],
  ['unsupported_grant_type', 'malformed', (s) => asWeb(s, { grant_type: 'AUTHORIZATION_CODE\u0000' })],
  ['invalid_scope', 'an unknown scope', (s) => asWeb(s, { grant_type: 'client_credentials', scope: 'fly' })],
  ['invalid_scope', 'a malformed scope', (s) => asWeb(s, { grant_type: 'client_credentials', scope: 'a"b' })],
  ['invalid_scope', 'a scope that the application may not have', (s) => asWeb(s, { grant_type: 'client_credentials', scope: 'users:manage' })],
  ['invalid_scope', 'a refresh token asked for more than it has', async (s) => {
    const { refresh_token } = granted(await asWeb(s, await code(s, s.web)))
    return asWeb(s, { grant_type: 'refresh_token', refresh_token: String(refresh_token), scope: 'openid vault:read' })
  }],
  ['invalid_target', 'an unknown audience', (s) => asWeb(s, { grant_type: 'client_credentials', audience: 'https://elsewhere.example' })],
  ['invalid_target', 'an audience with NUL', (s) => asWeb(s, { grant_type: 'client_credentials', audience: 'a\0b' })],
  ['invalid_target', 'resource and audience name different things', (s) => asWeb(s, { grant_type: 'client_credentials', audience: s.web.audience, resource: s.running.baseUrl })],
  ['authorization_pending', 'the user has not decided on the device request', async (s) => asWeb(s, await device(s)), { headers: { 'retry-interval': /^5$/ } }],
  ['slow_down', 'the device polls too fast', async (s) => {
    const fields = await device(s)
    await asWeb(s, fields)
    return asWeb(s, fields)
  }, { headers: { 'retry-interval': /^10$/ } }],
  ['access_denied', 'the user denied the device request', async (s) => {
    const fields = await device(s)
    const page = await s.ada.browser.get(`/oauth/device/verify?user_code=${fields['user_code']}`)
    await s.ada.browser.submit(page, { action: 'deny' })
    return asWeb(s, fields)
  }],
  ['expired_token', 'the device code has expired', async (s) => {
    const fields = await device(s)
    await expire(s, fields['device_code']!)
    return asWeb(s, fields)
  }],
  ['authorization_pending', 'the user has not decided on the CIBA request', async (s) => asWeb(s, await asked(s)), { headers: { 'retry-interval': /^5$/ } }],
  ['expired_token', 'the CIBA request has expired', async (s) => {
    const fields = await asked(s)
    await expire(s, fields['auth_req_id']!)
    return asWeb(s, fields)
  }],
]

/** Polls are part of a normal flow. */
const EXPECTED = ['authorization_pending', 'slow_down']
const INFO = 30
const WARN = 40

const FINER = [
  'client_unknown',
  'client_secret_wrong',
  'client_assertion_wrong',
  'client_method_wrong',
  'client_inactive',
]

/** The refusal has one log line, with its reason, and `error_uri` leads to the text of that reason. */
export async function isExplained(t: ExecutionContext<Scene>, answer: Answer): Promise<void> {
  const { lines, running, web, here } = t.context
  const { body } = answer
  const found = lines.filter(
    (line) => line['request_id'] === body['request_id'] && line['msg'] === 'request',
  )
  t.is(found.length, 1)
  const line = found[0]!
  t.is(line['status'], answer.status)
  t.is(line['error'], body['error'])
  t.is(line['level'], EXPECTED.includes(String(body['error'])) ? INFO : WARN)
  const uri = new URL(String(body['error_uri']))
  const told = uri.hash.slice(1)
  // Only the log says whether the client exists.
  const own = [401, 403].includes(answer.status) ? String(body['error']) : ''
  const ofToken = own === 'invalid_token' ? ['token_invalid', 'token_malformed'] : [own]
  const logged = told === 'client_authentication_failed' ? FINER : told ? [told] : ofToken
  t.true(logged.includes(String(line['reason'] ?? '')), String(line['reason']))
  const page = await callerOf(running.baseUrl).call(uri.pathname)
  t.is(page.status, 200)
  if (uri.hash !== '') t.true(page.text.includes(`id="${uri.hash.slice(1)}"`), uri.hash)
  if (line['route'] !== '/oauth/token') return
  t.is(typeof line['reason'], 'string')
  if (line['client_id'] === web.clientId && body['error'] !== 'invalid_client') {
    const early = ['several_authentication_methods', 'grant_type_unsupported', 'parameter_missing']
    if (!early.includes(String(line['reason']))) t.is(line['tenant_id'], here.tenantId)
    t.true(line['grant_type'] !== undefined || line['reason'] !== 'pkce_mismatch')
  }
}

const CREDENTIALS = { grant_type: 'client_credentials' }
const BASIC = { headers: { 'www-authenticate': /^Basic realm="svc", charset="UTF-8"$/ } }

// biome-ignore format: a table
const UNAUTHENTICATED: readonly Told[] = [
  ['invalid_client', 'a wrong secret in the header', (s) => token(s, CREDENTIALS, { authorization: basicOf(s.web, 'wrong') }), BASIC],
  ['invalid_client', 'a header that is not base64', (s) => token(s, CREDENTIALS, { authorization: 'Basic !!!' }), BASIC],
  ['invalid_client', 'a wrong secret in the form', (s) => token(s, { ...CREDENTIALS, client_id: s.web.clientId, client_secret: 'wrong' }), NO_CHALLENGE],
  ['invalid_client', 'no secret', (s) => token(s, { ...CREDENTIALS, client_id: s.web.clientId }), NO_CHALLENGE],
  ['invalid_client', 'no client at all', (s) => token(s, CREDENTIALS), NO_CHALLENGE],
  ['invalid_client', 'an unknown client', (s) => token(s, { ...CREDENTIALS, client_id: UNKNOWN_ID, client_secret: 'x' }), NO_CHALLENGE],
  ['invalid_client', 'a malformed assertion', (s) => token(s, { ...CREDENTIALS, client_assertion: 'a.b.c', client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' }), NO_CHALLENGE],
  ['invalid_client', 'a public client introspects', (s) => send(s, '/oauth/introspect', { client_id: s.spa.clientId, token: 'x' }), NO_CHALLENGE],
  ['invalid_token', 'introspection with a malformed bearer token', (s) => send(s, '/oauth/introspect', { token: 'x' }, { authorization: 'Bearer a b' }), { headers: { 'www-authenticate': /^Bearer error="invalid_token"/ } }],
  ['invalid_client', 'revocation without a client', (s) => send(s, '/oauth/revoke', { token: 'x' }), NO_CHALLENGE],
  ['invalid_client', 'a pushed request without a client', (s) => send(s, '/oauth/par', { redirect_uri: CALLBACK }), NO_CHALLENGE],
  ['invalid_client', 'a device request without a client', (s) => send(s, '/oauth/device/code', {}), NO_CHALLENGE],
  ['invalid_client', 'a CIBA request without a client', (s) => send(s, '/bc-authorize', { scope: 'openid' }), NO_CHALLENGE],
  // 401, where RFC 9449 sections 5 and 8 have 400. Header and body have the error.
  ['invalid_dpop_proof', 'a malformed proof', (s) => asWeb(s, CREDENTIALS, { dpop: 'x' }), { headers: { 'www-authenticate': /^DPoP error="invalid_dpop_proof", algs="ES256 EdDSA[^"]*", error_description="[^"]+"$/ } }],
  ['invalid_token', 'introspection with an unknown bearer token', (s) => send(s, '/oauth/introspect', { token: 'x' }, { authorization: 'Bearer x.y.z' }), { headers: { 'www-authenticate': /^Bearer error="invalid_token"/ } }],
]

// 403, where RFC 6749 section 5.2 has 400.
// biome-ignore format: a table
const FORBIDDEN: readonly Told[] = [
  ['unauthorized_client', 'a grant that the application does not have', (s) => token(s, { ...secretOf(s.machine), grant_type: 'refresh_token', refresh_token: 'x' })],
  ['unauthorized_client', 'a public client has no credentials', (s) => token(s, { ...CREDENTIALS, client_id: s.spa.clientId })],
  ['unauthorized_client', 'PAR without the code grant', (s) => send(s, '/oauth/par', { ...secretOf(s.machine), response_type: 'code', redirect_uri: CALLBACK })],
  ['unauthorized_client', 'a device flow without its grant', (s) => send(s, '/oauth/device/code', secretOf(s.machine))],
  ['unauthorized_client', 'CIBA without its grant', (s) => send(s, '/bc-authorize', { ...secretOf(s.machine), scope: 'openid', login_hint: s.human.email })],
  ['consent_required', 'a person’s token for an agent they never allowed', async (s) => {
    const subject_token = await ownToken(s.api, s.here, s.ada, 'openid vault:list')
    const { key, agentId } = await s.api.register(s.here.tenantId)
    const { body } = await s.api.login(key, { agent_id: agentId, tenant_id: s.here.tenantId })
    return asWeb(s, { grant_type: EXCHANGE_GRANT, subject_token, subject_token_type: ACCESS, actor_token: String(body['access_token']), actor_token_type: ACCESS })
  }],
  ['insufficient_scope', 'a bearer without tokens:introspect', async (s) => {
    const { access_token } = granted(await asWeb(s, { ...CREDENTIALS, audience: s.running.baseUrl }))
    return send(s, '/oauth/introspect', { token: 'x' }, { authorization: `Bearer ${String(access_token)}` })
  }, { headers: { 'www-authenticate': /^Bearer error="insufficient_scope", scope="tokens:introspect", / } }],
  ['policy_denied', 'a vault secret that is not exportable', async (s) => {
    const secret = { provider: 'p', credential_type: 'api_key', label: 'l', auth_scheme: 'bearer', allowed_hosts: ['api.example'], secret: 'kept', non_exportable: true }
    const made = await s.api.post('/api/v1/vault/credentials', s.here.token, secret)
    const { agentId } = s.here
    const grant = { grantee_type: 'agent', grantee_id: agentId, capabilities: ['use', 'list'] }
    await s.api.post(`/api/v1/vault/credentials/${String(made.body['id'])}/grants`, s.here.token, grant)
    return token(s, { grant_type: EXCHANGE_GRANT, subject_token: s.here.token, subject_token_type: ACCESS, actor_token: s.here.token, actor_token_type: ACCESS, requested_token_type: 'urn:svc:params:oauth:token-type:vault-secret', resource: `urn:svc:vault:credential:${String(made.body['id'])}` })
  }],
]

const rowsOf = (status: number, rows: readonly Told[], without?: Told[3]): readonly Row[] =>
  rows.map(([code, when, provoke, more]) => ({
    form: 'oauth',
    status,
    code,
    when,
    provoke,
    ...(more ?? without),
  }))
export const OAUTH: readonly Row[] = [
  ...rowsOf(400, BAD_REQUESTS, NO_CHALLENGE),
  ...rowsOf(401, UNAUTHENTICATED),
  ...rowsOf(403, FORBIDDEN),
]

// biome-ignore format: a table
const NONCES: readonly (readonly [when: string, code: string, proof: (at: string) => Promise<string>])[] = [
  ['no nonce', 'use_dpop_nonce', (at) => proofFor('POST', at)],
  ['a nonce that is not ours', 'use_dpop_nonce', (at) => proofFor('POST', at, { nonce: 'x' })],
  ['another method', 'invalid_dpop_proof', (at) => proofFor('GET', at)],
  ['another address', 'invalid_dpop_proof', (at) => proofFor('POST', `${at}/other`)],
]
for (const [when, error, proof] of NONCES) {
  test.serial(`401 ${error} with the nonce, in the header and in the body: ${when}`, async (t) => {
    const { strict, web } = t.context
    const form = { ...CREDENTIALS, ...secretOf(web) }
    const { form: post } = callerOf(strict.baseUrl)
    const dpop = await proof(`${strict.baseUrl}/oauth/token`)
    const refused = await post('/oauth/token', form, { dpop })
    isOAuthError(t, refused, {
      status: 401,
      code: error,
      headers: {
        'www-authenticate': new RegExp(`^DPoP error="${error}"`),
        'dpop-nonce': /^[A-Za-z0-9_-]+$/,
      },
    })
    // Retry with the returned nonce.
    const nonce = refused.headers.get('dpop-nonce')!
    const again = await proofFor('POST', `${strict.baseUrl}/oauth/token`, { nonce })
    const given = await post('/oauth/token', form, { dpop: again })
    t.is(given.status, 200, given.text)
    t.is(given.body['token_type'], 'DPoP')
  })
}

/** The 121st request of a client within a minute. */
test.serial('429 rate_limited: a problem document with the members of OAuth', async (t) => {
  const { strict, other } = t.context
  const ask = () =>
    callerOf(strict.baseUrl).form('/oauth/token', { ...secretOf(other), grant_type: 'password' })
  let answer = await ask()
  for (let n = 0; n < 200 && answer.status !== 429; n += 1) answer = await ask()
  isProblem(t, answer, strict.issuer, {
    status: 429,
    code: 'rate_limited',
    name: 'rate-limited',
    headers: {
      'retry-after': /^[1-9][0-9]*$/,
      ratelimit: /"token";r=0/,
      'ratelimit-policy': /"token"/,
    },
    members: { 'violated-policies': ['token'] },
  })
  t.is(answer.body['retry_after'], Number(answer.headers.get('retry-after')))
  t.is(typeof answer.body['error_description'], 'string')
})
