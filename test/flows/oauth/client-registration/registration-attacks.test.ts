/** Attacks on registration: foreign and used tokens, invalid metadata, malformed input. */
import test from 'ava'
import * as fc from 'fast-check'
import { sql } from '../../../support/storage/sql.js'
import { registering, TOKENS } from '../../../support/identity/registering.js'
import { CALLBACK } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'
import { callAt, type Json, tenantAgent } from '../../../support/identity/tenant-agent.js'
import { RACERS } from '../../../support/racers.js'

// The arbitrary takes seconds of processor time to build, in which the service would not answer.
const anyUrl = fc.webUrl()
const running = await sharedService('clients')
const agent = await tenantAgent(running.baseUrl)
const client = registering(running.baseUrl, agent)

test('a client cannot manage the registration of another one', async (t) => {
  const one = await client.registered()
  const other = await client.registered()
  const initial = await client.initialToken()
  for (const token of [other.token, initial, agent.token, 'x', null]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await client.send(method, one.path, token, method === 'PUT' ? {} : undefined)
      t.is(answer.status, 401, `${method} ${token}`)
      t.is(answer.body['error'], 'invalid_token')
      const challenge =
        token === null ? /^Bearer realm="registration"$/ : /^Bearer error="invalid_token"/
      t.regex(answer.headers.get('www-authenticate') ?? '', challenge)
    }
  }
  for (const id of ['unknown', crypto.randomUUID(), '%00', 'a'.repeat(64)])
    t.true(
      [400, 401].includes((await client.send('GET', `/oauth/register/${id}`, one.token)).status),
      id,
    )
  // An application created by an operator has no registration.
  const made = await agent.ask('POST', '/api/v1/applications', { name: 'Made', redirect_uris: [] })
  const path = `/oauth/register/${String(made.body['id'])}`
  t.is((await client.send('GET', path, one.token)).status, 401)
  t.is((await client.send('GET', one.path, one.token)).status, 200, 'nothing of it did harm')
})

test('a replacement must contain its client_id, and cannot add rights', async (t) => {
  const { body, path, token } = await client.registered()
  const whole = { client_id: body['client_id'], redirect_uris: [CALLBACK] }
  for (const [metadata, error] of [
    [{ redirect_uris: [CALLBACK] }, 'invalid_client_metadata'],
    [{ ...whole, client_id: crypto.randomUUID() }, 'invalid_client_metadata'],
    [{ ...whole, client_secret: 'wrong' }, 'invalid_client_metadata'],
    [{ ...whole, redirect_uris: ['http://app.example/'] }, 'invalid_redirect_uri'],
  ] as const) {
    const answer = await client.send('PUT', path, token, metadata)
    t.is(answer.status, 400, JSON.stringify(metadata))
    t.is(answer.body['error'], error)
  }
  const scope = 'openid metrics:read signing_keys:manage deployment:manage'
  const more = await client.send('PUT', path, token, { ...whole, scope })
  t.like(more, { status: 200, body: { scope: 'openid' } })
  t.deepEqual((await client.send('GET', path, token)).body['redirect_uris'], [CALLBACK])
})

test('a replacement cannot prove the client with an expired secret', async (t) => {
  const { body, path, token } = await client.registered()
  const rotate = `/api/v1/applications/${String(body['client_id'])}/rotate-secret`
  const rotated = await agent.ask('POST', rotate, { overlap_secs: 0 })
  t.is(rotated.status, 200)
  const whole = { client_id: body['client_id'], redirect_uris: [CALLBACK] }
  const known = async (secret: unknown) =>
    (await client.send('PUT', path, token, { ...whole, client_secret: secret })).status
  t.is(await known(body['client_secret']), 400)
  t.is(await known(rotated.body['client_secret']), 200)
})

test('an initial access token is used up to max_uses times', async (t) => {
  t.timeout(120_000)
  const token = await client.initialToken({ max_uses: 3 })
  const answers = await Promise.all(
    Array.from({ length: RACERS }, () => client.register(token, { redirect_uris: [CALLBACK] })),
  )
  t.is(answers.filter(({ status }) => status === 201).length, 3)
  // Under load some requests get 503. None of them uses the token.
  t.true(answers.every(({ status }) => [201, 401, 503].includes(status)))
  t.is((await client.register(token, { redirect_uris: [CALLBACK] })).status, 401)
})

test('a refused registration does not use up an initial access token, and the token expires', async (t) => {
  const token = await client.initialToken()
  t.is((await client.register(token, { redirect_uris: ['nonsense'] })).status, 400)
  t.is((await client.register(token, { redirect_uris: [CALLBACK], tenant: 'another' })).status, 400)
  t.is(
    (await client.register(token, { redirect_uris: [CALLBACK], tenant: agent.tenantId })).status,
    201,
  )
  t.is((await client.register(token, { redirect_uris: [CALLBACK] })).status, 401)
  const late = await client.initialToken()
  const end = 'update registration_tokens set expires_at = now() where token_sha256 = sha256($1)'
  await sql(running.db.database, end, [Buffer.from(late)])
  t.is((await client.register(late, { redirect_uris: [CALLBACK] })).status, 401)
  for (const wrong of [null, 'x', agent.token])
    t.is((await client.register(wrong, { redirect_uris: [CALLBACK] })).status, 401)
})

test('the token route: for application managers only, once per idempotency key', async (t) => {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const made = await agent.ask('POST', TOKENS, { max_uses: 2 }, headers)
  t.like(made, { status: 201, body: { max_uses: 2 } })
  const again = await agent.ask('POST', TOKENS, { max_uses: 2 }, headers)
  t.is(again.status, 201)
  t.is(again.headers.get('idempotency-replayed'), 'true')
  t.is(again.body['id'], made.body['id'])
  t.false('token' in again.body)
  t.is((await agent.ask('POST', TOKENS, { max_uses: 3 }, headers)).status, 422)
  for (const body of [
    { max_uses: 0 },
    { max_uses: 1.5 },
    { expires_in_secs: 0 },
    { max_uses: 'x' },
  ])
    t.is((await agent.ask('POST', TOKENS, body)).status, 400)
  const weak = await agent.login('applications:read')
  const refused = await callAt(running.baseUrl, TOKENS, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${String(weak.body['access_token'])}`,
      'content-type': 'application/json',
    },
    body: '{}',
  })
  t.is(refused.status, 403)
})

const REFUSED: readonly [string, Json, string][] = [
  ['no redirect URI', { redirect_uris: [] }, 'invalid_client_metadata'],
  ['a redirect URI that is not a string', { redirect_uris: [1] }, 'invalid_client_metadata'],
  ['a redirect URI with a fragment', { redirect_uris: [`${CALLBACK}#x`] }, 'invalid_redirect_uri'],
  [
    'a redirect URI over plain HTTP',
    { redirect_uris: ['http://a.example/'] },
    'invalid_redirect_uri',
  ],
  ['a wildcard', { redirect_uris: ['https://*.example/'] }, 'invalid_redirect_uri'],
  ['a script', { redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
  [
    'an invalid post_logout_redirect_uri',
    { post_logout_redirect_uris: ['ftp://x'] },
    'invalid_redirect_uri',
  ],
  ['the implicit grant', { grant_types: ['implicit'] }, 'invalid_client_metadata'],
  ['the password grant', { grant_types: ['password'] }, 'invalid_client_metadata'],
  ['the response type token', { response_types: ['token'] }, 'invalid_client_metadata'],
  ['a grant without its response type', { response_types: [] }, 'invalid_client_metadata'],
  [
    'client_credentials of a public client',
    { grant_types: ['client_credentials'], response_types: [], token_endpoint_auth_method: 'none' },
    'invalid_client_metadata',
  ],
  ['RS512', { id_token_signed_response_alg: 'RS512' }, 'invalid_client_metadata'],
  ['no signature', { id_token_signed_response_alg: 'none' }, 'invalid_client_metadata'],
  ['encryption', { id_token_encrypted_response_alg: 'RSA-OAEP' }, 'invalid_client_metadata'],
  ['public subjects', { subject_type: 'public' }, 'invalid_client_metadata'],
  ['mutual TLS', { token_endpoint_auth_method: 'tls_client_auth' }, 'invalid_client_metadata'],
  [
    'keys that are missing',
    { token_endpoint_auth_method: 'private_key_jwt' },
    'invalid_client_metadata',
  ],
  ['a symmetric key', { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, 'invalid_client_metadata'],
  ['keys that are not a set', { jwks: [] }, 'invalid_client_metadata'],
  [
    'jwks and jwks_uri',
    { jwks: { keys: [] }, jwks_uri: 'https://a.example/' },
    'invalid_client_metadata',
  ],
  ['keys over plain HTTP', { jwks_uri: 'http://a.example/keys' }, 'invalid_client_metadata'],
  ['a name that closes an isolate', { client_name: 'a\u2069b' }, 'invalid_client_metadata'],
  ['a name with a direction override', { client_name: 'a\u202Eb' }, 'invalid_client_metadata'],
  ['a name with control characters', { client_name: 'a\u0007' }, 'invalid_client_metadata'],
  ['a name that is too long', { client_name: 'a'.repeat(121) }, 'invalid_client_metadata'],
  ['a script for a logo', { logo_uri: 'javascript:alert(1)' }, 'invalid_client_metadata'],
  ['a page URL with a user', { tos_uri: 'https://a@b.example/' }, 'invalid_client_metadata'],
  [
    'an origin with a path',
    { allowed_origins: ['https://a.example/x'] },
    'invalid_client_metadata',
  ],
  ['a flag that is a string', { dpop_bound_access_tokens: 'yes' }, 'invalid_client_metadata'],
  ['default_max_age', { default_max_age: 60 }, 'invalid_client_metadata'],
  ['default_acr_values', { default_acr_values: ['aal2'] }, 'invalid_client_metadata'],
  [
    'signed requests without keys',
    { require_signed_request_object: true },
    'invalid_client_metadata',
  ],
  [
    'encrypted introspection',
    { introspection_encrypted_response_alg: 'ECDH-ES' },
    'invalid_client_metadata',
  ],
  [
    'assertions by a foreign algorithm',
    { token_endpoint_auth_signing_alg: 'RS256' },
    'invalid_client_metadata',
  ],
  ['too many contacts', { contacts: Array(11).fill('a@b.c') }, 'invalid_client_metadata'],
]
test('invalid metadata is refused, and the token stays valid', async (t) => {
  const token = await client.initialToken()
  for (const [title, metadata, error] of REFUSED) {
    const answer = await client.register(token, { redirect_uris: [CALLBACK], ...metadata })
    t.is(answer.status, 400, title)
    t.is(answer.body['error'], error, title)
    t.is(typeof answer.body['error_description'], 'string')
  }
  const harmless = {
    default_acr_values: [],
    require_signed_request_object: false,
    token_endpoint_auth_signing_alg: 'ES256',
  }
  t.is((await client.register(token, { redirect_uris: [CALLBACK], ...harmless })).status, 201)
})

test('a body that is not an object is refused', async (t) => {
  const token = await client.initialToken()
  for (const body of ['', '{', '[]', '1', 'null', '"x"', '{"redirect_uris":']) {
    const answer = await callAt(running.baseUrl, '/oauth/register', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
    t.is(answer.status, 400, body)
  }
  const inherited = '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","__proto__":{"x":"BB"}}]}'
  const hidden = await callAt(running.baseUrl, '/oauth/register', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: `{"redirect_uris":["${CALLBACK}"],"jwks":${inherited}}`,
  })
  t.is(hidden.status, 400)
  t.regex(String(hidden.body['error_description']), /__proto__/)
  const form = await callAt(running.baseUrl, '/oauth/register', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: new URLSearchParams({ redirect_uris: CALLBACK }),
  })
  t.is(form.status, 415)
  t.is((await client.send('GET', '/oauth/register', token)).status, 405)
})

test('arbitrary metadata never breaks the endpoint', async (t) => {
  const token = await client.initialToken({ max_uses: 1000 })
  const name = fc.constantFrom(
    'redirect_uris',
    'client_name',
    'grant_types',
    'response_types',
    'scope',
    'jwks',
    'jwks_uri',
    'contacts',
    'logo_uri',
    'tenant',
    'application_type',
    '__proto__',
    'constructor',
    'allowed_origins',
  )
  const odd = fc.dictionary(name, fc.oneof(fc.jsonValue({ maxDepth: 3 }), anyUrl))
  await fc.assert(
    fc.asyncProperty(odd, async (metadata) => {
      const answer = await client.register(token, metadata)
      t.true([201, 400].includes(answer.status), `${answer.status} ${JSON.stringify(metadata)}`)
    }),
    { numRuns: 60 },
  )
})
