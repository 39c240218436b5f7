/** `github_app` and `gcp_service_account`: their upstreams verify the assertions and give tokens of an hour. */
import { createVerify, generateKeyPairSync, type KeyObject } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import {
  CREDENTIALS,
  UPSTREAM_NAME,
  egressHouse,
  settingOf,
} from '../../../support/vault/egress.js'
import {
  type TokenReply,
  type TokenRequest,
  type TokenUpstream,
  tokenUpstream,
} from '../../../support/vault/token-upstream.js'
import { expireIn } from '../../../support/vault/vault-export.js'
import type { Json } from '../../../support/api.js'
import type { Setting } from '../../../support/vault/egress.js'

const resources = await egressHouse()
const { api } = resources
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = (type: 'pkcs1' | 'pkcs8') => privateKey.export({ type, format: 'pem' })

async function upstreamOf(
  t: ExecutionContext,
  answer: (request: TokenRequest) => TokenReply,
): Promise<TokenUpstream> {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  upstream.answer(answer)
  return upstream
}

type Jwt = { readonly head: Json; readonly claims: Json }

/** The assertion; null unless the key has signed it. */
function verified(token: string, key: KeyObject = publicKey): Jwt | null {
  const [head = '', claims = '', signature = ''] = token.split('.')
  const signed = createVerify('sha256').update(`${head}.${claims}`)
  if (!signed.verify(key, Buffer.from(signature, 'base64url'))) return null
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
  return { head: read(head), claims: read(claims) }
}

const call = (upstream: TokenUpstream, setting: Setting) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: `${upstream.origin}/api/repos`,
  })

const appSetting = (scheme: string, secret: Json) =>
  settingOf(resources, { credential_type: 'custom', auth_scheme: scheme, secret })

test('a GitHub App gets the token of its installation, narrowed', async (t) => {
  const asked: { path: string; jwt: Jwt | null; text: string; headers: Json }[] = []
  const upstream = await upstreamOf(t, ({ path, headers, text }) => {
    const jwt = verified(String(headers.authorization).replace('Bearer ', ''))
    asked.push({ path, jwt, text, headers: headers as Json })
    if (jwt === null)
      return { status: 401, body: { message: 'A JSON web token could not be decoded' } }
    const end = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z/, 'Z')
    return { status: 201, body: { token: `ghs_${asked.length}`, expires_at: end } }
  })
  const setting = await appSetting('github_app', {
    app_id: 12_345,
    installation_id: '678',
    private_key: pem('pkcs1'),
    api_url: `${upstream.origin}/v3/`,
    repositories: ['site'],
    permissions: { contents: 'read' },
  })
  const first = await call(upstream, setting).gives(200)
  t.is(first.body['authorization'], 'Bearer [redacted]')
  t.is(upstream.apiRequests[0]!.authorization, 'Bearer ghs_1')
  const [{ path, jwt, text, headers } = asked[0]!] = asked
  t.is(path, '/v3/app/installations/678/access_tokens')
  t.deepEqual(jwt!.head, { alg: 'RS256', typ: 'JWT' })
  const { iss, iat, exp } = jwt!.claims as { iss: string; iat: number; exp: number }
  const now = Date.now() / 1000
  t.is(iss, '12345')
  t.true(iat < now - 50 && iat > now - 120)
  t.true(exp > now && exp <= now + 600)
  t.deepEqual(JSON.parse(text), { repositories: ['site'], permissions: { contents: 'read' } })
  t.like(headers, { accept: 'application/vnd.github+json' })

  await call(upstream, setting).gives(200)
  t.is(asked.length, 1, 'it is cached')
  await expireIn(resources, setting, 59)
  await call(upstream, setting).gives(200)
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer ghs_2')
  upstream.reject('ghs_2')
  await call(upstream, setting).gives(200)
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer ghs_3')
})

test('faults of GitHub', async (t) => {
  const upstream = await upstreamOf(t, () => ({ status: 404, body: { message: 'Not Found' } }))
  const secret = {
    app_id: 'Iv1.8a61f9b3a7aba766',
    installation_id: 678,
    private_key: pem('pkcs8'),
    api_url: upstream.origin,
  }
  const cases: [TokenReply, string, string][] = [
    [{ status: 404, body: { message: 'Not Found' } }, 'proxy_configuration_error', 'status_404.'],
    [{ status: 401, body: { message: 'Bad' } }, 'proxy_configuration_error', 'invalid_client.'],
    [
      { status: 403, headers: { 'retry-after': '60' }, body: {} },
      'destination_unavailable',
      'unavailable.',
    ],
    [
      { status: 201, body: { token: 'x', expires_at: 'soon' } },
      'proxy_configuration_error',
      'response.',
    ],
    [
      { status: 201, body: { expires_at: '2099-01-01T00:00:00Z' } },
      'proxy_configuration_error',
      'response.',
    ],
  ]
  for (const [reply, error, end] of cases) {
    upstream.answer(() => reply)
    const setting = await appSetting('github_app', secret)
    const { headers, body } = await call(upstream, setting).gives(502)
    t.is(headers['proxy-status'], `svc-egress; error=${error}`)
    t.true(String(body['detail']).endsWith(end), String(body['detail']))
    const { body: record } = await api.get(
      `${CREDENTIALS}/${setting.credentialId}`,
      setting.operator,
    )
    t.is(record['status'], 'active')
  }
})

test('a Google service account exchanges its assertion at the token_uri of its key file', async (t) => {
  const asked: (Jwt | null)[] = []
  const upstream = await upstreamOf(t, ({ form }) => {
    if (form['grant_type'] !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return { status: 400, body: { error: 'unsupported_grant_type' } }
    const jwt = verified(form['assertion']!)
    asked.push(jwt)
    return jwt === null
      ? {
          status: 400,
          body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' },
        }
      : { body: { access_token: `ya29.${asked.length}`, expires_in: 3599, token_type: 'Bearer' } }
  })
  const file = {
    type: 'service_account',
    project_id: 'project',
    private_key_id: 'key-7',
    private_key: pem('pkcs8'),
    client_email: 'robot@project.iam.gserviceaccount.com',
    client_id: '1',
    auth_uri: 'https://accounts.google.com/o/oauth2/auth',
    token_uri: upstream.url,
    universe_domain: 'googleapis.com',
  }
  const scope = 'https://www.googleapis.com/auth/devstorage.read_only'
  const setting = await appSetting('gcp_service_account', { ...file, scope })
  await call(upstream, setting).gives(200)
  t.is(upstream.apiRequests[0]!.authorization, 'Bearer ya29.1')
  const { head, claims } = asked[0]!
  t.deepEqual(head, { alg: 'RS256', typ: 'JWT', kid: 'key-7' })
  t.like(claims, { iss: file.client_email, aud: upstream.url, scope })
  t.is(Number(claims['exp']) - Number(claims['iat']), 3600)

  await call(upstream, await appSetting('gcp_service_account', file)).gives(200)
  t.is(asked[1]!.claims['scope'], 'https://www.googleapis.com/auth/cloud-platform')

  // Another key is a fault of the configuration: no person can authorize it again.
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const wrong = await appSetting('gcp_service_account', {
    ...file,
    private_key: other.export({ type: 'pkcs8', format: 'pem' }),
  })
  const refused = await call(upstream, wrong).gives(502)
  t.true(String(refused.body['detail']).endsWith('invalid_grant.'))
})

test('what the documents may have', async (t) => {
  const { operator } = await settingOf(resources)
  const small = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const ec = small.export({ type: 'pkcs8', format: 'pem' })
  const app = { app_id: 1, installation_id: 2, private_key: pem('pkcs8') }
  const file = { client_email: 'robot@x.example', private_key: pem('pkcs8') }
  const cases: [string, Json, string | null, string[]?][] = [
    ['github_app', app, null, ['api.github.com']],
    ['github_app', app, '#/secret/api_url'],
    ['github_app', { ...app, api_url: `https://${UPSTREAM_NAME}` }, null],
    ['github_app', { ...app, api_url: `http://${UPSTREAM_NAME}` }, '#/secret/api_url'],
    ['github_app', { ...app, api_url: `https://${UPSTREAM_NAME}?a` }, '#/secret/api_url'],
    ['github_app', { ...app, private_key: ec }, '#/secret/private_key'],
    ['github_app', { ...app, private_key: 'canary' }, '#/secret/private_key'],
    ['github_app', { ...app, installation_id: '2/../3' }, '#/secret/installation_id'],
    ['github_app', { ...app, app_id: undefined }, '#/secret/app_id'],
    [
      'github_app',
      { ...app, permissions: { contents: 'canary' } },
      '#/secret/permissions/contents',
    ],
    ['github_app', { ...app, more: 'canary' }, '#/secret'],
    ['gcp_service_account', file, null, ['oauth2.googleapis.com', 'storage.googleapis.com']],
    ['gcp_service_account', file, '#/secret/token_uri'],
    ['gcp_service_account', { ...file, type: 'authorized_user' }, '#/secret/type'],
    ['gcp_service_account', { ...file, client_email: undefined }, '#/secret/client_email'],
    ['gcp_service_account', { ...file, private_key: ec }, '#/secret/private_key'],
  ]
  for (const [scheme, secret, pointer, hosts = [UPSTREAM_NAME]] of cases) {
    for (const form of [secret, JSON.stringify(secret)]) {
      const { status, body } = await api.post(CREDENTIALS, operator, {
        provider: 'upstream',
        credential_type: 'custom',
        label: 'App',
        auth_scheme: scheme,
        allowed_hosts: hosts,
        secret: form,
      })
      const words = `${scheme} ${Object.keys(secret).join()} ${pointer}`
      if (pointer === null) {
        t.is(status, 201, words)
        continue
      }
      t.is(status, 400, words)
      t.is((body['errors'] as Json[])[0]!['pointer'], pointer, words)
      t.false(JSON.stringify(body).includes('canary'))
    }
  }
  const { body } = await api.get('/api/v1/capabilities')
  const features = body['features'] as Record<string, { auth_schemes?: string[] }>
  t.true(features['vault.egress']!.auth_schemes!.includes('github_app'))
})
