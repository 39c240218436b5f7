import test from 'ava'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type {
  DiscoveryProtocol,
  DocumentName,
} from '../../../../actors/oauth/discovery/protocol.js'
import { GRANT_TYPES, isGrantType } from '../../../../actors/domain/oauth/grant-types.js'
import { CLIENT_AUTH_METHODS } from '../../../../actors/oauth/tokens/protocol.js'
import type { ActorRef } from '../../../../runtime/kernel/actor.js'
import {
  buildTokensFixture,
  publishing,
  ISSUER,
  request,
  type TokensFixture,
} from '../tokens/tokens-fixture.js'

const { host: HOST } = new URL(ISSUER)

let fixture: TokensFixture
let discovery: ActorRef<DiscoveryProtocol>
let stop: () => Promise<unknown>
test.before(async () => {
  fixture = await buildTokensFixture()
  const { tenants, discovery: spawned } = publishing(fixture)
  discovery = spawned.ref
  stop = () => Promise.all([spawned.stop(), tenants.stop()])
})
test.after.always(async () => {
  await stop?.()
  await fixture?.close()
})

async function document(name: DocumentName): Promise<Record<string, unknown>> {
  const published = await discovery.serviceDocument({ name, host: HOST })
  if (published.tag !== 'published') throw new Error(published.tag)
  return JSON.parse(Buffer.from(published.body).toString()) as Record<string, unknown>
}

test.serial('a token is verified with nothing but the discovery document', async (t) => {
  const metadata = await document('openid-configuration')
  t.is(metadata['jwks_uri'], `${ISSUER}/.well-known/jwks.json`)
  const keySet = createLocalJWKSet((await document('jwks')) as never)
  const app = await fixture.application(await fixture.tenant('discovered'))
  const outcome = await fixture.tokens.issueToken(
    request({ grant_type: 'client_credentials' }, app),
  )
  if (outcome.tag !== 'issued') return t.fail(outcome.tag)
  const { payload } = await jwtVerify(outcome.accessToken, keySet, {
    issuer: metadata['issuer'] as string,
    audience: app.audience,
    typ: 'at+jwt',
    currentDate: fixture.clock.now(),
  })
  t.is(payload.sub, app.clientId)
})

test.serial('the lists match the token endpoint, without disabled features', async (t) => {
  const metadata = await document('oauth-authorization-server')
  t.deepEqual(metadata['grant_types_supported'], GRANT_TYPES)
  t.deepEqual(metadata['token_endpoint_auth_methods_supported'], [...CLIENT_AUTH_METHODS])
  t.deepEqual(metadata['response_types_supported'], ['code'])
  t.deepEqual(
    Object.keys(metadata).filter((member) => member.endsWith('_endpoint')),
    [
      'authorization_endpoint',
      'pushed_authorization_request_endpoint',
      'token_endpoint',
      'device_authorization_endpoint',
      'backchannel_authentication_endpoint',
      'introspection_endpoint',
      'revocation_endpoint',
      'status_list_aggregation_endpoint',
    ],
  )
  for (const member of ['subject_types_supported', 'id_token_signing_alg_values_supported'])
    t.false(member in metadata, `${member} is for OpenID Connect`)
})

test.serial(
  'a grant type that is not listed is refused, one that is listed is known',
  async (t) => {
    const app = await fixture.application(await fixture.tenant('grants'))
    for (const grant_type of [...GRANT_TYPES, 'password', 'implicit']) {
      const outcome = await fixture.tokens.issueToken(request({ grant_type }, app))
      const known = !(outcome.tag === 'oauth_refused' && outcome.error === 'unsupported_grant_type')
      t.is(known, isGrantType(grant_type), grant_type)
    }
  },
)

test.serial('OpenID Connect adds its required members', async (t) => {
  const metadata = await document('openid-configuration')
  t.like(metadata, {
    issuer: ISSUER,
    subject_types_supported: ['pairwise'],
    id_token_signing_alg_values_supported: ['ES256', 'EdDSA', 'RS256'],
    ui_locales_supported: ['en', 'de', 'fr', 'es', 'it', 'pt', 'ja', 'ar'],
    request_uri_parameter_supported: false,
  })
})

test.serial('the protected resource names its authorization server', async (t) => {
  t.like(await document('oauth-protected-resource'), {
    resource: ISSUER,
    authorization_servers: [ISSUER],
    bearer_methods_supported: ['header'],
    // Neither operator scopes nor offline_access, which clients request on their own.
    scopes_supported: ['openid', 'profile', 'email', 'phone', 'address'],
    dpop_bound_access_tokens_required: false,
  })
})

test.serial('documents have the same bytes and the same tag every time', async (t) => {
  for (const name of ['openid-configuration', 'jwks', 'jwt-vc-issuer'] as const) {
    const [one, other] = await Promise.all([
      discovery.serviceDocument({ name, host: HOST }),
      discovery.serviceDocument({ name, host: HOST }),
    ])
    t.deepEqual(one, other)
    t.like(one, { tag: 'published', maxAgeSecs: 300 })
    if (one.tag === 'published') t.regex(one.etag, /^"[^"]+"$/)
  }
})

test.serial('a tenant publishes metadata only if it issues credentials', async (t) => {
  const tenantId = await fixture.tenant('issuing')
  const names = ['openid-credential-issuer', 'jwt-vc-issuer', 'jwks'] as const
  const ask = (tenantSlug: string, name: (typeof names)[number]) =>
    discovery.tenantDocument({ name, tenantSlug })
  for (const name of names)
    for (const slug of ['issuing', 'unknown-slug', '../x', ''])
      t.deepEqual(await ask(slug, name), { tag: 'not_enabled' }, `${name} of "${slug}"`)
  await fixture.sql('update tenants set credential_issuer_enabled = true where id = $1', [tenantId])
  // The tenant cache keeps old values for a while.
  fixture.clock.advance(3600_000)
  for (const name of names) t.is((await ask('issuing', name)).tag, 'published', name)
  const issuer = await ask('issuing', 'jwt-vc-issuer')
  if (issuer.tag !== 'published') return t.fail(issuer.tag)
  const identifier = `${ISSUER}/credential-issuers/issuing`
  t.deepEqual(JSON.parse(Buffer.from(issuer.body).toString()), {
    issuer: identifier,
    jwks_uri: `${identifier}/.well-known/jwks.json`,
  })
})
