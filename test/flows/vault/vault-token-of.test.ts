/** Egress with `token_of`: the secret is the access token of another credential. */
import test from 'ava'
import type { Json } from '../../support/api.js'
import {
  bodyCall,
  CREDENTIALS,
  egressPair,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { sql } from '../../support/storage/sql.js'
import { tokenUpstream, type TokenUpstream } from '../../support/vault/token-upstream.js'
import { expireIn, managed, refusedAs } from '../../support/vault/vault-export.js'

const [resources, second] = await egressPair()
const { api, upstream } = resources
test.after.always(async () => {
  await second.end()
  await resources.end()
})

/** A non-exportable oauth2 credential, and one with its `token_of`. */
async function carried(endpoint: TokenUpstream, more: Json = {}) {
  const source = await settingOf(resources, {
    credential_type: 'oauth2',
    auth_scheme: undefined,
    allowed_hosts: [UPSTREAM_NAME],
    secret: JSON.stringify({ token_url: endpoint.url, client_id: 'c', refresh_token: 'rt-0' }),
  })
  const { operator, agentId } = source
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'As the account',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    token_of: source.credentialId,
    ...more,
  })
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  const credentialId = String(created.body['id'])
  const grant = { grantee_type: 'agent', grantee_id: agentId, max_requests: 100 }
  await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, grant)
  const call = (at = resources, path = '/headers') =>
    at.api.post('/v1/proxy', source.delegated, {
      credential_id: credentialId,
      url: `${upstream.origin}${path}`,
    })
  return { source, credentialId, operator, call, record: created.body }
}
const lastAuthorization = () => upstream.requests.at(-1)!.headers.authorization

test.serial(
  'the token is obtained, injected, redacted, and refreshed before its expiry',
  async (t) => {
    const endpoint = await tokenUpstream()
    t.teardown(() => endpoint.close())
    endpoint.adorn({ access_token: 'canary-access-token-1' })
    const { source, credentialId, call, record } = await carried(endpoint)
    t.like(record, { token_of: source.credentialId, non_exportable: true, status: 'active' })
    const first = await call()
    t.is(first.status, 200, JSON.stringify(first.body))
    t.is(lastAuthorization(), 'Bearer canary-access-token-1')
    t.true(JSON.stringify(first.body).includes('[redacted]'))
    t.false(JSON.stringify([first.body, first.headers]).includes('canary'))
    // There is no other way to get it.
    t.deepEqual(refusedAs(await managed(resources, source)), [403, 'policy_denied'])
    t.deepEqual(refusedAs(await managed(resources, { ...source, credentialId })), [
      403,
      'policy_denied',
    ])
    const read = await api.get(`${CREDENTIALS}/${credentialId}/secret`, source.operator)
    t.is(read.status, 403)

    // Thirty callers of two processes with an expired token: one refresh.
    endpoint.adorn({ access_token: 'canary-access-token-2' })
    await expireIn(resources, source, 59)
    const many = Array.from({ length: 30 }, (_, nth) => call(nth % 2 === 0 ? resources : second))
    for (const answer of await Promise.all(many)) t.is(answer.status, 200)
    t.is(endpoint.tokenRequests.length, 2)
    t.is(endpoint.tokenRequests[1]!.form['refresh_token'], 'rt-1')
    t.is(lastAuthorization(), 'Bearer canary-access-token-2')
    const raw = await resources.send('/v1/proxy/body', {
      token: source.direct,
      headers: bodyCall({ credentialId }, `${upstream.origin}/headers`),
    })
    t.is(raw.statusCode, 200)
    t.false((await raw.body.text()).includes('canary'))

    const [row] = await sql<{ secret: unknown; token_of: string }>(
      resources.running.db.database,
      'select secret, token_of from vault_credentials where id = $1',
      [credentialId],
    )
    t.deepEqual(row, { secret: null, token_of: source.credentialId })
  },
)

test.serial(
  'without a token the caller gets an error, and only the request count is used',
  async (t) => {
    const endpoint = await tokenUpstream()
    t.teardown(() => endpoint.close())
    const { source, call, credentialId, operator } = await carried(endpoint)
    await api.post(`${CREDENTIALS}/${credentialId}/leases`, operator, {
      recipient_id: source.agentId,
      byte_budget: 100_000,
    })
    const before = upstream.requests.length
    endpoint.answer(() => ({ status: 400, body: { error: 'invalid_grant' } }))
    const refused = await call()
    t.is(refused.status, 502)
    t.is(refused.headers['proxy-status'], 'svc-egress; error=proxy_configuration_error')
    t.true(String(refused.body['detail']).endsWith('invalid_grant.'))
    await sql(
      resources.running.db.database,
      'delete from vault_managed_tokens where credential_id = $1',
      [source.credentialId],
    )
    endpoint.answer(() => ({ status: 503, body: '' }))
    const away = await call()
    t.is(away.status, 502)
    t.is(away.headers['proxy-status'], 'svc-egress; error=destination_unavailable')
    t.is(upstream.requests.length, before, 'nothing was sent')
    await until('the bytes are given back', 30_000, async () => {
      const { rows } = await api.list(`${CREDENTIALS}/${credentialId}/leases`, operator)
      return rows[0]!['bytes_used'] === 0
    })
  },
)

test.serial('a token that the API rejects is refreshed early, at a limited rate', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, call } = await carried(endpoint)
  t.is((await call(resources, '/denied')).status, 401)
  t.is((await call(resources, '/denied')).status, 401)
  t.is(endpoint.tokenRequests.length, 1, 'a token of this minute is not refreshed')
  await expireIn(resources, source, 3_000)
  t.is((await call(resources, '/denied')).status, 401)
  for (let tries = 0; endpoint.tokenRequests.length === 1 && tries < 100; tries += 1) {
    t.is((await call()).status, 200)
  }
  t.is(endpoint.tokenRequests.length, 2)
  t.is(lastAuthorization(), 'Bearer at-2')
})

test.serial('revoking the account revokes its dependent credentials', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, call, credentialId, operator } = await carried(endpoint)
  t.is((await call()).status, 200)
  const ended = await api.post(`${CREDENTIALS}/${source.credentialId}/revoke`, operator)
  t.is(ended.status, 200)
  t.deepEqual(refusedAs(await call()), [403, 'policy_denied'])
  const read = await api.get(`${CREDENTIALS}/${credentialId}`, operator)
  t.like(read.body, { status: 'revoked', token_of: source.credentialId })
})

test.serial('which credentials support token_of', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, operator, credentialId } = await carried(endpoint)
  const bad: [Json, string][] = [
    [{ token_of: credentialId }, '#/token_of'],
    [{ token_of: 'no-uuid' }, '#/token_of'],
    [{ token_of: '01890000-0000-7000-8000-000000000001' }, '#/token_of'],
    [{ credential_type: 'ssh_ca', auth_scheme: undefined }, '#/token_of'],
    [{ credential_type: 'oauth2' }, '#/token_of'],
    [{ secret: 'own' }, '#/secret'],
    [{ non_exportable: false }, '#/non_exportable'],
    [{ auth_scheme: 'basic' }, '#/auth_scheme'],
    [{ auth_scheme: undefined }, '#/auth_scheme'],
  ]
  const draft = {
    provider: 'upstream',
    credential_type: 'custom',
    label: 'Odd',
    auth_scheme: 'bearer',
    token_of: source.credentialId,
  }
  for (const [more, pointer] of bad) {
    const { status, body } = await api.post(CREDENTIALS, operator, { ...draft, ...more })
    t.is(status, 400, JSON.stringify(more))
    t.is((body['errors'] as Json[])[0]!['pointer'], pointer, JSON.stringify(more))
  }
  const stranger = await api.workspace()
  t.is((await api.post(CREDENTIALS, stranger.token, draft)).status, 400)
  const rotated = await api.post(`${CREDENTIALS}/${credentialId}/rotate`, operator, { secret: 'x' })
  t.is(rotated.status, 400)
  for (const scheme of ['header:x-api-key', 'query:key']) {
    const made = await api.post(CREDENTIALS, operator, { ...draft, auth_scheme: scheme })
    t.is(made.status, 201, JSON.stringify(made.body))
  }
})
