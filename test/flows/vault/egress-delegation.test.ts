/** Calls with a delegation, and the commands of the guide. */
import test from 'ava'
import { fixtureOf, delegate, ownToken, present } from '../../support/agents/delegation.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import {
  CREDENTIALS,
  egressHouse,
  SECRET,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'

const resources = await egressHouse()
const { api, upstream, running } = resources
test.after.always(() => resources.end())

test.serial('a delegated token calls until the person revokes the delegation', async (t) => {
  const workspace = await api.workspace()
  const { token: operator, key, agentId, tenantId } = workspace
  const person = await present(api, fixtureOf(workspace))
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const delegated = await delegate(api, String(body['access_token']), person)
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
  })
  const credentialId = String(created.body['id'])
  const call = () =>
    api.post('/v1/proxy', delegated.token, {
      credential_id: credentialId,
      url: `${upstream.origin}/headers`,
    })
  t.is((await call()).status, 404, 'there is no grant yet')
  const granted = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'delegation',
    grantee_id: delegated.delegationId,
  })
  t.is(granted.status, 201, JSON.stringify(granted.body))
  const answer = await call()
  t.is(answer.status, 200, JSON.stringify(answer.body))
  t.is(upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}`)
  const { rows } = await api.list(CREDENTIALS, delegated.token)
  t.deepEqual(
    rows.map(({ id }) => id),
    [credentialId],
  )
  const own = await ownToken(api, workspace, person)
  const ended = await api.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own)
  t.is(ended.status, 200, JSON.stringify(ended.body))
  t.is((await call()).status, 401)
})

testCommands('the commands of docs/guides/vault/egress-proxy.md run unchanged', async (t) => {
  const setting = await settingOf(resources)
  const page = docsPage(t, 'guides/vault/egress-proxy')
  const env = {
    BASE: running.baseUrl,
    AGENT_TOKEN: setting.direct,
    DELEGATED_TOKEN: setting.delegated,
    CREDENTIAL: setting.credentialId,
    API: upstream.origin,
  }
  t.is(await page.run('sh', 0, env), '{"stream":true,"messages":[]}')
  const sent = upstream.requests.at(-1)!
  t.like(sent.headers, { accept: 'text/event-stream', 'content-type': 'application/json' })
  t.is(sent.headers.authorization, `Bearer ${SECRET}`)
  t.true((await page.run('sh', 1, env)).includes('[redacted]'))
  t.is(page.blocks('sh').length, 2)
})
