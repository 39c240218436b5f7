/** Rotation of signing keys on request, with two services on one database. */
import test from 'ava'
import { Command } from 'commander'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { openDatabaseTools } from '../../../../runtime/cli/key-tools.js'
import { operatorCommand } from '../../../../runtime/cli/operator.js'
import { type Api, type Json, type Workspace } from '../../../support/api.js'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  journey,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { twoServices } from '../../../support/service/two-services.js'
import { until } from '../../../support/service/watch.js'

const { first: api, second } = await twoServices()
const { database, url } = api.at.db

const ROTATE = '/api/v1/signing-keys/rotate'
const ME = '/api/v1/agents/me'
const SCOPE = 'signing_keys:manage'

/** `svc operator ...` on the machine of the services. */
async function operator(...words: string[]) {
  const outcome = { out: '', err: '', code: 0 }
  const program = new Command().exitOverride()
  operatorCommand(program, {
    open: () => openDatabaseTools({ environment: { DATABASE_URL: url }, cwd: '/' }),
    out: (text) => (outcome.out += text),
    err: (text) => (outcome.err += text),
    exitWith: (code) => (outcome.code = code),
  })
  await program.parseAsync(['node', 'svc', 'operator', ...words])
  return outcome
}

async function loginAt(at: Api, { key, agentId, controlPlane }: Workspace, scope?: string) {
  const { status, body } = await at.login(
    key,
    { agent_id: agentId, tenant_id: controlPlane },
    scope,
  )
  return { status, token: String(body['access_token']), scope: String(body['scope']) }
}

async function appointed() {
  const owner = await api.workspace()
  const { code, err } = await operator('appoint', owner.agentId)
  if (code !== 0) throw new Error(err)
  return { owner, ...(await loginAt(api, owner)) }
}

/** The published keys of a service. */
async function keySet(at: Api) {
  const { body } = await at.get('/.well-known/jwks.json')
  return body as unknown as Parameters<typeof createLocalJWKSet>[0]
}

const kidOf = (token: string) => String(decodeProtectedHeader(token).kid)

/** Advances the clock until verifiers must have the next keys. */
const publishedLongAgo = () =>
  sql(database)`
    update signing_keys set created_at = created_at - interval '20 minutes' where state = 'next'`

test.serial(
  'no role has the scope: owners of organizations are refused, whatever they request',
  async (t) => {
    const owner = await api.workspace()
    for (const [token, error] of [
      [owner.operator, 'forbidden'],
      [owner.token, 'insufficient_scope'],
    ] as const) {
      const refused = await api.post(ROTATE, token)
      t.like(refused, { status: 403, body: { error } })
    }
    t.is((await api.post(ROTATE)).status, 401)
    t.is((await loginAt(api, owner, SCOPE)).status, 400)
    t.is((await api.login(owner.key, { agent_id: owner.agentId }, SCOPE)).status, 400)
    // Nor through an application, whose registration may name any scope.
    const made = await api.post('/api/v1/applications', owner.token, {
      name: 'Sly',
      redirect_uris: [],
      grant_types: ['client_credentials'],
      scopes: [SCOPE],
    })
    if (made.status === 201) {
      const { client_id, client_secret } = made.body as Record<string, string>
      const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
      const answer = await api.form(
        '/oauth/token',
        { grant_type: 'client_credentials', scope: SCOPE },
        { authorization: `Basic ${basic}` },
      )
      const token = String(answer.body['access_token'])
      t.true(answer.status !== 200 || (await api.post(ROTATE, token)).status === 403)
    }
  },
)

test.serial('the operator appoints an agent, and dismisses it', async (t) => {
  const owner = await api.workspace()
  const before = await loginAt(api, owner)
  t.false(before.scope.includes(SCOPE))
  const said = await operator('appoint', owner.agentId, '--json')
  t.like(JSON.parse(said.out) as Json, { agent_id: owner.agentId, status: 'appointed' })
  t.is((await operator('appoint', owner.agentId)).code, 0)
  const after = await loginAt(api, owner)
  t.is(after.scope, `${before.scope} ${SCOPE}`)
  // The scope works only in the control plane: not in the agent's own tenant, not in a bound token.
  const inTenant = { agent_id: owner.agentId, tenant_id: owner.tenantId }
  t.false(String((await api.login(owner.key, inTenant)).body['scope']).includes(SCOPE))
  const bound = await api.post(
    `/api/v1/control-plane/organizations/${owner.organizationId}/token`,
    after.token,
  )
  t.is((await api.post(ROTATE, String(bound.body['access_token']))).status, 403)

  t.is((await operator('dismiss', owner.agentId)).code, 0)
  for (const at of [api, second]) {
    const isRefused = async () => (await at.get(ME, after.token)).status === 401
    await until('the dismissal reaches the process', isRefused)
  }
  t.is((await loginAt(api, owner)).scope, before.scope)

  const { agentId } = await api.register(owner.tenantId)
  for (const stranger of [agentId, 'unknown', crypto.randomUUID()]) {
    const refused = await operator('appoint', stranger)
    t.is(refused.code, 1)
    t.regex(refused.err, /is not an agent of the control plane/)
  }
  const told = await sql<{ data: Json }>(database)`
    select data from audit_events where type = 'admin.agent.updated'
    and resource->>'id' = ${owner.agentId}
    order by sequence`
  t.deepEqual(
    told.map(({ data }) => (data['scopes'] as string[]).includes(SCOPE)),
    [true, false],
  )
})

test.serial('a key that verifiers may not have yet does not sign', async (t) => {
  const { token } = await appointed()
  const before = await keySet(api)
  // A service of the tests may have had its keys for longer.
  await sql(database)`update signing_keys set created_at = now() where state = 'next'`
  const early = await api.post(ROTATE, token).gives(409, 'conflict')
  const wait = Number(early.headers['retry-after'])
  t.true(wait > 500 && wait <= 600, String(wait))
  t.deepEqual(await keySet(api), before)
  t.is((await api.post(ROTATE, token, { algorithm: 'RS512' })).status, 400)
  t.is((await api.post(ROTATE, token, [])).status, 400)
})

test.serial('the next key signs, and tokens of the previous key stay valid', async (t) => {
  const { owner, token } = await appointed()
  const before = await keySet(api)
  await publishedLongAgo()
  const rotated = await api.post(
    ROTATE,
    token,
    { algorithm: 'ES256' },
    { 'x-request-id': 'rotation-of-the-test' },
  )
  t.is(rotated.status, 200)
  const current = rotated.body['current'] as { kid: string; algorithm: string }[]
  const kid = current.find(({ algorithm }) => algorithm === 'ES256')!.kid
  t.not(kid, kidOf(token))
  t.true(
    before.keys.some((key) => key.kid === kid),
    'it had been published',
  )
  for (const at of [api, second]) {
    const published = await keySet(at)
    const kids = published.keys.map((key) => key.kid)
    t.true(kids.includes(kid) && kids.includes(kidOf(token)), 'both are there')
    t.is((await at.get(ME, token)).status, 200)
    const renewed = await loginAt(at, owner)
    t.is(kidOf(renewed.token), kid)
    // Both verify with the published keys.
    for (const one of [token, renewed.token])
      await t.notThrowsAsync(
        jwtVerify(one, createLocalJWKSet(published), { issuer: api.at.baseUrl }),
      )
    t.is((await second.get(ME, renewed.token)).status, 200)
  }
  const [event] = await sql<{ tenant_id: string; subject: Json; request_id: string; data: Json }>(
    database,
  )`
    select tenant_id, subject, request_id, data from audit_events
    where type = 'admin.signing_keys.rotated' order by sequence desc limit 1`
  t.is(event!.tenant_id, owner.controlPlane)
  t.deepEqual(event!.subject, { sub: owner.agentId, subject_type: 'agent' })
  t.is(event!.request_id, String(rotated.headers['x-request-id']))
  t.like(event!.data, { current: [kid] })
  t.is((event!.data['retired'] as Json[])[0]!['kid'], kidOf(token))
})

test.serial('of many concurrent rotations exactly one replaces a key', async (t) => {
  const { token } = await appointed()
  await publishedLongAgo()
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, turn) => (turn % 2 === 0 ? api : second).post(ROTATE, token)),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [
    200,
    ...Array.from({ length: 9 }, () => 409),
  ])
  const rows = await sql<{ algorithm: string; state: string }>(database)`
    select algorithm, state from signing_keys where state <> 'retired' order by 1, 2`
  t.deepEqual(
    rows.map(({ algorithm, state }) => `${algorithm} ${state}`),
    ['ES256 current', 'ES256 next', 'EdDSA current', 'EdDSA next'],
  )
})

test.serial('an ID token signs its user out long after its key has left the key set', async (t) => {
  const { owner, token: first } = await appointed()
  const party = await relyingParty(api.at, owner)
  const { browser, tokens } = await party.signedIn(fixtureOf(owner))
  const hint = tokens.id_token!
  const bye = 'https://app.example/bye'
  const out = (idToken: string) => {
    const query = new URLSearchParams({ id_token_hint: idToken, post_logout_redirect_uri: bye })
    return browser.get(`/oauth/end-session?${query.toString()}`)
  }
  /** The key was replaced, its last token expired long ago, and all maintenance is done. */
  const retiredFor = async (ago: string) => {
    await sql(database)`
      update signing_keys set verifiable_until = now() - ${ago}::interval
      where kid = ${kidOf(hint)}`
    await publishedLongAgo()
    // The first token has the same key.
    const { token } = await appointed()
    t.is((await api.post(ROTATE, token, { algorithm: 'EdDSA' })).status, 200)
  }
  await publishedLongAgo()
  t.is((await api.post(ROTATE, first, { algorithm: 'ES256' })).status, 200)
  await retiredFor('1 minute')
  t.false((await keySet(api)).keys.some(({ kid }) => kid === kidOf(hint)))
  const answer = await out(hint)
  t.is(answer.status, 302, answer.html)
  t.is(answer.location, bye)

  await retiredFor('91 days')
  t.is((await out(hint)).status, 400)
})

test.serial('the first ID tokens with RS256, in two processes, make one RSA key', async (t) => {
  const { owner, token } = await appointed()
  const made = await api
    .post('/api/v1/applications', owner.token, {
      name: 'Old library',
      redirect_uris: [CALLBACK],
      scopes: ['openid'],
      id_token_signed_response_alg: 'RS256',
    })
    .gives(201)
  const { client_id: clientId, client_secret: secret } = made.body as Record<string, string>
  t.is(made.body['id_token_signed_response_alg'], 'RS256')
  const isRsa = ({ kty }: { kty?: string }) => kty === 'RSA'
  t.false((await keySet(api)).keys.some(isRsa), 'no RSA key before its first use')

  // openid-client expects RS256, as most libraries do, and verifies the signature by the key set.
  const configAt = (at: Api) =>
    oidc.discovery(new URL(at.at.baseUrl), clientId!, secret, undefined, {
      execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks],
    })
  const config = await configAt(api)
  const browser = openBrowser(api.at)
  const signIn = async () => {
    const begun = await journey({ config }, { scope: 'openid' })
    return {
      ...begun,
      callback: callbackOf(await authorized(browser, fixtureOf(owner), begun.url)),
    }
  }
  const begun = [await signIn(), await signIn(), await signIn(), await signIn()]
  const tokens = await Promise.all(
    begun.map(async ({ callback, checks }, turn) => {
      const at = turn % 2 === 0 ? api : second
      const body = {
        grant_type: 'authorization_code',
        code: callback.searchParams.get('code')!,
        redirect_uri: CALLBACK,
        code_verifier: String(checks.pkceCodeVerifier),
      }
      const basic = Buffer.from(`${clientId}:${secret}`).toString('base64')
      const headers = { authorization: `Basic ${basic}` }
      return (await at.form('/oauth/token', body, headers)).body
    }),
  )
  const published = await keySet(api)
  const rsa = published.keys.filter(isRsa)
  t.is(rsa.length, 2, 'current and next')
  for (const key of rsa) {
    t.deepEqual(Object.keys(key), ['kty', 'n', 'e', 'use', 'alg', 'kid'])
    t.like(key, { alg: 'RS256', use: 'sig' })
    t.is(Buffer.from(String(key.n), 'base64url').length, 256)
  }
  t.deepEqual(await keySet(second), published)
  for (const { id_token: idToken, access_token: accessToken } of tokens as Record<
    string,
    string
  >[]) {
    const { protectedHeader } = await jwtVerify(idToken!, createLocalJWKSet(published), {
      issuer: api.at.baseUrl,
      audience: clientId!,
      algorithms: ['RS256'],
    })
    t.is(protectedHeader.kid, kidOf((tokens[0] as Record<string, string>)['id_token']!))
    t.is(decodeProtectedHeader(accessToken!).alg, 'ES256')
  }

  const last = await signIn()
  const granted = await oidc.authorizationCodeGrant(config, last.callback, last.checks)
  const renewed = await oidc.refreshTokenGrant(config, granted.refresh_token!)
  t.is(decodeProtectedHeader(renewed.id_token!).alg, 'RS256')
  // Rotation: the next RSA key signs, and the ID token of the previous one is still a hint.
  await publishedLongAgo()
  const rotated = await api.post(ROTATE, token, { algorithm: 'RS256' }).gives(200)
  const current = rotated.body['current'] as { kid: string; algorithm: string }[]
  const again = await signIn()
  const after = await oidc.authorizationCodeGrant(config, again.callback, again.checks)
  const kid = kidOf(after.id_token!)
  t.true(current.some((key) => key.algorithm === 'RS256' && key.kid === kid))
  t.not(kid, kidOf(granted.id_token!))
  const query = new URLSearchParams({ id_token_hint: granted.id_token! })
  const out = await browser.get(`/oauth/end-session?${query.toString()}`)
  t.is(out.status, 200, out.html)
  t.regex(out.html, /data-page="signed-out"/)
})
