import test from 'ava'
import { exportJWK } from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { eventsAfter } from '../../../../storage/platform/outbox.js'
import {
  basic,
  buildTokensFixture,
  byAssertion,
  ISSUER,
  request,
  type TokensFixture,
  TOKEN_URL,
} from './tokens-fixture.js'

let fixture: TokensFixture
let tenantId: string
test.before(async () => {
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('clients')
})
test.after.always(() => fixture?.close())

const GRANT = { grant_type: 'client_credentials' }
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>
const headerOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as Record<string, unknown>

async function keyed() {
  const pair = freshKeyPair('P-256')
  const jwk = await exportJWK(pair.publicKey)
  const application = await fixture.application(tenantId, {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [{ ...jwk, kid: 'k1' }] },
  })
  return { ...application, ...pair }
}

test.serial('a service token has exactly the documented claims', async (t) => {
  const app = await fixture.application(tenantId)
  const outcome = await fixture.tokens.issueToken(request(GRANT, app))
  if (outcome.tag !== 'issued') return t.fail(outcome.tag)
  t.is(outcome.refreshToken, null)
  t.is(outcome.tokenType, 'Bearer')
  const { jti, ...claims } = claimsOf(outcome.accessToken)
  const nowSecs = fixture.clock.nowSecs()
  t.regex(String(jti), /^[0-9a-f-]{36}$/)
  t.deepEqual(claims, {
    iss: ISSUER,
    sub: app.clientId,
    aud: [app.audience, ISSUER],
    exp: nowSecs + 300,
    iat: nowSecs,
    nbf: nowSecs,
    client_id: app.clientId,
    scope: 'applications:read users:read',
    tenant_id: tenantId,
    subject_type: 'service',
  })
  const { kid, ...header } = headerOf(outcome.accessToken)
  t.is(typeof kid, 'string')
  t.deepEqual(header, { alg: 'ES256', typ: 'at+jwt' })
})

test.serial('an agent token has exactly the documented claims', async (t) => {
  const agent = await fixture.agent(tenantId)
  const granted = await fixture.login(tenantId, agent, 'thumbprint')
  t.is(granted.tokenType, 'DPoP')
  const { jti, ...claims } = claimsOf(granted.accessToken)
  const nowSecs = fixture.clock.nowSecs()
  t.truthy(jti)
  t.deepEqual(claims, {
    iss: ISSUER,
    sub: agent.id,
    aud: ISSUER,
    exp: nowSecs + 300,
    iat: nowSecs,
    nbf: nowSecs,
    client_id: agent.id,
    scope: 'vault:list vault:read',
    tenant_id: tenantId,
    subject_type: 'agent',
    sid: granted.sessionId,
    amr: ['pop'],
    auth_time: nowSecs,
    cnf: { jkt: 'thumbprint' },
  })
})

test.serial(
  'every issued token has its event, and the event does not contain the token',
  async (t) => {
    const own = await fixture.tenant('events')
    const app = await fixture.application(own)
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, () => fixture.tokens.issueToken(request(GRANT, app))),
    )
    const ids = outcomes.map((outcome) =>
      outcome.tag === 'issued' ? claimsOf(outcome.accessToken)['jti'] : outcome.tag,
    )
    const events = await fixture.database.tenant(own, (tx) => eventsAfter(tx, own, 0, 1000))
    t.deepEqual(new Set(events.map(({ type }) => type)), new Set(['auth.token.issued']))
    const told = events.map(({ data }) => (data['resource'] as { id: string }).id)
    t.deepEqual(told.sort(), ids.map(String).sort())
    t.false(JSON.stringify(events).includes('eyJ'))
  },
)

type Attempt = { fields?: Record<string, string>; authorization?: string | null }
const matrix: [
  string,
  (app: Awaited<ReturnType<TokensFixture['application']>>) => Attempt,
  string,
][] = [
  ['the right secret by Basic', (app) => ({ authorization: app.authorization }), 'issued'],
  [
    'the right secret in the form',
    (app) => ({ fields: { client_id: app.clientId, client_secret: app.secret } }),
    'issued',
  ],
  [
    'a wrong secret by Basic',
    (app) => ({ authorization: basic(app.clientId, 'x') }),
    'invalid_client',
  ],
  ['an empty secret', (app) => ({ authorization: basic(app.clientId, '') }), 'invalid_client'],
  [
    'a wrong secret in the form',
    (app) => ({ fields: { client_id: app.clientId, client_secret: 'x' } }),
    'invalid_client',
  ],
  ['only the id', (app) => ({ fields: { client_id: app.clientId } }), 'invalid_client'],
  ['no credentials', () => ({}), 'invalid_client'],
  [
    'an unknown client',
    (app) => ({ authorization: basic('018f0000-0000-7000-8000-000000000000', app.secret) }),
    'invalid_client',
  ],
  [
    'an id that is no UUID',
    (app) => ({ authorization: basic(`' or 1=1`, app.secret) }),
    'invalid_client',
  ],
  [
    'two methods in one request',
    (app) => ({ authorization: app.authorization, fields: { client_secret: app.secret } }),
    'invalid_request',
  ],
]
for (const [title, attempt, expected] of matrix) {
  test.serial(`client_credentials with ${title} is ${expected}`, async (t) => {
    const app = await fixture.application(tenantId)
    const { fields = {}, authorization = null } = attempt(app)
    const outcome = await fixture.tokens.issueToken(
      request({ ...GRANT, ...fields }, { authorization }),
    )
    t.is('error' in outcome ? outcome.error : outcome.tag, expected as never)
  })
}

const assertions: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
  ['with valid claims', {}, {}, 'issued'],
  ['with the kid of its key', {}, { kid: 'k1' }, 'issued'],
  ['of type client-authentication+jwt', {}, { typ: 'client-authentication+jwt' }, 'issued'],
  ['with a clock 10 s ahead', { iat: 10, nbf: 10 }, {}, 'issued'],
  ['with another kid', {}, { kid: 'k2' }, 'invalid_client'],
  ['for the token endpoint', { aud: TOKEN_URL }, {}, 'invalid_client'],
  ['for a list with the issuer', { aud: [ISSUER] }, {}, 'invalid_client'],
  ['without an audience', { aud: undefined }, {}, 'invalid_client'],
  ['of another issuer', { iss: 'x' }, {}, 'invalid_client'],
  ['with another subject', { sub: 'x' }, {}, 'invalid_client'],
  ['without an id', { jti: undefined }, {}, 'invalid_client'],
  ['that has expired', { exp: 0 }, {}, 'invalid_client'],
  ['without an expiry', { exp: undefined }, {}, 'invalid_client'],
  ['that is valid for two hours', { exp: 7200 }, {}, 'invalid_client'],
  ['from the future', { iat: 120 }, {}, 'invalid_client'],
  ['not valid yet', { nbf: 120 }, {}, 'invalid_client'],
  ['of type at+jwt', {}, { typ: 'at+jwt' }, 'invalid_client'],
  ['of type dpop+jwt', {}, { typ: 'dpop+jwt' }, 'invalid_client'],
]
for (const [title, change, head, expected] of assertions) {
  test.serial(`private_key_jwt with an assertion ${title} is ${expected}`, async (t) => {
    const app = await keyed()
    const nowSecs = fixture.clock.nowSecs()
    const moved = Object.fromEntries(
      Object.entries(change).map(([name, value]) => [
        name,
        typeof value === 'number' ? nowSecs + value : value,
      ]),
    )
    const signed = await fixture.assertion(app.clientId, app.privateKey, moved, head)
    const outcome = await fixture.tokens.issueToken(request({ ...GRANT, ...byAssertion(signed) }))
    t.is('error' in outcome ? outcome.error : outcome.tag, expected as never)
  })
}

test.serial('an assertion is used once, in any process', async (t) => {
  const app = await keyed()
  const other = fixture.spawnTokens()
  const signed = await fixture.assertion(app.clientId, app.privateKey)
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      (i % 2 ? fixture.tokens : other.ref).issueToken(
        request({ ...GRANT, ...byAssertion(signed) }),
      ),
    ),
  )
  await other.stop()
  t.is(outcomes.filter(({ tag }) => tag === 'issued').length, 1)
})

test.serial(
  'an assertion signed with a foreign key is refused and not marked as used',
  async (t) => {
    const app = await keyed()
    const foreign = freshKeyPair('P-256')
    const jti = fixture.random.uuid()
    const forged = await fixture.assertion(app.clientId, foreign.privateKey, { jti })
    t.like(await fixture.tokens.issueToken(request({ ...GRANT, ...byAssertion(forged) })), {
      error: 'invalid_client',
    })
    const right = await fixture.assertion(app.clientId, app.privateKey, { jti })
    const outcome = await fixture.tokens.issueToken(request({ ...GRANT, ...byAssertion(right) }))
    t.is(outcome.tag, 'issued')
  },
)

test.serial(
  'a client with a secret cannot use a key, and a client with a key cannot use a secret',
  async (t) => {
    // The row still has the secret of another method: the method decides, not the row.
    const withKey = await fixture.application(tenantId, {
      tokenEndpointAuthMethod: 'private_key_jwt',
    })
    t.like(await fixture.tokens.issueToken(request(GRANT, withKey)), { error: 'invalid_client' })
    const pair = freshKeyPair('P-256')
    const jwks = { keys: [await exportJWK(pair.publicKey)] }
    const withSecret = await fixture.application(tenantId, { jwks } as never)
    const signed = await fixture.assertion(withSecret.clientId, pair.privateKey)
    t.like(await fixture.tokens.issueToken(request({ ...GRANT, ...byAssertion(signed) })), {
      error: 'invalid_client',
    })
  },
)

test.serial(
  'two secrets work while they overlap, and the old one not a second longer',
  async (t) => {
    const app = await fixture.application(tenantId)
    const end = new Date(fixture.clock.now().getTime() + 60_000)
    await fixture.sql('update application_secrets set expires_at = $2 where application_id = $1', [
      app.id,
      end,
    ])
    const attempt = () => fixture.tokens.issueToken(request(GRANT, app))
    t.is((await attempt()).tag, 'issued')
    fixture.clock.advance(59_999)
    t.is((await attempt()).tag, 'issued')
    fixture.clock.advance(1)
    t.like(await attempt(), { error: 'invalid_client' })
  },
)

test.serial('a client without the grant gets unauthorized_client', async (t) => {
  const without = await fixture.application(tenantId, { grantTypes: ['refresh_token'] })
  t.like(await fixture.tokens.issueToken(request(GRANT, without)), {
    error: 'unauthorized_client',
  })
  const open = await fixture.application(tenantId, {
    clientType: 'public',
    tokenEndpointAuthMethod: 'none',
    secretSha256: null,
  })
  t.like(await fixture.tokens.issueToken(request({ ...GRANT, client_id: open.clientId })), {
    error: 'unauthorized_client',
  })
  const agent = await fixture.agent(tenantId)
  t.like(await fixture.tokens.issueToken(request({ ...GRANT, client_id: agent.id })), {
    error: 'unauthorized_client',
  })
})

for (const [fields, error] of [
  [{}, 'invalid_request'],
  [{ grant_type: '' }, 'invalid_request'],
  [{ grant_type: 'password' }, 'unsupported_grant_type'],
  [{ grant_type: 'authorization_code' }, 'unauthorized_client'],
  [{ grant_type: '__proto__' }, 'unsupported_grant_type'],
  [{ ...GRANT, scope: 'tenant:manage' }, 'invalid_scope'],
  [{ ...GRANT, scope: 'users:read  openid' }, 'invalid_scope'],
  [{ ...GRANT, audience: 'https://unknown.example' }, 'invalid_target'],
  [{ ...GRANT, resource: 'relative' }, 'invalid_target'],
  [{ ...GRANT, resource: `${ISSUER}#x` }, 'invalid_target'],
  [{ ...GRANT, audience: ISSUER, resource: 'https://x.example' }, 'invalid_target'],
] as [Record<string, string>, string][]) {
  test.serial(`the form ${new URLSearchParams(fields)} is refused with ${error}`, async (t) => {
    const app = await fixture.application(tenantId)
    t.like(await fixture.tokens.issueToken(request(fields, app)), {
      tag: 'oauth_refused',
      error,
    } as never)
  })
}

test.serial('a repeated parameter is refused before any other check', async (t) => {
  const app = await fixture.application(tenantId)
  const twice = request(GRANT, app)
  const outcome = await fixture.tokens.issueToken({
    ...twice,
    form: [...twice.form, ['grant_type', 'client_credentials']],
  })
  t.like(outcome, { error: 'invalid_request', description: 'grant_type is repeated' })
})

test.serial('a token has the requested audience, if the tenant knows it', async (t) => {
  const app = await fixture.application(tenantId)
  const other = await fixture.application(tenantId, { audience: 'https://api.example' })
  const foreign = await fixture.application(await fixture.tenant('foreign'))
  const audienceOf = async (fields: Record<string, string>) => {
    const outcome = await fixture.tokens.issueToken(request({ ...GRANT, ...fields }, app))
    return outcome.tag === 'issued' ? claimsOf(outcome.accessToken)['aud'] : outcome
  }
  t.is(await audienceOf({ scope: 'openid' }), app.audience)
  t.deepEqual(await audienceOf({ audience: other.audience, scope: 'openid' }), other.audience)
  t.deepEqual(await audienceOf({ resource: other.audience }), [other.audience, ISSUER])
  t.is(await audienceOf({ resource: ISSUER, audience: ISSUER }), ISSUER)
  t.like(await audienceOf({ audience: foreign.audience }), { error: 'invalid_target' })
})

test.serial(
  'disabled applications and applications of suspended tenants get no token',
  async (t) => {
    const own = await fixture.tenant('suspended')
    const app = await fixture.application(own)
    t.is((await fixture.tokens.issueToken(request(GRANT, app))).tag, 'issued')
    await fixture.sql(`update tenants set status = 'suspended' where id = $1`, [own])
    fixture.clock.advance(1000)
    t.like(await fixture.tokens.issueToken(request(GRANT, app)), { error: 'invalid_client' })
    const disabled = await fixture.application(tenantId)
    await fixture.sql(`update applications set status = 'disabled' where id = $1`, [disabled.id])
    t.like(await fixture.tokens.issueToken(request(GRANT, disabled)), { error: 'invalid_client' })
  },
)

test.serial('an application with bound tokens needs a DPoP proof', async (t) => {
  const app = await fixture.application(tenantId, { dpopBoundAccessTokens: true })
  t.like(await fixture.tokens.issueToken(request(GRANT, app)), {
    tag: 'proof_refused',
    error: 'invalid_dpop_proof',
  })
  const pair = freshKeyPair('ed25519')
  const dpopProof = await fixture.proof(pair)
  const outcome = await fixture.tokens.issueToken({ ...request(GRANT, app), dpopProof })
  t.like(outcome, { tag: 'issued', tokenType: 'DPoP' })
})

test.serial('issued tokens are counted by grant and subject type', async (t) => {
  const text = await fixture.registry.metrics()
  t.regex(
    text,
    /svc_tokens_issued_total\{grant="client_credentials",subject_type="service"\} [1-9]/,
  )
})
