/** Settings of an environment. Two services on one database, as two processes. */
import test from 'ava'
import { createAgentKey } from '../../../../runtime/clients/client/agent.js'
import type { Api, Json } from '../../../support/api.js'
import { sharedTwo } from '../../../support/service/two-services.js'

const { first: api, second } = await sharedTwo()

const PATH = '/api/v1/tenant/settings'
const SANDBOX = {
  admit_agents: true,
  direct_agent_registration: false,
  credential_issuer_enabled: false,
  checkout_redirect_hosts: [],
  x402_pay_to: {},
  logout_revokes_offline: false,
  id_jag: { include_act: false },
  client_id_metadata: {
    enabled: true,
    allow: ['*'],
    deny: [],
    require_auth: false,
    max_new_clients_per_hour: 100,
  },
  branding: {},
  session: {},
  social: {},
  sign_up: {},
  anonymous: {},
}
const patch = (token: string, json: unknown) => api.patch(PATH, token, json)

/** Checks both services. The second one gets a second to see the change. */
async function everywhere(status: number, ask: (at: Api) => Promise<{ status: number }>) {
  const here = await ask(api)
  const endMs = Date.now() + 1000
  let there = await ask(second)
  while (there.status !== status && Date.now() < endMs) there = await ask(second)
  return [here.status, there.status]
}

test('settings are read and updated one by one; unknown members are ignored', async (t) => {
  const { token } = await api.workspace()
  t.deepEqual((await api.get(PATH, token)).body, SANDBOX)
  const changed = await patch(token, { credential_issuer_enabled: true, unknown: 1 }).gives(200)
  t.deepEqual(changed.body, { ...SANDBOX, credential_issuer_enabled: true })
  t.deepEqual((await patch(token, {})).body, changed.body)
  t.deepEqual((await second.get(PATH, token)).body, changed.body)
  t.is((await patch(token, { admit_agents: 'no' })).status, 400)
  t.is((await patch(token, [])).status, 400)
})

test('links of the branding are at the end of each page', async (t) => {
  const { token, body } = await api.workspace()
  const links = [
    { label: 'Terms <b>', url: 'https://harbour.example/terms' },
    { label: 'Privacy', url: 'https://harbour.example/privacy?a=1&b="2"' },
  ]
  const changed = await patch(token, { branding: { links } }).gives(200)
  t.deepEqual((changed.body['branding'] as Json)['links'], links)
  const path = `/auth/login?tenant_slug=${String(body['tenant_slug'])}`
  const html = await (await fetch(api.at.baseUrl + path)).text()
  t.true(html.includes('<a href="https://harbour.example/terms" rel="noopener noreferrer">'))
  t.true(html.includes('Terms &lt;b&gt;'), 'labels are text')
  for (const link of [
    { label: 'x', url: 'http://harbour.example' },
    { label: 'x', url: 'javascript:alert(1)' },
    { label: 'x', url: 'https:harbour.example' },
    { label: 'x', url: 'https://harbour.example@evil.example/' },
    { label: '', url: 'https://harbour.example' },
    { label: 'x'.repeat(41), url: 'https://harbour.example' },
  ])
    t.is((await patch(token, { branding: { links: [link] } })).status, 400, JSON.stringify(link))
  const six = Array.from({ length: 6 }, () => links[0])
  t.is((await patch(token, { branding: { links: six } })).status, 400)
})

test('a setting applies in every process immediately', async (t) => {
  const { token, tenantId, body } = await api.workspace()
  const issuer = api.at.baseUrl
  const direct = (at: Api) => {
    const key = createAgentKey()
    const json = { name: 'D', tenant_id: tenantId, ...key.registration({ issuer, tenantId }) }
    return at.post('/api/v1/agents/auth/register', undefined, json)
  }
  const issuerOf = (at: Api) =>
    at.get(`/credential-issuers/${String(body['tenant_slug'])}/.well-known/jwks.json`)
  const start = (at: Api) => {
    const key = createAgentKey()
    const json = { name: 'P', tenant_id: tenantId, ...key.registration({ issuer, tenantId }) }
    return at.post('/api/v1/agents/auth/register/pow', undefined, json)
  }
  t.deepEqual(await everywhere(403, direct), [403, 403])
  t.deepEqual(await everywhere(404, issuerOf), [404, 404])
  t.deepEqual(await everywhere(200, start), [200, 200])
  await patch(token, {
    admit_agents: false,
    direct_agent_registration: true,
    credential_issuer_enabled: true,
  })
  t.deepEqual(await everywhere(201, direct), [201, 201])
  t.deepEqual(await everywhere(200, issuerOf), [200, 200])
  t.deepEqual(await everywhere(403, start), [403, 403])
})

test('the control plane has no tenant settings for operators', async (t) => {
  const { operator, key, agentId, tenantId } = await api.workspace()
  t.is((await api.get(PATH, operator)).status, 403)
  t.is((await patch(operator, { admit_agents: false })).status, 403)
  const narrow = await api.login(key, { agent_id: agentId, tenant_id: tenantId }, 'users:manage')
  const body: Json = narrow.body
  t.is((await patch(String(body['access_token']), {})).body['error'], 'insufficient_scope')
  t.is((await api.get(PATH)).status, 401)
  const other = await api.workspace()
  t.deepEqual((await api.get(PATH, other.token)).body, SANDBOX)
})

test('branding and session lifetimes are settings', async (t) => {
  const { token, body } = await api.workspace()
  const branding = { name: 'Harbour', color: '#C0FFEE', logo: 'data:image/png;base64,iVBORw0KGgo=' }
  const session = { idle_secs: 120, absolute_secs: 600 }
  const changed = await patch(token, { branding, session }).gives(200)
  t.deepEqual(changed.body, { ...SANDBOX, branding, session })
  const page = await fetch(
    `${api.at.baseUrl}/auth/login?tenant_slug=${String(body['tenant_slug'])}`,
  )
  const html = await page.text()
  t.true(html.includes('Harbour'))
  t.true(html.includes('/auth/brand/c0ffee'))
  const german = await patch(token, { branding: { locale: 'de' } })
  t.deepEqual(german.body, { ...SANDBOX, branding: { locale: 'de' }, session })
  for (const [accepted, lang] of [
    ['sv', 'de'],
    ['', 'de'],
    ['sv, en;q=0.5', 'en'],
  ]) {
    const shown = await fetch(
      `${api.at.baseUrl}/auth/login?tenant_slug=${String(body['tenant_slug'])}`,
      { headers: { 'accept-language': accepted! } },
    )
    t.true(
      (await shown.text()).includes(`<html lang="${lang}" dir="ltr">`),
      `${accepted} gives ${lang}`,
    )
  }
  t.deepEqual((await patch(token, { branding: {} })).body, { ...SANDBOX, session })
  for (const wrong of [
    { branding: { locale: 'sv' } },
    { branding: { color: 'red' } },
    { branding: { name: 'Harbour \u202egro.live' } },
    { branding: { name: 'Harbour\nWorks' } },
    { branding: { logo: 'https://evil.example/pixel.png' } },
    { branding: { logo: 'data:image/svg+xml;base64,AAAA' } },
    { session: { idle_secs: 601, absolute_secs: 600 } },
    { session: { idle_secs: 1 } },
  ]) {
    t.is((await patch(token, wrong)).status, 400, JSON.stringify(wrong))
  }
})

test('x402 payees are settings; an invalid address is refused', async (t) => {
  const { token } = await api.workspace()
  const good = {
    'eip155:8453': '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    'eip155:84532': `0x${'ab'.repeat(20)}`,
  }
  const changed = await patch(token, { x402_pay_to: good }).gives(200)
  t.deepEqual(changed.body['x402_pay_to'], good)
  t.deepEqual((await second.get(PATH, token)).body['x402_pay_to'], good)
  for (const bad of [
    { 'eip155:8453': '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed' },
    { 'eip155:8453': `0x${'0'.repeat(40)}` },
    { 'eip155:8453': '0x1234' },
    { 'eip155:8453': 7 },
    { base: good['eip155:8453'] },
    { 'eip155:08453': good['eip155:8453'] },
    Object.fromEntries(
      Array.from({ length: 33 }, (_, at) => [`eip155:${at + 1}`, `0x${'ab'.repeat(20)}`]),
    ),
  ]) {
    t.is((await patch(token, { x402_pay_to: bad })).status, 400, JSON.stringify(bad))
  }
  t.deepEqual((await api.get(PATH, token)).body['x402_pay_to'], good)
  t.deepEqual(
    (await patch(token, { x402_pay_to: {} })).body['x402_pay_to'],
    {},
    'replaced as a whole',
  )
})
