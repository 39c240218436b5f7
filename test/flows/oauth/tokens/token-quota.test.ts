/**
 * The quotas of OAuth clients, counted by two processes together. What a stranger sends in the name of a client does not
 * use up the quota of that client.
 */
import anyTest, { type TestFn } from 'ava'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { POLICIES } from '../../../../actors/operations/rate-limits/protocol.js'
import type { NewApplication } from '../../../../storage/oauth/applications.js'
import type { Answer, Api } from '../../../support/api.js'
import { CIBA_GRANT } from '../../../support/oauth/ciba.js'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import { CALLBACK, relyingParty } from '../../../support/oauth/relying-party.js'
import { notBehindNginx } from '../../../support/fleet/through.js'
import { sharedTwo } from '../../../support/service/two-services.js'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** More than two minutes allow, in case a minute ends during the test. */
const FLOOD = 2 * POLICIES.token[0].limit + 1

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
type Fields = Record<string, string>
type Sent = { readonly fields: Fields; readonly headers?: Fields }
type Scene = Awaited<ReturnType<typeof sharedTwo>> & { readonly person: Workspace }
const test = anyTest as TestFn<Scene>

test.before(async (t) => {
  notBehindNginx()
  const services = await sharedTwo('strict')
  t.context = { ...services, person: await bootstrapped(services.first.at) }
})
test.after.always((t) => t.context.end?.())

const basic = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`

/** Every endpoint that authenticates clients: what it needs, and whether public clients use it. */
const ENDPOINTS: readonly (readonly [path: string, fields: Fields, forPublic: boolean])[] = [
  ['/oauth/token', { grant_type: 'refresh_token', refresh_token: 'unknown' }, true],
  [
    '/oauth/par',
    {
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    },
    true,
  ],
  ['/oauth/revoke', { token: 'unknown' }, true],
  ['/oauth/introspect', { token: 'unknown' }, false],
  ['/oauth/device/code', { scope: 'openid' }, true],
  ['/bc-authorize', { scope: 'openid', login_hint: 'ada@example.com' }, false],
]
/** The answers of the endpoints to their client: the refresh token is unknown, everything else succeeds. */
const ANSWERS: Readonly<Record<string, number>> = { '/oauth/token': 400, '/oauth/par': 201 }

async function send(
  api: Api,
  path: string,
  address: string,
  { fields, headers }: Sent,
): Promise<Answer> {
  return api.form(path, fields, { ...headers, 'x-forwarded-for': address })
}

const application = (scene: Scene, more: Partial<NewApplication>) =>
  relyingParty(scene.first.at, scene.person, {
    grantTypes: [
      'authorization_code',
      'refresh_token',
      'client_credentials',
      DEVICE_GRANT,
      CIBA_GRANT,
    ],
    ...more,
  })

const assertionBy = async (
  key: PrivateKey,
  clientId: string,
  audience: string,
): Promise<Fields> => ({
  client_assertion_type: JWT_BEARER,
  client_assertion: await new SignJWT({ jti: crypto.randomUUID() })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(key),
})

type Confidential = {
  readonly clientId: string
  readonly right: () => Promise<Sent>
  readonly wrong: () => Promise<Sent>
}

/** A client for each way of authentication, with right and wrong credentials. */
const CONFIDENTIAL: Readonly<Record<string, (scene: Scene) => Promise<Confidential>>> = {
  async client_secret_basic(scene) {
    const { clientId, secret } = await application(scene, {})
    const by = (text: string) => async () => ({
      fields: {},
      headers: { authorization: basic(clientId, text) },
    })
    return { clientId, right: by(secret), wrong: by('wrong') }
  },
  async client_secret_post(scene) {
    const { clientId, secret } = await application(scene, {
      tokenEndpointAuthMethod: 'client_secret_post',
    })
    const by = (text: string) => async () => ({
      fields: { client_id: clientId, client_secret: text },
    })
    return { clientId, right: by(secret), wrong: by('wrong') }
  },
  async private_key_jwt(scene) {
    const [own, other] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')])
    const { clientId } = await application(scene, {
      tokenEndpointAuthMethod: 'private_key_jwt',
      secretSha256: null,
      jwks: { keys: [{ ...(await exportJWK(own.publicKey)) }] },
    })
    // The client_id is in the assertion only.
    const by = (key: PrivateKey) => async () => ({
      fields: await assertionBy(key, clientId, scene.first.at.issuer),
    })
    return { clientId, right: by(own.privateKey), wrong: by(other.privateKey) }
  },
}

for (const [number, method] of Object.keys(CONFIDENTIAL).entries()) {
  test(`${method}: failures leave the client its quota at every endpoint`, async (t) => {
    const scene = t.context
    const { clientId, right, wrong } = await CONFIDENTIAL[method]!(scene)
    const apis = [scene.first, scene.second]
    // Two addresses of one /64 network count as one.
    const network = (host: number) => `2001:db8:${number}::${1 + host}`
    const attack = await Promise.all(
      Array.from({ length: FLOOD }, async (_, at) => {
        const [path, fields] = ENDPOINTS[at % ENDPOINTS.length]!
        // The id alone, and wrong credentials.
        const bad =
          at % 12 < 6 && method !== 'private_key_jwt'
            ? { fields: { client_id: clientId } }
            : await wrong()
        const sent = { ...bad, fields: { ...fields, ...bad.fields } }
        return send(apis[at % 7 < 3 ? 0 : 1]!, path, network(at % 9), sent)
      }),
    )
    t.deepEqual([...new Set(attack.map(({ status }) => status))].toSorted(), [401, 429])
    const over = attack.find(({ status }) => status === 429)!
    t.like(over.body, { error: 'rate_limited', 'violated-policies': ['token'] })
    t.regex(over.headers['ratelimit']!, /"token";r=0/)
    t.true(attack.filter(({ status }) => status === 401).length <= 2 * POLICIES.token[0].limit)
    // Right credentials pass from the network of the attack, in both processes.
    for (const api of apis)
      for (const [path, fields] of ENDPOINTS) {
        const good = await right()
        const sent = { ...good, fields: { ...fields, ...good.fields } }
        const { status, body } = await send(api, path, network(3), sent)
        t.is(status, ANSWERS[path] ?? 200, `${path} ${JSON.stringify(body)}`)
      }
  })
}

test('a public client has its quota in each network, at every endpoint', async (t) => {
  const scene = t.context
  const apis = [scene.first, scene.second]
  const { clientId } = await application(scene, {
    clientType: 'public',
    tokenEndpointAuthMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token', DEVICE_GRANT],
  })
  const endpoints = ENDPOINTS.filter(([, , forPublic]) => forPublic)
  const ask = (at: number, address: string) => {
    const [path, fields] = endpoints[at % endpoints.length]!
    return send(apis[at % 7 < 3 ? 0 : 1]!, path, address, {
      fields: { ...fields, client_id: clientId },
    })
  }
  const attack = await Promise.all(Array.from({ length: 500 }, (_, at) => ask(at, '192.0.2.66')))
  for (const at of endpoints.keys()) {
    const statuses = attack.filter((_, sent) => sent % endpoints.length === at)
    t.true(
      statuses.some(({ status }) => status === 429),
      endpoints[at]![0],
    )
  }
  for (const [at, [path]] of endpoints.entries())
    t.is((await ask(at, '192.0.2.7')).status, ANSWERS[path] ?? 200, path)
})

test('authenticated requests of a client have one quota, in all networks and processes', async (t) => {
  const scene = t.context
  const { clientId, secret } = await application(scene, {})
  /** The same id in another encoding for each number (RFC 6749 section 2.3.1). */
  const spelt = (number: number) =>
    [...clientId]
      .map((one, at) => ((number >> at) & 1 ? `%${one.charCodeAt(0).toString(16)}` : one))
      .join('')
  const answers = await Promise.all(
    Array.from({ length: FLOOD }, (_, number) =>
      send([scene.first, scene.second][number % 2]!, '/oauth/token', `198.51.100.${number % 99}`, {
        fields: { grant_type: 'client_credentials' },
        headers: { authorization: basic(spelt(number), secret) },
      }),
    ),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))].toSorted(), [200, 429])
  for (const { status, headers } of answers) {
    t.regex(headers['ratelimit-policy']!, /^"default";q=600;w=60, "token";q=120;w=60$/)
    t.regex(headers['ratelimit']!, status === 200 ? /"token";r=\d+/ : /"token";r=0/)
  }
  const success = answers.filter(({ status }) => status === 200)
  t.true(success.length <= 2 * POLICIES.token[0].limit)
})

test('wrong tokens run into a quota that leaves right ones from the address alone', async (t) => {
  const { first } = t.context
  const from = '203.0.113.6'
  const headers = { 'x-forwarded-for': from }
  const ask = (token: string) => first.call('GET', '/api/v1/agents/me', { token, headers })
  const { token } = await first.workspace()
  for (const wrong of ['x.y.z', 'opaque', `${token.slice(0, -6)}AAAAAA`]) {
    let status = 0
    for (let sent = 0; sent <= 4 * POLICIES.default[0].limit && status !== 429; sent += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(wrong)))
      status = answers.at(-1)!.status
    }
    t.is(status, 429, wrong)
    t.is((await ask(token)).status, 200)
  }
})

test('an address cannot authenticate without bound under other ids', async (t) => {
  const { first } = t.context
  const guess = () =>
    send(first, '/oauth/token', '203.0.113.5', {
      fields: { grant_type: 'client_credentials', client_id: crypto.randomUUID() },
    })
  let refused: Answer | undefined
  const limit = 2 * POLICIES.default[0].limit
  for (let sent = 0; sent <= limit && refused === undefined; sent += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, guess))
    refused = answers.find(({ status }) => status === 429)
  }
  t.deepEqual(refused?.body['violated-policies'], ['default'])
  // The other route whose quota has a key that the sender writes.
  const challenge = { json: { agent_id: crypto.randomUUID() } }
  const { headers } = await first.call('POST', '/api/v1/agents/auth/challenge', challenge)
  t.is(headers['ratelimit-policy'], '"default";q=600;w=60, "agent-auth";q=60;w=60')
})
