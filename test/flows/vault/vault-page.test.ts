/** Runs the commands of docs/guides/vault/vault.md. */
import test from 'ava'
import type { Json } from '../../support/api.js'
import { docsPage } from '../../support/pages/docs-page.js'
import {
  CREDENTIALS,
  egressHouse,
  SECRET,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'

test('the commands of docs/guides/vault/vault.md create, grant and export credentials', async (t) => {
  const resources = await egressHouse()
  const upstream = await tokenUpstream()
  const second = await tokenUpstream()
  t.teardown(async () => {
    await upstream.close()
    await second.close()
    await resources.end()
  })
  const setting = await settingOf(resources, { non_exportable: false })
  const { api } = resources
  const { operator, agentId } = setting
  const oauth = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'oauth2',
    label: 'Account',
    allowed_hosts: [],
    non_exportable: false,
    secret: JSON.stringify({ token_url: upstream.url, client_id: 'c', refresh_token: 'rt-0' }),
  })
  const oauthId = String(oauth.body['id'])
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  await api.post(`${CREDENTIALS}/${oauthId}/grants`, operator, grant)
  const page = docsPage(t, 'guides/vault/vault')
  const env = {
    BASE: resources.running.baseUrl,
    TOKEN: operator,
    AGENT: agentId,
    AGENT_TOKEN: setting.direct,
    DELEGATED_TOKEN: setting.delegated,
    CREDENTIAL: setting.credentialId,
    OAUTH_CREDENTIAL: oauthId,
    TOKEN_URL: second.url,
    REFRESH_TOKEN: 'rt-0',
    API_HOST: UPSTREAM_NAME,
  }
  const blocks = page.blocks('sh')
  const said: Json[] = []
  for (const index of blocks.keys()) said.push(JSON.parse(await page.run('sh', index, env)) as Json)
  t.like(said[0], { provider: 'stripe', status: 'active' })
  t.like(said[1], { grantee_id: agentId, capabilities: ['list', 'use'] })
  t.like(said[2], { auth_scheme: 'bearer', non_exportable: true })
  const carrier = String(said[2]!['id'])
  await api.post(`${CREDENTIALS}/${carrier}/grants`, operator, grant)
  const called = await api.post('/v1/proxy', setting.delegated, {
    credential_id: carrier,
    url: `${resources.upstream.origin}/headers`,
  })
  t.is(called.status, 200, JSON.stringify(called.body))
  t.is(resources.upstream.requests.at(-1)!.headers.authorization, 'Bearer at-1')
  t.like(said[3], { access_token: SECRET, token_type: 'N_A' })
  t.like(said[4], { access_token: 'at-1', token_type: 'Bearer' })
  t.is(said.length, 5)
})
