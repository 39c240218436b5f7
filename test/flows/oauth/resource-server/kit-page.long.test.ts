/** The code of docs/guides/oauth/resource-server-kit.md with tokens of the service. */
import test from 'ava'
import * as oidc from 'openid-client'
import { loopbackPort } from '../../../support/oauth/mcp-example.js'
import { docsPage } from '../../../support/pages/docs-page.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')

test('the API of the page accepts tokens for itself, bound ones with a proof, and names what is missing', async (t) => {
  const own = await api.workspace()
  const RESOURCE = `http://127.0.0.1:${await loopbackPort()}/notes`
  const page = docsPage(t, 'guides/oauth/resource-server-kit')
  t.is(
    (await page.run('sh', 0, { BASE: running.baseUrl, TOKEN: own.token, RESOURCE })).trim(),
    RESOURCE,
  )
  const made = await api.list('/api/v1/api-resources', own.token)
  const clientId = String(own.body['client_id'])
  const answer = await api.patch(
    `/api/v1/api-resources/${String(made.rows[0]!['id'])}`,
    own.token,
    { client_ids: [clientId] },
  )
  t.is(answer.status, 200)
  await page.run('ts', 0, {})
  const protectedApi = page.begin('js', 0, { ISSUER: running.issuer, RESOURCE })
  t.is(await protectedApi.line(), 'ready')

  const config = await oidc.discovery(
    new URL(running.baseUrl),
    clientId,
    {},
    oidc.ClientSecretBasic(String(own.body['client_secret'])),
    { execute: [oidc.allowInsecureRequests] },
  )
  const bare = await fetch(RESOURCE)
  t.is(bare.status, 401)
  const challenge = bare.headers.get('www-authenticate')!
  const [, metadataUrl = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? []
  const metadata = (await (await fetch(metadataUrl)).json()) as Record<string, unknown>
  t.like(metadata, { resource: RESOURCE, authorization_servers: [running.issuer] })
  const published = await api.get(
    `/api/v1/api-resources/${String(made.rows[0]!['id'])}/protected-resource-metadata`,
    own.token,
  )
  t.is(published.body['resource'], metadata['resource'])
  t.deepEqual(published.body['authorization_servers'], metadata['authorization_servers'])

  const grant = { resource: RESOURCE, scope: 'notes:read' }
  const read = await oidc.clientCredentialsGrant(config, grant)
  const headers = { authorization: `Bearer ${read.access_token}` }
  const good = await fetch(RESOURCE, { headers })
  t.is(good.status, 200)
  t.like(await good.json(), { tenantId: own.tenantId, subjectType: 'service', actors: [] })
  const write = await fetch(RESOURCE, { method: 'POST', headers })
  t.is(write.status, 403)
  t.regex(write.headers.get('www-authenticate')!, /error="insufficient_scope", scope="notes:write"/)
  const other = await oidc.clientCredentialsGrant(config)
  t.is(
    (await fetch(RESOURCE, { headers: { authorization: `Bearer ${other.access_token}` } })).status,
    401,
  )

  const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair('ES256'))
  const bound = await oidc.clientCredentialsGrant(
    config,
    { ...grant, scope: 'notes:write' },
    { DPoP },
  )
  t.is(bound.token_type, 'dpop')
  const call = (method: string) =>
    oidc.fetchProtectedResource(
      config,
      bound.access_token,
      new URL(RESOURCE),
      method,
      undefined,
      undefined,
      { DPoP },
    )
  t.is((await call('POST')).status, 200)
  t.is((await call('GET')).status, 200, 'writing implies reading')
  const stolen = await fetch(RESOURCE, {
    headers: { authorization: `Bearer ${bound.access_token}` },
  })
  t.is(stolen.status, 401)
  t.regex(stolen.headers.get('www-authenticate')!, /^DPoP error="invalid_token"/)
})
