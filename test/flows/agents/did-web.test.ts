/** Agents anchored by did:web, over HTTP, against documents served over TLS on loopback. */
import { createServer } from 'node:https'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { type AgentKey, createAgentKey } from '../../../runtime/clients/client/agent.js'
import { apiOf, type Json } from '../../support/api.js'
import { LOOPBACK } from '../../support/fleet/loopback.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { until } from '../../support/service/watch.js'
import { sql } from '../../support/storage/sql.js'
import { notThrough, SERVING_PROCESSES } from '../../support/fleet/through.js'
import { sharedApi } from '../../support/service.js'

const REGISTER = '/api/v1/agents/auth/register'
const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'

/** Documents below this path do not come. */
const SILENT = '/silent/'

/** The response of a path: a document, or other text. */
const served = new Map<string, unknown>()
const asked: string[] = []
let names = 0

const options = { key: readFileSync(LOOPBACK.keyPath), cert: LOOPBACK.pem }
const server = createServer(options, ({ url = '' }, response) => {
  asked.push(url)
  if (url.startsWith(SILENT)) return
  const document = served.get(url)
  if (document === undefined) return response.writeHead(404).end()
  return response.end(typeof document === 'string' ? document : JSON.stringify(document))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const port = (server.address() as AddressInfo).port
const { api, running } = await sharedApi('hosts')
const { body } = await api.get(BOOTSTRAP)
const controlPlane = String(body['control_plane_tenant_id'])
test.after.always(async () => {
  server?.closeAllConnections()
  server?.close()
})

/** An unused DID and the path of its document. */
function freshDid() {
  names += 1
  return { did: `did:web:localhost%3A${port}:agents:a${names}`, path: `/agents/a${names}/did.json` }
}

function documentOf(did: string, keys: readonly AgentKey[]): Json {
  return {
    '@context': ['https://www.w3.org/ns/did/v1'],
    id: did,
    verificationMethod: keys.map((key, at) => ({
      id: `${did}#${at}`,
      type: 'JsonWebKey',
      controller: did,
      publicKeyJwk: key.publicJwk,
    })),
    authentication: keys.map((_, at) => `${did}#${at}`),
  }
}

const start = (
  path: string,
  key: AgentKey,
  didWeb: string,
  more: Json = {},
  { from = '', via = api } = {},
) =>
  via.call('POST', path, {
    json: {
      name: 'Anchored',
      ...key.registration({ issuer: running.baseUrl, tenantId: controlPlane, didWeb }),
      ...more,
    },
    headers: from === '' ? {} : { 'x-forwarded-for': from },
  })

const solved = ({ body }: { body: Json }) => ({
  challenge_id: body['challenge_id'],
  nonce: nonceFor({
    challengeToken: String(body['challenge_token']),
    difficultyBits: Number(body['difficulty_bits']),
  }),
})

for (const algorithm of ['ed25519', 'es256'] as const) {
  test(`an agent with an ${algorithm} key registers by its DID and logs in by it`, async (t) => {
    const key = createAgentKey(algorithm)
    const { did, path } = freshDid()
    served.set(path, documentOf(did, [createAgentKey(), key]))
    const started = await start(`${REGISTER}/pow`, key, did)
    t.is(started.status, 200, JSON.stringify(started.body))
    const done = await api.call('POST', `${REGISTER}/pow/complete`, { json: solved(started) })
    t.is(done.status, 200, JSON.stringify(done.body))
    const agent = done.body['agent'] as Json
    t.is(agent['did'], did)
    t.like((agent['anchors'] as Json[])[0], { type: 'did_web', value: did, status: 'active' })
    t.is((agent['anchors'] as Json[]).length, 1)
    t.is((done.body['key'] as Json)['id'], key.fingerprint)

    const challenge = await api.call('POST', '/api/v1/agents/auth/challenge', { json: { did } })
    t.is(challenge.body['agent_id'], agent['id'])
    const verified = await api.call('POST', '/api/v1/agents/auth/verify', {
      json: {
        challenge_id: challenge.body['challenge_id'],
        signature: key.signChallenge(String(challenge.body['payload'])),
      },
    })
    t.is(verified.status, 200)
    const me = await api.get('/api/v1/agents/me', String(verified.body['access_token']))
    t.is(me.body['did'], did)
  })
}

test('an agent with a did:web creates a workspace', async (t) => {
  const key = createAgentKey()
  const { did, path } = freshDid()
  const method = { id: '#key', type: 'Multikey', publicKeyMultibase: key.did.slice(8) }
  served.set(path, { id: did, authentication: [method] })
  const started = await start(`${BOOTSTRAP}/pow`, key, did)
  t.is(started.status, 200, JSON.stringify(started.body))
  const json = { ...solved(started), organization_name: 'Anchored' }
  const done = await api.call('POST', `${BOOTSTRAP}/pow/complete`, { json }).gives(201)
  t.is((done.body['agent'] as Json)['did'], did)
  const again = await start(`${REGISTER}/pow`, key, did)
  t.is(again.status, 409)
})

test('direct registration supports did:web', async (t) => {
  const { tenantId } = await api.workspace()
  await sql(running)`update tenants set direct_agent_registration = true where id = ${tenantId}`
  const { did, path } = freshDid()
  const keys = [createAgentKey(), createAgentKey()] as const
  served.set(path, documentOf(did, keys))
  const send = (key: AgentKey) =>
    api.call('POST', REGISTER, {
      json: {
        name: 'Direct',
        tenant_id: tenantId,
        ...key.registration({ issuer: running.baseUrl, tenantId, didWeb: did }),
      },
    })
  const made = await send(keys[0]).gives(201)
  t.is((made.body['agent'] as Json)['did'], did)
  const second = await send(keys[1]).gives(409)
  t.is(second.body['detail'], 'The anchor is already registered in this tenant.')
})

test('of many keys of one document one registers the DID', async (t) => {
  const { did, path } = freshDid()
  const keys = Array.from({ length: 8 }, () => createAgentKey())
  served.set(path, documentOf(did, keys))
  const challenges = await Promise.all(keys.map((key) => start(`${REGISTER}/pow`, key, did)))
  t.deepEqual([...new Set(challenges.map(({ status }) => status))], [200])
  const times = asked.filter((url) => url === path).length
  t.true(times >= 1 && times <= SERVING_PROCESSES, `asked for once by each process: ${times}`)
  const answers = await Promise.all(
    challenges.map((started) =>
      api.call('POST', `${REGISTER}/pow/complete`, { json: solved(started) }),
    ),
  )
  const statuses = answers.map(({ status }) => status).toSorted()
  t.deepEqual(statuses, [200, ...Array.from({ length: 7 }, () => 409)])
  const rows = await sql(running)`select from agent_anchors where value = ${did}`
  t.is(rows.length, 1)
  const known = await sql<{ keys: number }>(running)`
    select count(*)::int as keys from agent_keys
    where fingerprint = any(${keys.map(({ fingerprint }) => fingerprint)})`
  t.is(known[0]!.keys, 1, 'the others created nothing')
})

for (const [title, documentFor, detail] of [
  ['lists another key', (did: string) => documentOf(did, [createAgentKey()]), /authentication/],
  [
    'lists the key for assertions alone',
    (did: string, key: AgentKey) => {
      const { authentication, ...document } = documentOf(did, [key])
      return { ...document, assertionMethod: authentication }
    },
    /authentication/,
  ],
  ['is of another DID', (_: string, key: AgentKey) => documentOf('did:web:x', [key]), /another id/],
  ['is a page', () => '<!doctype html>', /not JSON/],
  ['is a list', () => [], /not a JSON object/],
  ['is too large', () => ' '.repeat(70_000), /larger than/],
] as const) {
  test(`a document that ${title} is a bad request`, async (t) => {
    const key = createAgentKey()
    const { did, path } = freshDid()
    served.set(path, documentFor(did, key))
    for (const route of [`${REGISTER}/pow`, `${BOOTSTRAP}/pow`]) {
      const answer = await start(route, key, did)
      t.is(answer.status, 400, JSON.stringify(answer.body))
      t.regex(String(answer.body['detail']), detail)
      t.like((answer.body['errors'] as Json[])[0], { pointer: '#/anchor_value' })
    }
  })
}

test('an unavailable document is 503 with Retry-After', async (t) => {
  const key = createAgentKey()
  const closed = createServer()
  closed.listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port: closedPort } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  for (const [did, fault] of [
    [freshDid().did, 'unexpected_status'],
    [`did:web:localhost%3A${closedPort}`, 'connection_refused'],
    ['did:web:unknown.invalid', 'dns'],
  ] as const) {
    const answer = await start(`${REGISTER}/pow`, key, did)
    t.is(answer.status, 503, JSON.stringify(answer.body))
    t.is(answer.body['error'], 'service_unavailable')
    t.regex(String(answer.body['detail']), new RegExp(fault))
    t.is(answer.headers['retry-after'], '15')
  }
})

test('an invalid did:web is 400 without any fetch', async (t) => {
  const key = createAgentKey()
  const before = asked.length
  for (const value of [
    key.did,
    'did:web:',
    `did:web:LOCALHOST%3A${port}`,
    `did:web:127.0.0.1%3A${port}`,
    `did:web:localhost:${port}:..`,
    `did:web:localhost%3A${port}#key`,
  ]) {
    const answer = await start(`${REGISTER}/pow`, key, value)
    t.is(answer.status, 400, value)
    t.like((answer.body['errors'] as Json[])[0], { pointer: '#/anchor_value' })
  }
  const missing = await start(`${REGISTER}/pow`, key, 'did:web:x', { anchor_value: undefined })
  t.is(missing.status, 400)
  t.regex(String(missing.body['detail']), /required/)
  t.false(asked.slice(before).some((url) => url.includes('..')))
})

test('only a valid ownership proof for did_web causes a fetch', async (t) => {
  const key = createAgentKey()
  const { did, path } = freshDid()
  served.set(path, documentOf(did, [key]))
  const target = { issuer: running.baseUrl, tenantId: controlPlane }
  for (const sent of [
    { ...key.registration(target), anchor_type: 'did_web', anchor_value: did },
    { ...key.registration({ ...target, didWeb: did }), key_ownership_proof: 'A'.repeat(86) },
    { ...createAgentKey().registration({ ...target, didWeb: did }), public_key: key.publicKey },
  ]) {
    const answer = await api.call('POST', `${REGISTER}/pow`, { json: { name: 'Other', ...sent } })
    t.is(answer.status, 400)
    t.truthy(answer.body['key_ownership_proof'])
  }
  t.false(asked.includes(path))
})

/** The places of one network. */
const PLACES = 16

test('a network whose documents do not come leaves the fetches of others', async (t) => {
  notThrough('each process counts for itself')
  const over = new AbortController()
  let refused = 0
  // Fetches end after some seconds.
  // A client has 16 connections.
  const clients = [apiOf(running), apiOf(running)]
  const strangers = Array.from({ length: 2 * PLACES }, async (_, worker) => {
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const didWeb = `did:web:localhost%3A${port}:silent:${worker}:${turn}`
      const from = `2001:db8:7:1::${worker}`
      const by = { from, via: clients[worker % 2] }
      const { body } = await start(`${BOOTSTRAP}/pow`, createAgentKey(), didWeb, {}, by)
      if (body['error'] === 'share_exhausted') refused += 1
    }
  })
  await until('a refusal', () => refused > 0)
  const key = createAgentKey()
  const { did, path } = freshDid()
  served.set(path, documentOf(did, [key]))
  const honest = await start(`${BOOTSTRAP}/pow`, key, did, {}, { from: '2001:db8:7:2::1' })
  t.is(honest.status, 200, JSON.stringify(honest.body))
  over.abort()
  await Promise.all(strangers)
  for (const client of clients) await client.close()
})
