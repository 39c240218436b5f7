import test from 'ava'
import { exportJWK } from 'jose'
import { freshKeyPair } from '../../../../../runtime/kernel/key-pair.js'
import { applicationsActor } from '../../../../../actors/oauth/clients/registered/actor.js'
import type {
  ApplicationDraft,
  ApplicationsListed,
} from '../../../../../actors/oauth/clients/registered/protocol.js'
import { draftFault } from '../../../../../actors/oauth/clients/registered/rules.js'
import type { Principal } from '../../../../../actors/domain/principal.js'
import { spawnInline } from '../../../../../runtime/kernel/inline.js'
import {
  buildTokensFixture,
  ISSUER,
  request,
  type TokensFixture,
} from '../../tokens/tokens-fixture.js'

let fixture: TokensFixture
let tenantId: string
let actor: ReturnType<typeof spawn>
const spawn = () =>
  spawnInline(
    applicationsActor,
    { ...fixture, isOwnAddress: (uri) => uri === ISSUER, urlFaultOf: () => undefined },
    { cloneMessages: true },
  )
test.before(async () => {
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('applications')
  actor = spawn()
})
test.after.always(async () => {
  await actor?.stop()
  await fixture?.close()
})

const principal = (tenant = tenantId): Principal => ({
  subject: 'agent',
  subjectType: 'agent',
  tenantId: tenant,
  organizationId: null,
  clientId: 'agent',
  scopes: ['applications:manage', 'users:read'],
  audience: [ISSUER],
  actors: [],
  delegationId: null,
  sessionId: null,
  acr: null,
  authTimeSecs: null,
  jkt: null,
  tokenId: 'token',
  expiresAtSecs: 0,
})
const caller = (tenant = tenantId) => ({ principal: principal(tenant), address: '192.0.2.1' })
const draft = (more: Partial<ApplicationDraft> = {}): ApplicationDraft => ({
  name: 'shop',
  redirectUris: ['https://shop.example/callback'],
  ...more,
})
const create = (more: Partial<ApplicationDraft> = {}) =>
  actor.ref.createApplication({ caller: caller(), draft: draft(more), idempotency: null })

test.serial('absent members get the documented defaults', async (t) => {
  const created = await create()
  if (created.tag !== 'created') return t.fail(JSON.stringify(created))
  t.regex(created.clientSecret!, /^svcs_[A-Za-z0-9_-]{43}$/)
  const { id, createdAt, updatedAt, ...rest } = created.application
  t.deepEqual(createdAt, updatedAt)
  t.deepEqual(rest, {
    clientId: id,
    tenantId,
    name: 'shop',
    status: 'active',
    clientType: 'confidential',
    tokenEndpointAuthMethod: 'client_secret_basic',
    audience: `urn:svc:application:${id}`,
    redirectUris: ['https://shop.example/callback'],
    postLogoutRedirectUris: [],
    backchannelLogoutUri: null,
    backchannelLogoutSessionRequired: false,
    frontchannelLogoutUri: null,
    frontchannelLogoutSessionRequired: false,
    allowedOrigins: [],
    grantTypes: ['authorization_code', 'refresh_token'],
    responseTypes: ['code'],
    scopes: ['openid', 'profile', 'email'],
    defaultScopes: null,
    jwks: null,
    jwksUri: null,
    dpopBoundAccessTokens: false,
    rotateRefreshTokens: true,
    requirePushedAuthorizationRequests: false,
    idTokenSignedResponseAlg: 'ES256',
    authorizationSignedResponseAlg: null,
    userinfoSignedResponseAlg: null,
    introspectionSignedResponseAlg: null,
    requireSignedRequestObject: false,
    requestObjectSigningAlg: null,
    logoUri: null,
    requirePkce: false,
    loopbackAnyPort: false,
    metadataUrl: null,
    authorizationDetailsTypes: [],
  })
  t.like(await actor.ref.getApplication({ principal: principal(), applicationId: id }), {
    tag: 'found',
    application: { id },
  })
})

test.serial(
  'a created application works at the token endpoint, and its secret is not stored',
  async (t) => {
    const created = await create({ grantTypes: ['client_credentials'], scopes: ['users:read'] })
    if (created.tag !== 'created') return t.fail(JSON.stringify(created))
    const outcome = await fixture.tokens.issueToken(
      request({
        grant_type: 'client_credentials',
        client_id: created.application.id,
        client_secret: created.clientSecret!,
      }),
    )
    t.like(outcome, { tag: 'issued', scopes: ['users:read'] })
    const { rows } = await fixture.sql(
      'select row_to_json(s)::text as text from application_secrets s',
    )
    t.false(JSON.stringify(rows).includes(created.clientSecret!))
  },
)

test.serial('the same idempotency key creates once and shows the secret once', async (t) => {
  const idempotency = { scope: 's', key: 'k', fingerprint: new Uint8Array(32) }
  const attempt = () =>
    actor.ref.createApplication({ caller: caller(), draft: draft(), idempotency })
  const outcomes = await Promise.all(Array.from({ length: 50 }, attempt))
  const created = outcomes.filter((outcome) => outcome.tag === 'created')
  t.is(created.length, 50)
  t.is(new Set(created.map(({ application }) => application.id)).size, 1)
  t.is(created.filter(({ clientSecret }) => clientSecret !== null).length, 1)
  t.is(created.filter(({ replayed }) => !replayed).length, 1)
  const other = { ...idempotency, fingerprint: new Uint8Array(32).fill(1) }
  t.like(
    await actor.ref.createApplication({ caller: caller(), draft: draft(), idempotency: other }),
    {
      tag: 'idempotency_mismatch',
    },
  )
})

test.serial('an application cannot be created with more scopes than its creator has', async (t) => {
  t.deepEqual(await create({ scopes: ['openid', 'users:read', 'vault:manage'] }), {
    tag: 'forbidden',
    scopes: ['vault:manage'],
  })
})

test.serial('an audience belongs to one application', async (t) => {
  t.is((await create({ audience: 'https://api.example' })).tag, 'created')
  t.deepEqual(await create({ audience: 'https://api.example' }), { tag: 'audience_taken' })
})

test.serial('an application of another tenant is unknown', async (t) => {
  const foreign = await fixture.application(await fixture.tenant('foreign-applications'))
  t.deepEqual(
    await actor.ref.getApplication({ principal: principal(), applicationId: foreign.id }),
    {
      tag: 'unknown',
    },
  )
  t.deepEqual(await actor.ref.getApplication({ principal: principal(), applicationId: 'x' }), {
    tag: 'unknown',
  })
})

test.serial('pages follow each other without gaps or repetitions', async (t) => {
  const own = await fixture.tenant('paged')
  const ids: string[] = []
  for (let i = 0; i < 7; i += 1) {
    // Three share a creation time, so that the id decides the order.
    if (i % 3 === 0) fixture.clock.advance(5)
    ids.push((await fixture.application(own)).id)
  }
  const seen: string[] = []
  let after: { createdAt: Date; id: string } | null = null
  for (let page = 0; page < 4; page += 1) {
    const asked = { principal: principal(own), limit: 2, after }
    const listed = (await actor.ref.listApplications(asked)) as ApplicationsListed
    seen.push(...listed.applications.map(({ id }) => id))
    after = listed.next
    t.is(after === null, page === 3)
  }
  t.deepEqual(seen, ids.toSorted().toReversed(), 'ids begin with their time')
})

const manage = (applicationId: string, more: Partial<ApplicationDraft> = {}, tenant = tenantId) =>
  actor.ref.replaceApplication({ caller: caller(tenant), applicationId, draft: draft(more) })

test.serial('a replacement resets absent members to their defaults', async (t) => {
  const created = await create({
    audience: 'https://replaced.example',
    postLogoutRedirectUris: ['https://shop.example/bye'],
    scopes: ['openid', 'users:read'],
    dpopBoundAccessTokens: true,
    logoUri: 'https://shop.example/logo.png',
  })
  if (created.tag !== 'created') return t.fail(created.tag)
  const { id } = created.application
  fixture.clock.advance(5)
  const replaced = await manage(id, { name: 'market' })
  if (replaced.tag !== 'replaced') return t.fail(replaced.tag)
  t.is(replaced.clientSecret, null)
  t.like(replaced.application, {
    id,
    name: 'market',
    audience: `urn:svc:application:${id}`,
    dpopBoundAccessTokens: false,
    logoUri: null,
  })
  t.deepEqual(replaced.application.scopes, ['openid', 'profile', 'email'])
  t.deepEqual(replaced.application.postLogoutRedirectUris, [])
  t.true(replaced.application.updatedAt > replaced.application.createdAt)
  t.deepEqual((await manage(id, { scopes: ['vault:manage'] })).tag, 'forbidden')
  t.deepEqual((await manage(id, { redirectUris: ['ftp://x'] })).tag, 'invalid')
})

test.serial(
  'a replacement creates or removes the secret with the authentication method',
  async (t) => {
    const created = await create({ clientType: 'public' })
    if (created.tag !== 'created') return t.fail(created.tag)
    const { id } = created.application
    const confidential = await manage(id, { clientType: 'confidential' })
    if (confidential.tag !== 'replaced') return t.fail(confidential.tag)
    t.regex(confidential.clientSecret!, /^svcs_/)
    t.like(await manage(id, { clientType: 'public' }), { tag: 'replaced', clientSecret: null })
    const { rows } = await fixture.sql(
      'select 1 from application_secrets where application_id = $1::uuid',
      [id],
    )
    t.is(rows.length, 0)
    t.deepEqual(
      await actor.ref.rotateApplicationSecret({
        caller: caller(),
        applicationId: id,
        overlapSecs: 0,
      }),
      { tag: 'no_secret' },
    )
  },
)

test.serial(
  'an application of another tenant cannot be replaced, rotated or deleted',
  async (t) => {
    const foreign = await fixture.application(await fixture.tenant('foreign-managed'))
    const unknown = { tag: 'unknown' } as const
    for (const applicationId of [foreign.id, fixture.random.uuid(), 'x']) {
      t.deepEqual(await manage(applicationId), unknown)
      t.deepEqual(await actor.ref.deleteApplication({ caller: caller(), applicationId }), unknown)
      const rotation = { caller: caller(), applicationId, overlapSecs: 0 }
      t.deepEqual(await actor.ref.rotateApplicationSecret(rotation), unknown)
    }
  },
)

test.serial(
  'an application with more scopes than the caller has cannot be taken over',
  async (t) => {
    const strong = await fixture.application(tenantId, { scopes: ['openid', 'vault:manage'] })
    t.deepEqual(
      await actor.ref.rotateApplicationSecret({
        caller: caller(),
        applicationId: strong.id,
        overlapSecs: 0,
      }),
      { tag: 'forbidden', scopes: ['vault:manage'] },
    )
  },
)

test.serial(
  'a secret overlaps with its successor for the requested time, and not at all by default',
  async (t) => {
    const app = await fixture.application(tenantId, { scopes: ['openid'] })
    const rotate = async (overlapSecs: number) => {
      const rotated = await actor.ref.rotateApplicationSecret({
        caller: caller(),
        applicationId: app.id,
        overlapSecs,
      })
      if (rotated.tag !== 'rotated') throw new Error(rotated.tag)
      return rotated.clientSecret
    }
    const works = async (secret: string) => {
      fixture.tokens.send('invalidate', { ids: [app.id] })
      const outcome = await fixture.tokens.issueToken(
        request({ grant_type: 'client_credentials', client_id: app.id, client_secret: secret }),
      )
      return outcome.tag === 'issued'
    }
    const second = await rotate(60)
    t.deepEqual([await works(app.secret), await works(second)], [true, true])
    fixture.clock.advance(60_000)
    t.deepEqual([await works(app.secret), await works(second)], [false, true])
    const third = await rotate(3600)
    const fourth = await rotate(0)
    t.deepEqual(
      [await works(second), await works(third), await works(fourth)],
      [false, false, true],
      'a rotation without overlap ends every earlier secret',
    )
  },
)

test.serial('parallel rotations leave one secret that does not expire', async (t) => {
  const app = await fixture.application(tenantId, { scopes: ['openid'] })
  const rotation = { caller: caller(), applicationId: app.id, overlapSecs: 60 }
  await Promise.all(Array.from({ length: 10 }, () => actor.ref.rotateApplicationSecret(rotation)))
  const { rows } = await fixture.sql(
    'select 1 from application_secrets where application_id = $1::uuid and expires_at is null',
    [app.id],
  )
  t.is(rows.length, 1)
})

const jwk = await exportJWK(freshKeyPair('ed25519').publicKey)
const privateJwk = await exportJWK(freshKeyPair('ed25519').privateKey)
const keyed = { tokenEndpointAuthMethod: 'private_key_jwt' } as const
for (const [title, change, pointer] of [
  ['a plain draft', {}, undefined],
  ['a loopback redirect', { redirectUris: ['http://127.0.0.1:3000/cb'] }, undefined],
  ['a private-use scheme', { redirectUris: ['com.example.app:/cb'] }, undefined],
  ['plain http', { redirectUris: ['http://shop.example/cb'] }, '/redirect_uris/0'],
  [
    'a fragment',
    { redirectUris: ['https://a.example', 'https://a.example#x'] },
    '/redirect_uris/1',
  ],
  ['a wildcard', { redirectUris: ['https://*.example/cb'] }, '/redirect_uris/0'],
  ['a script', { redirectUris: ['javascript:alert(1)'] }, '/redirect_uris/0'],
  [
    'a bad logout redirect',
    { postLogoutRedirectUris: ['ftp://x'] },
    '/post_logout_redirect_uris/0',
  ],
  ['an origin', { allowedOrigins: ['https://shop.example'] }, undefined],
  ['an origin with a path', { allowedOrigins: ['https://shop.example/'] }, '/allowed_origins/0'],
  ['the origin null', { allowedOrigins: ['null'] }, '/allowed_origins/0'],
  ['an http origin', { allowedOrigins: ['http://shop.example'] }, '/allowed_origins/0'],
  ['an unknown grant', { grantTypes: ['password'] }, '/grant_types/0'],
  ['an unknown scope', { scopes: ['openid', 'root'] }, '/scopes/1'],
  ['an implicit response', { responseTypes: ['token'] }, '/response_types/0'],
  ['a public client', { clientType: 'public' }, undefined],
  [
    'a public client with a secret',
    { clientType: 'public', tokenEndpointAuthMethod: 'client_secret_post' },
    '/token_endpoint_auth_method',
  ],
  [
    'a confidential client without',
    { clientType: 'confidential', tokenEndpointAuthMethod: 'none' },
    '/token_endpoint_auth_method',
  ],
  [
    'a public client with client_credentials',
    { clientType: 'public', grantTypes: ['client_credentials'] },
    '/grant_types',
  ],
  ['a key', { ...keyed, jwks: { keys: [jwk] } }, undefined],
  ['private_key_jwt without a key', keyed, '/jwks'],
  ['a private key', { ...keyed, jwks: { keys: [privateJwk] } }, '/jwks/keys/0'],
  ['a symmetric key', { ...keyed, jwks: { keys: [{ kty: 'oct', k: 'AA' }] } }, '/jwks/keys/0'],
  [
    'an RSA key',
    { ...keyed, jwks: { keys: [{ kty: 'RSA', n: 'AA', e: 'AQAB' }] } },
    '/jwks/keys/0',
  ],
  ['a relative audience', { audience: 'api' }, '/audience'],
  ['a logo whose URL names a user', { logoUri: 'https://a@shop.example/logo.png' }, '/logo_uri'],
  ['keys at an http URL', { jwksUri: 'http://shop.example/keys' }, '/jwks_uri'],
  ['keys at a URL that names a user', { jwksUri: 'https://a@shop.example/keys' }, '/jwks_uri'],
  ['an http logo', { logoUri: 'http://shop.example/logo.png' }, '/logo_uri'],
] as [string, Partial<ApplicationDraft>, string | undefined][]) {
  test.serial(
    `an application with ${title} is ${pointer === undefined ? 'accepted' : 'refused'}`,
    async (t) => t.is((await draftFault(draft(change), [], () => undefined))?.pointer, pointer),
  )
}
