/** The documents of agents, and an agent that signs in at another service as the client that they describe. */
import test from 'ava'
import { SignJWT } from 'jose'
import { apiOf } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { bootstrapped } from '../../support/identity/person.js'
import { tenantAgent } from '../../support/identity/tenant-agent.js'
import { codeOf, DEFAULT_SLUG, makeDefault, post } from '../../support/oauth/documented-client.js'
import { CLIENT_CALLBACK } from '../../support/oauth/document-server.js'
import { sharedService, testService } from '../../support/service.js'
import { reachable } from '../../support/vault/upstream.js'

type Json = Record<string, unknown>
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const slug = { SVC_TENANT__DEFAULT_TENANT_SLUG: DEFAULT_SLUG }

const home = await sharedService('plain', { transport: 'tls_h2_only' })
const way = await reachable([home.ca!])
const abroad = await testService({
  transport: 'plain_http',
  environment: { ...way.environment, ...slug },
})
const person = await bootstrapped(abroad)
await makeDefault(abroad, person)
const agent = await tenantAgent(home.baseUrl)

async function document(name: string, agentId = agent.agentId) {
  const answer = await fetch(`${home.baseUrl}/agents/${agentId}/${name}.json`, {
    headers: { origin: 'https://any.example' },
  })
  const body = (await answer.json()) as Json
  return { status: answer.status, headers: answer.headers, body }
}

test.serial('an agent publishes its metadata, its keys and its card', async (t) => {
  const empty = await document('client')
  t.is(empty.status, 200)
  t.is(empty.headers.get('access-control-allow-origin'), '*')
  t.regex(String(empty.headers.get('cache-control')), /max-age=60/)
  t.deepEqual(empty.body['redirect_uris'], [])
  const change = {
    redirect_uris: [CLIENT_CALLBACK],
    client_uri: 'https://agent.example/about',
    skills: [{ id: 'buy', name: 'Buy', description: 'Buys things', tags: ['shop'] }],
  }
  const changed = await agent.ask('PATCH', '/api/v1/agents/me/profile', change)
  t.is(changed.status, 200, changed.text)
  const clientId = `${home.issuer}/agents/${agent.agentId}/client.json`
  t.deepEqual(changed.body, { agent_id: agent.agentId, client_id: clientId, ...change })
  const { body } = await document('client')
  t.is(body['client_id'], clientId)
  t.is(body['token_endpoint_auth_method'], 'private_key_jwt')
  t.is(body['jwks_uri'], `${home.issuer}/agents/${agent.agentId}/jwks.json`)
  t.deepEqual(body['redirect_uris'], change.redirect_uris)
  const { body: keys } = await document('jwks')
  t.is((keys['keys'] as Json[]).length, 1)
  t.false(JSON.stringify(keys).includes('"d"'))
  const { body: card } = await document('agent-card')
  t.deepEqual(card['skills'], change.skills)
  for (const member of ['name', 'url', 'version', 'protocolVersion', 'capabilities'])
    t.truthy(card[member], member)
})

test.serial('a profile is checked', async (t) => {
  for (const change of [
    { redirect_uris: ['http://client.example/callback'] },
    { redirect_uris: ['https://client.example/#part'] },
    { client_uri: 'http://agent.example' },
    {
      redirect_uris: Array.from(
        { length: 50 },
        (_, n) => `https://x.example/${'y'.repeat(200)}${n}`,
      ),
    },
  ]) {
    const { status } = await agent.ask('PATCH', '/api/v1/agents/me/profile', change)
    t.is(status, 400, JSON.stringify(change).slice(0, 80))
  }
  const anonymous = await fetch(`${home.baseUrl}/api/v1/agents/me/profile`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  t.is(anonymous.status, 401)
  t.is((await document('client', crypto.randomUUID())).status, 404)
  t.is((await document('client', 'unknown')).status, 404)
})

test.serial('an agent of one service signs in at another with its own key', async (t) => {
  const clientId = `${home.issuer}/agents/${agent.agentId}/client.json`
  const { form, page } = await codeOf(abroad, person, clientId)
  t.true(page.html.includes(`data-client-host="${new URL(clientId).host}"`))
  const unsigned = await post(abroad.baseUrl, '/oauth/token', form)
  t.deepEqual([unsigned.status, unsigned.body['error']], [401, 'invalid_client'])
  const { algorithm, privateKey } = agent.key
  const assertion = await new SignJWT({})
    .setProtectedHeader({ alg: algorithm === 'ed25519' ? 'EdDSA' : 'ES256' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(abroad.issuer)
    .setJti(crypto.randomUUID())
    .setIssuedAt()
    .setExpirationTime('2m')
    .sign(privateKey)
  const issued = await post(abroad.baseUrl, '/oauth/token', {
    ...form,
    client_assertion_type: ASSERTION,
    client_assertion: assertion,
  })
  t.is(issued.status, 200, JSON.stringify(issued.body))
})

test.serial('the document of an own agent is read without a fetch', async (t) => {
  const own = await tenantAgent(abroad.baseUrl)
  await own.ask('PATCH', '/api/v1/agents/me/profile', { redirect_uris: [CLIENT_CALLBACK] })
  const clientId = `${abroad.issuer}/agents/${own.agentId}/client.json`
  const { page } = await codeOf(abroad, person, clientId)
  t.true(page.html.includes('data-client-host'))
  const rows = await sql(abroad)`select 1 from remote_documents where url = ${clientId}`
  t.is(rows.length, 0)
})

test.serial('a suspension ends what people granted to the client of the agent', async (t) => {
  const api = apiOf(abroad)
  const owner = await api.workspace()
  for (const end of ['suspend', 'delete'] as const) {
    const { key, agentId } = await api.register(owner.tenantId)
    const login = await api.login(key, { agent_id: agentId, tenant_id: owner.tenantId })
    const json = { redirect_uris: [CLIENT_CALLBACK] }
    const token = String(login.body['access_token'])
    t.is((await api.patch('/api/v1/agents/me/profile', token, json)).status, 200)
    const clientId = `${abroad.issuer}/agents/${agentId}/client.json`
    const { form } = await codeOf(abroad, person, clientId)
    const { algorithm, privateKey } = key
    const signed = () =>
      new SignJWT({})
        .setProtectedHeader({ alg: algorithm === 'ed25519' ? 'EdDSA' : 'ES256' })
        .setIssuer(clientId)
        .setSubject(clientId)
        .setAudience(abroad.issuer)
        .setJti(crypto.randomUUID())
        .setIssuedAt()
        .setExpirationTime('2m')
        .sign(privateKey)
    const issued = await post(abroad.baseUrl, '/oauth/token', {
      ...form,
      client_assertion_type: ASSERTION,
      client_assertion: await signed(),
    })
    t.is(issued.status, 200, JSON.stringify(issued.body))
    const granted = String(issued.body['access_token'])
    t.is((await api.get('/userinfo', granted)).status, 200)
    const path = `/api/v1/agents/${agentId}`
    const ended =
      end === 'suspend'
        ? await api.post(`${path}/suspend`, owner.token)
        : await api.delete(path, owner.token)
    t.true(ended.status < 300, JSON.stringify(ended.body))
    t.is((await api.get('/userinfo', granted)).status, 401, end)
    const again = await post(abroad.baseUrl, '/oauth/token', {
      grant_type: 'refresh_token',
      refresh_token: String(issued.body['refresh_token']),
      client_id: clientId,
      client_assertion_type: ASSERTION,
      client_assertion: await signed(),
    })
    t.true(again.status >= 400, end)
  }
})

test.serial('a suspended agent has no documents', async (t) => {
  await sql(home)`update agents set status = 'suspended' where id = ${agent.agentId}`
  for (const name of ['client', 'jwks', 'agent-card']) t.is((await document(name)).status, 404)
})
