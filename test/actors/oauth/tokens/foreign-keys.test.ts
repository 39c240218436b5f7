/** Signatures with a kid of another party, or with a deleted one. */
import test from 'ava'
import { exportJWK, SignJWT } from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import {
  buildTokensFixture,
  byAssertion,
  ISSUER,
  request,
  type TokensFixture,
} from './tokens-fixture.js'

let fixture: TokensFixture
test.before(async () => {
  fixture = await buildTokensFixture()
})
test.after.always(() => fixture?.close())

const GRANT = { grant_type: 'client_credentials' }

async function keyed(tenantId: string, kid: string) {
  const pair = freshKeyPair('P-256')
  const jwk = { ...(await exportJWK(pair.publicKey)), kid }
  const application = await fixture.application(tenantId, {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [jwk] },
  })
  return { ...application, ...pair, jwk, kid }
}

async function exchanged(clientId: string, by: Awaited<ReturnType<typeof keyed>>, kid: string) {
  const assertion = await fixture.assertion(clientId, by.privateKey, {}, { kid })
  const outcome = await fixture.tokens.issueToken(request({ ...GRANT, ...byAssertion(assertion) }))
  return 'error' in outcome ? outcome.error : outcome.tag
}

const presented = (token: string) =>
  fixture.tokens.authenticate({
    token,
    scheme: 'Bearer',
    dpopProof: null,
    httpMethod: 'GET',
    httpUrl: `${ISSUER}/api/v1/applications`,
  })

test.serial("another tenant's kid cannot sign an assertion", async (t) => {
  const mine = await keyed(await fixture.tenant('mine'), 'k-mine')
  const theirs = await keyed(await fixture.tenant('theirs'), 'k-theirs')
  t.is(await exchanged(mine.clientId, mine, mine.kid), 'issued')
  t.is(await exchanged(theirs.clientId, theirs, theirs.kid), 'issued')
  t.is(await exchanged(mine.clientId, theirs, theirs.kid), 'invalid_client', 'their key and kid')
  t.is(await exchanged(mine.clientId, theirs, mine.kid), 'invalid_client', 'their key, my kid')
  t.is(await exchanged(mine.clientId, mine, theirs.kid), 'invalid_client', 'my key, their kid')
})

test.serial('a removed kid of an application cannot sign an assertion', async (t) => {
  const before = await keyed(await fixture.tenant('gave-up'), 'old')
  const after = freshKeyPair('P-256')
  t.is(await exchanged(before.clientId, before, 'old'), 'issued')
  const keys = [{ ...(await exportJWK(after.publicKey)), kid: 'new' }]
  await fixture.sql('update applications set jwks = $2 where id = $1', [
    before.clientId,
    JSON.stringify({ keys }),
  ])
  fixture.tokens.send('invalidate', { ids: [before.clientId] })
  t.is(await exchanged(before.clientId, before, 'old'), 'invalid_client')
  t.is(await exchanged(before.clientId, before, 'new'), 'invalid_client')
  t.is(await exchanged(before.clientId, { ...before, ...after }, 'new'), 'issued')
})

test.serial('a kid of an application or of an agent cannot sign an access token', async (t) => {
  const tenantId = await fixture.tenant('no-signer')
  const app = await keyed(tenantId, 'k-app')
  const agent = await fixture.agent(tenantId, 'es256')
  const { accessToken } = await fixture.login(tenantId, agent)
  t.is((await presented(accessToken)).tag, 'authenticated')
  const claims = JSON.parse(
    Buffer.from(accessToken.split('.')[1]!, 'base64url').toString(),
  ) as Record<string, unknown>
  for (const [kid, key] of [
    [app.kid, app.privateKey],
    [agent.fingerprint, agent.privateKey],
  ] as const) {
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid })
      .sign(key)
    t.like(await presented(forged), { tag: 'refused', error: 'unauthorized' }, kid)
  }
})

test.serial(
  'a withdrawn kid invalidates its tokens, also those that were verified before',
  async (t) => {
    const tenantId = await fixture.tenant('withdrawn')
    const agent = await fixture.agent(tenantId)
    const [judged, fresh] = [
      await fixture.login(tenantId, agent),
      await fixture.login(tenantId, agent),
    ]
    t.is((await presented(judged.accessToken)).tag, 'authenticated')
    const rotated = await fixture.keys.rotateSigningKeys({ compromised: true })
    t.is(rotated.tag, 'rotated')
    for (const { accessToken } of [judged, fresh])
      t.like(await presented(accessToken), { tag: 'refused', error: 'unauthorized' })
    const next = await fixture.login(tenantId, agent)
    t.is((await presented(next.accessToken)).tag, 'authenticated')
  },
)
