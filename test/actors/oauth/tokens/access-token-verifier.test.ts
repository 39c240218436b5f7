import test from 'ava'
import { SignJWT } from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import type { Authenticate } from '../../../../actors/oauth/tokens/protocol.js'
import {
  buildTokensFixture,
  byAssertion,
  DPOP_DEFAULT,
  INTROSPECT_URL,
  ISSUER,
  request,
  type TokensFixture,
} from './tokens-fixture.js'

let fixture: TokensFixture
let tenantId: string
test.before(async () => {
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('bearers')
})
test.after.always(() => fixture?.close())

const API = `${ISSUER}/api/v1/applications`
const present = (token: string, more: Partial<Authenticate> = {}): Authenticate => ({
  token,
  scheme: 'Bearer',
  dpopProof: null,
  httpMethod: 'GET',
  httpUrl: API,
  ...more,
})

async function serviceToken(fields: Record<string, string> = {}) {
  const app = await fixture.application(tenantId)
  const outcome = await fixture.tokens.issueToken(
    request({ grant_type: 'client_credentials', ...fields }, app),
  )
  if (outcome.tag !== 'issued') throw new Error(outcome.tag)
  return { app, token: outcome.accessToken }
}

test.serial('a token is valid until its last second', async (t) => {
  const { token } = await serviceToken()
  t.is((await fixture.tokens.authenticate(present(token))).tag, 'authenticated')
  fixture.clock.advance(299_000)
  t.is((await fixture.tokens.authenticate(present(token))).tag, 'authenticated')
  fixture.clock.advance(1_000)
  t.like(await fixture.tokens.authenticate(present(token)), {
    tag: 'refused',
    error: 'token_expired',
  })
})

test.serial('a token for an application only is not valid at our own API', async (t) => {
  const { token } = await serviceToken({ scope: 'openid' })
  t.like(await fixture.tokens.authenticate(present(token)), { error: 'unauthorized' })
})

test.serial(
  'a suspension is effective immediately in its process, and within a second in others',
  async (t) => {
    const agent = await fixture.agent(tenantId)
    const { accessToken } = await fixture.login(tenantId, agent)
    const elsewhere = fixture.spawnTokens()
    for (const process of [fixture.tokens, elsewhere.ref])
      t.is((await process.authenticate(present(accessToken))).tag, 'authenticated')
    await fixture.sql(`update agents set status = 'suspended' where id = $1`, [agent.id])
    fixture.tokens.send('invalidate', { ids: [agent.id] })
    const revoked = { tag: 'refused', error: 'token_revoked' } as const
    t.like(await fixture.tokens.authenticate(present(accessToken)), revoked)
    fixture.clock.advance(900)
    t.like(await elsewhere.ref.authenticate(present(accessToken)), revoked)
    await elsewhere.stop()
  },
)

test.serial('the database notifies every change of token status', async (t) => {
  const pg = await import('pg')
  const client = new pg.default.Client({ connectionString: fixture.fresh.superuserUrl })
  await client.connect()
  const heard = new Set<string | undefined>()
  client.on('notification', ({ payload }) => heard.add(payload))
  await client.query('listen svc_standing')
  const agent = await fixture.agent(tenantId)
  const { sessionId } = await fixture.login(tenantId, agent)
  const app = await fixture.application(tenantId)
  const own = await fixture.tenant('announced')
  await fixture.sql(`update sessions set ended_at = now() where id = $1`, [sessionId])
  await fixture.sql(`update agents set status = 'suspended' where id = $1`, [agent.id])
  await fixture.sql(`update applications set status = 'disabled' where id = $1`, [app.id])
  await fixture.sql(`update tenants set status = 'suspended' where id = $1`, [own])
  await client.query('select 1')
  await client.end()
  for (const id of [sessionId, agent.id, app.id, own]) t.true(heard.has(id), id)
})

test.serial('forged and malformed tokens are refused', async (t) => {
  const { token } = await serviceToken()
  const [head, body, signature] = token.split('.') as [string, string, string]
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const kid = (JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }).kid
  const foreign = freshKeyPair('P-256')
  const forge = (header: Record<string, unknown>) =>
    new SignJWT(claims).setProtectedHeader(header as never).sign(foreign.privateKey)
  const ours = async (typ: string, change: Record<string, unknown>) => {
    const signed = await fixture.keys.sign({
      typ,
      claims: JSON.stringify({ ...claims, ...change }),
    })
    return signed.tag === 'signed' ? signed.token : ''
  }
  for (const [title, text] of [
    ['nothing', ''],
    ['a word', 'token'],
    ['alg none', `${part({ alg: 'none', typ: 'at+jwt', kid })}.${body}.`],
    ['alg HS256', `${part({ alg: 'HS256', typ: 'at+jwt', kid })}.${body}.${signature}`],
    ['no kid', await forge({ alg: 'ES256', typ: 'at+jwt' })],
    ['an unknown kid', await forge({ alg: 'ES256', typ: 'at+jwt', kid: 'x' })],
    ['a path as kid', await forge({ alg: 'ES256', typ: 'at+jwt', kid: '../../etc/passwd' })],
    ['a foreign key', await forge({ alg: 'ES256', typ: 'at+jwt', kid })],
    ['more claims', `${head}.${part({ ...claims, scope: 'tenant:manage' })}.${signature}`],
    ['a trailing part', `${token}.x`],
    ['padding', `${token}=`],
    ['the type JWT', await ours('JWT', {})],
    ['the type dpop+jwt', await ours('dpop+jwt', {})],
    ['another issuer', await ours('at+jwt', { iss: 'https://evil.example' })],
    ['no subject', await ours('at+jwt', { sub: '' })],
    ['no tenant', await ours('at+jwt', { tenant_id: undefined })],
    ['an unknown kind of subject', await ours('at+jwt', { subject_type: 'root' })],
    ['exp as a string', await ours('at+jwt', { exp: '9999999999' })],
    ['a negative exp', await ours('at+jwt', { exp: -1 })],
    ['a fractional exp', await ours('at+jwt', { exp: 9999999999.5 })],
    ['no iat', await ours('at+jwt', { iat: undefined })],
    ['an nbf in the future', await ours('at+jwt', { nbf: fixture.clock.nowSecs() + 60 })],
    ['an empty audience', await ours('at+jwt', { aud: [] })],
    ['an audience list with a number', await ours('at+jwt', { aud: ['https://api.example', 1] })],
    ['an actor that is not an object', await ours('at+jwt', { act: 'me' })],
  ] as const) {
    const judged = await fixture.tokens.authenticate(present(text))
    t.like(judged, { tag: 'refused', error: 'unauthorized' }, title)
  }
  t.is((await fixture.tokens.authenticate(present(token))).tag, 'authenticated')
})

test.serial(
  'a bound token needs a fresh proof by its key, for this request and this token',
  async (t) => {
    const agent = await fixture.agent(tenantId)
    const { accessToken } = await fixture.login(tenantId, agent, agent.fingerprint)
    const other = await fixture.agent(tenantId)
    const good = { htm: 'GET', htu: API }
    const dpop = (dpopProof: string | null) =>
      fixture.tokens.authenticate(present(accessToken, { scheme: 'DPoP', dpopProof }))
    const proof = await fixture.proof(agent, good, accessToken)
    t.is((await dpop(proof)).tag, 'authenticated')
    const refused: [string, string | null][] = [
      ['the same proof again', proof],
      ['no proof', null],
      ['a proof without the hash of the token', await fixture.proof(agent, good)],
      ['a proof for another token', await fixture.proof(agent, good, 'other')],
      ['a proof by another key', await fixture.proof(other, good, accessToken)],
      [
        'a proof for another method',
        await fixture.proof(agent, { ...good, htm: 'POST' }, accessToken),
      ],
      ['two proofs in one header', `${proof}, ${proof}`],
    ]
    for (const [title, text] of refused)
      t.like(await dpop(text), { tag: 'refused', error: 'invalid_dpop_proof' }, title)
    const fresh = await fixture.proof(agent, good, accessToken)
    t.like(
      await fixture.tokens.authenticate(present(accessToken, { dpopProof: fresh })),
      { error: 'invalid_dpop_proof' },
      'presented as Bearer',
    )
  },
)

test.serial('a token without a key is not a DPoP token', async (t) => {
  const { token } = await serviceToken()
  const pair = freshKeyPair('ed25519')
  const dpopProof = await fixture.proof(pair, { htm: 'GET', htu: API }, token)
  t.like(await fixture.tokens.authenticate(present(token, { scheme: 'DPoP', dpopProof })), {
    error: 'unauthorized',
  })
})

test.serial('required nonces come with the refusal, work for minutes, and expire', async (t) => {
  const strict = fixture.spawnTokens({ ...DPOP_DEFAULT, require_nonce: true })
  const elsewhere = fixture.spawnTokens({ ...DPOP_DEFAULT, require_nonce: true })
  const pair = freshKeyPair('ed25519')
  const prove = async (nonce?: string, process = strict) =>
    process.ref.proveKey({
      proof: await fixture.proof(pair, nonce === undefined ? {} : { nonce }),
      httpMethod: 'POST',
      httpUrl: `${ISSUER}/oauth/token`,
    })
  const first = await prove()
  if (first.tag !== 'proof_refused') return t.fail(first.tag)
  t.is(first.error, 'use_dpop_nonce')
  const nonce = first.dpopNonce!
  t.regex(nonce, /^[A-Za-z0-9_-]+$/)
  t.is((await prove(nonce)).tag, 'proven')
  t.is((await prove(nonce, elsewhere)).tag, 'proven', 'in another process')
  t.like(await prove('A'.repeat(60)), { error: 'use_dpop_nonce' }, 'forged')
  t.like(await prove(`${nonce.slice(0, -2)}AA`), { error: 'use_dpop_nonce' }, 'changed')
  fixture.clock.advance(4 * 60_000)
  t.is((await prove(nonce)).tag, 'proven', 'after four minutes')
  fixture.clock.advance(60_000)
  t.like(await prove(nonce), { error: 'use_dpop_nonce' }, 'after five')
  await strict.stop()
  await elsewhere.stop()
})

test.serial('a deployment without DPoP refuses proofs', async (t) => {
  const without = fixture.spawnTokens({ ...DPOP_DEFAULT, enabled: false })
  const proof = await fixture.proof(freshKeyPair('ed25519'))
  const outcome = await without.ref.proveKey({
    proof,
    httpMethod: 'POST',
    httpUrl: `${ISSUER}/oauth/token`,
  })
  t.like(outcome, { tag: 'proof_refused', error: 'invalid_dpop_proof' })
  await without.stop()
})

const inspect = (
  fields: Record<string, string>,
  more: { authorization?: string; dpopProof?: string } = {},
) => fixture.tokens.introspectToken({ ...request(fields), httpUrl: INTROSPECT_URL, ...more })

test.serial(
  'introspection returns all claims to a client of the tenant, until the token expires',
  async (t) => {
    const { app, token } = await serviceToken()
    const asker = await fixture.application(tenantId)
    const alive = await inspect({ token }, asker)
    t.like(alive, {
      tag: 'introspected',
      answer: {
        active: true,
        tokenType: 'Bearer',
        clientId: app.clientId,
        subject: app.clientId,
        subjectType: 'service',
        tenantId,
        issuer: ISSUER,
        scope: 'applications:read users:read',
        expiresAtSecs: fixture.clock.nowSecs() + 300,
      },
    })
    fixture.clock.advance(299_000)
    t.like(await inspect({ token }, asker), { answer: { active: true } })
    fixture.clock.advance(1_000)
    t.deepEqual(await inspect({ token }, asker), { tag: 'introspected', answer: { active: false } })
  },
)

test.serial('introspection sees a suspension without delay', async (t) => {
  const agent = await fixture.agent(tenantId)
  const { accessToken, refreshToken } = await fixture.login(tenantId, agent)
  const asker = await fixture.application(tenantId)
  for (const token of [accessToken, refreshToken])
    t.like(await inspect({ token }, asker), { answer: { active: true } })
  await fixture.sql(`update agents set status = 'suspended' where id = $1`, [agent.id])
  for (const token of [accessToken, refreshToken])
    t.deepEqual(await inspect({ token }, asker), {
      tag: 'introspected',
      answer: { active: false },
    })
})

test.serial('refresh tokens can be introspected, rotated ones are inactive', async (t) => {
  const agent = await fixture.agent(tenantId)
  const { refreshToken, sessionId } = await fixture.login(tenantId, agent)
  const asker = await fixture.application(tenantId)
  t.like(await inspect({ token: refreshToken, token_type_hint: 'access_token' }, asker), {
    answer: { active: true, tokenType: 'refresh_token', clientId: agent.id, sessionId },
  })
  await fixture.tokens.issueToken(
    request({ grant_type: 'refresh_token', client_id: agent.id, refresh_token: refreshToken }),
  )
  t.like(await inspect({ token: refreshToken }, asker), { answer: { active: false } })
})

test.serial('tokens of other tenants and garbage are inactive', async (t) => {
  const foreign = await fixture.application(await fixture.tenant('elsewhere'))
  const { token } = await serviceToken()
  for (const text of [token, 'x', 'a.b.c', 'A'.repeat(43)])
    t.deepEqual(await inspect({ token: text }, foreign), {
      tag: 'introspected',
      answer: { active: false },
    })
})

test.serial('which clients can introspect', async (t) => {
  const { token } = await serviceToken()
  const open = await fixture.application(tenantId, {
    clientType: 'public',
    tokenEndpointAuthMethod: 'none',
    secretSha256: null,
  })
  t.like(await inspect({ token, client_id: open.clientId }), { error: 'invalid_client' }, 'public')
  t.like(await inspect({ token }), { error: 'invalid_client' }, 'without credentials')
  const agent = await fixture.agent(tenantId)
  t.like(await inspect({ token, client_id: agent.id }), { error: 'invalid_client' }, 'bare agent')
  const signed = await fixture.assertion(agent.id, agent.privateKey)
  t.like(await inspect({ token, ...byAssertion(signed) }), { answer: { active: true } }, 'agent')
  const reader = await fixture.application(tenantId, { scopes: ['tokens:introspect'] })
  const bearerOf = async (app: typeof reader) => {
    const outcome = await fixture.tokens.issueToken(
      request({ grant_type: 'client_credentials' }, app),
    )
    return outcome.tag === 'issued' ? `Bearer ${outcome.accessToken}` : ''
  }
  const authorization = await bearerOf(reader)
  t.like(
    await inspect({ token }, { authorization }),
    { answer: { active: true } },
    'with the scope',
  )
  const without = await bearerOf(await fixture.application(tenantId))
  t.like(await inspect({ token }, { authorization: without }), { error: 'insufficient_scope' })
  t.like(await inspect({ token }, { authorization: 'Bearer x.y.z' }), {
    tag: 'refused',
    error: 'unauthorized',
  })
  t.like(await inspect({}, { authorization }), { error: 'invalid_request' })
})
