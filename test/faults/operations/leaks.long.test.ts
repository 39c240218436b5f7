/**
 * A search for leaks: canary secrets of every kind are planted, used in every way, and searched for
 * in all output of the service: responses, logs, metrics, every row of every table, the audit log,
 * and the heap objects of the HTTP thread.
 */
import { createPrivateKey, randomBytes } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import { Agent, setGlobalDispatcher } from 'undici'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'
import { apiOf, type Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { canaries, type Found } from '../../support/service/canaries.js'
import { fixtureOf, delegate, present } from '../../support/agents/delegation.js'
import { CREDENTIALS, reachableUpstream, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { callThatGoesOn, proxied, type RunningCall } from '../../support/vault/leaky-calls.js'
import { signIn } from '../../support/identity/person.js'
import { separateService, type SeparateService } from '../../support/service/separate-service.js'
import type { TestService } from '../../support/service.js'
import { METRICS_TOKEN } from '../../support/service/watch.js'

/**
 * Every request opens a connection: a snapshot of a heap stops a thread for seconds, so that an
 * idle connection is closed while the next request is on its way.
 */
const oneRequestEach = new Agent({ pipelining: 0 })
setGlobalDispatcher(oneRequestEach)

const flock = canaries()
const found: Found[] = []
/** Characters that JSON, base64 and percent-encoding spell differently. */
const secretOf = (name: string) =>
  flock.plant(name, `${name}/+"${randomBytes(12).toString('hex')}~é`)
/** For fields that accept letters only. */
const wordOf = (name: string) => flock.plant(name, `${name}-${randomBytes(16).toString('hex')}`)

test('the search finds a canary in every spelling, without false positives', (t) => {
  const own = canaries()
  const value = own.plant('one', 'a canary/+"of many~spellings')
  const bytes = Buffer.from(value)
  for (const text of [
    value,
    bytes.toString('hex').toUpperCase(),
    JSON.stringify({ value }),
    encodeURIComponent(value),
    ...[0, 1, 2].flatMap((before) => {
      const padded = Buffer.concat([Buffer.alloc(before, 'x'), bytes, Buffer.from('yz')])
      return [padded.toString('base64'), padded.toString('base64url')]
    }),
  ]) {
    t.not(own.search('here', `before ${text} after`).length, 0, text)
  }
  t.deepEqual(own.search('here', 'a canary'), [])
  t.deepEqual(own.search('here', value, ['one']), [])
})

test('no planted secret appears in any output', async (t) => {
  t.timeout(600_000)
  const { upstream, environment, end } = await reachableUpstream()
  const service = await separateService(environment)
  t.teardown(async () => {
    await service.end()
    await end()
  })
  const using = await traffic(service, upstream.origin)
  // One call is still running: its secret is on the egress thread only.
  const during = await service.threadHeaps()
  t.deepEqual(during.filter(holds('bearer')).map(nameOf), ['egress'])
  await using.end()
  await look(service)
  const heap = await service.heap()
  t.true(heap.includes('/v1/proxy/body'), 'it is the heap of the HTTP thread')
  found.push(...flock.search('heap', heap))
  for (const { thread, heap: its } of await service.threadHeaps()) {
    found.push(...flock.search(`heap of ${thread}`, its))
  }
  t.true(flock.names.length > 20)
  t.true(service.output().length > 1_000, 'there are logs')
  t.deepEqual(found, [])
})

type ThreadHeap = { readonly thread: string; readonly heap: string }
const nameOf = ({ thread }: ThreadHeap) => thread
const holds =
  (canary: string) =>
  ({ thread, heap }: ThreadHeap) =>
    flock.search(thread, heap).some((each) => each.canary === canary)

/** What the steps share. */
type Site = Awaited<ReturnType<typeof openSite>>

/** A workspace, and requests whose answers are searched. */
async function openSite(service: SeparateService, upstream: string) {
  const at = { ...service, ca: undefined, issuer: service.baseUrl } as unknown as TestService
  const api = apiOf(at, oneRequestEach)
  /** Sends a request, and searches the response except for the values that it must contain. */
  const call = async (
    method: string,
    path: string,
    token?: string,
    json?: unknown,
    {
      allowed = [],
      headers = {},
    }: { allowed?: readonly string[]; headers?: Record<string, string> } = {},
  ) => {
    const answer = await api.call(method, path, { token, json, headers })
    const text = JSON.stringify([answer.headers, answer.body])
    found.push(...flock.search(`answer of ${method} ${path} ${answer.status}`, text, allowed))
    return answer
  }

  const workspace = await api.workspace('Canaries')
  const { token, tenantId, operator } = workspace
  flock.plant('client secret', String(workspace.body['client_secret']))
  flock.plant('workspace token', token.split('.')[2]!)
  const fixture = workspace.body['fixture_end_user'] as { email: string; password: string }
  flock.plant('password', fixture.password)
  return { service, upstream, at, api, call, workspace, token, tenantId, operator, fixture }
}

/** @returns a call that is still running. */
async function traffic(service: SeparateService, upstream: string): Promise<RunningCall> {
  const site = await openSite(service, upstream)
  const { api, call, token, operator } = site
  const agent = await agentLogin(site)
  await personLogin(site)
  const usable = await vaultOf(site, agent)
  await egressCalls(site, agent, usable)
  await sshCertificate(site, agent)
  await webhooks(site)
  for (const path of [
    CREDENTIALS,
    '/api/v1/webhooks',
    '/api/v1/audit-events?limit=100',
    '/api/v1/audit-events/export',
    '/api/v1/applications',
    '/api/v1/capabilities',
  ]) {
    await call('GET', path, token)
    await call('GET', path, operator)
  }
  const metrics = await api.get('/metrics', METRICS_TOKEN)
  found.push(...flock.search('metrics', JSON.stringify(metrics.body)))
  const [kept, ...others] = usable
  for (const id of others) await call('POST', `${CREDENTIALS}/${id}/revoke`, token, {})
  const running = await callThatGoesOn(service, { token: agent.direct, id: kept!, upstream })
  return {
    async end() {
      await running.end()
      await call('POST', `${CREDENTIALS}/${kept}/revoke`, token, {})
      await api.close()
    },
  }
}

/** An agent: its proof, signature, refresh token and all rotations. */
async function agentLogin({ service, api, call, workspace, tenantId }: Site) {
  const { key, agentId } = await api.register(tenantId)
  const proof = key.registration({ issuer: service.baseUrl, tenantId }).key_ownership_proof
  flock.plant('ownership proof', proof)
  const challenged = await api.post('/api/v1/agents/auth/challenge', undefined, {
    tenant_id: tenantId,
    agent_id: agentId,
  })
  const signature = flock.plant('signature', key.signChallenge(String(challenged.body['payload'])))
  const verify = (scope: string) =>
    call('POST', '/api/v1/agents/auth/verify', undefined, {
      challenge_id: challenged.body['challenge_id'],
      signature,
      scope,
    })
  await verify('no-such-scope')
  const logged = await api.login(key, { tenant_id: tenantId, agent_id: agentId }, 'vault:read')
  const direct = String(logged.body['access_token'])
  flock.plant('access token', direct.split('.')[2]!)
  let refresh = flock.plant('refresh token', String(logged.body['refresh_token']))
  for (let round = 0; round < 2; round += 1) {
    const form = { grant_type: 'refresh_token', refresh_token: refresh, client_id: agentId }
    const rotated = await api.form('/oauth/token', form)
    refresh = flock.plant(
      `refresh token ${round}`,
      String(rotated.body['refresh_token'] ?? refresh),
    )
    // A reused refresh token raises an alarm, and alarms are logged.
    if (round === 1) await api.form('/oauth/token', form)
  }
  const basic = (secret: string) => ({
    authorization: `Basic ${btoa(`${String(workspace.body['client_id'])}:${secret}`)}`,
  })
  const grant = { grant_type: 'client_credentials' }
  await api.form('/oauth/token', grant, basic(String(workspace.body['client_secret'])))
  await api.form('/oauth/token', grant, basic(wordOf('wrong client secret')))
  await api.get('/api/v1/agents/me', wordOf('nobodys-token'))
  return { key, agentId, direct }
}

type LoggedIn = Awaited<ReturnType<typeof agentLogin>>

/** People: the right password and a wrong one. */
async function personLogin({ at, workspace, fixture }: Site): Promise<void> {
  const human = { tenantSlug: String(workspace.body['tenant_slug']), email: fixture.email }
  const browser = openBrowser(at)
  await signIn(browser, { ...human, password: wordOf('wrong password') }).catch(() => undefined)
  await signIn(browser, { ...human, password: fixture.password })
}

/** Creates a credential that the agent may use. */
async function credential(
  { call, token }: Site,
  { agentId }: LoggedIn,
  name: string,
  more: Json,
): Promise<string | undefined> {
  const made = await call(
    'POST',
    CREDENTIALS,
    token,
    {
      provider: 'upstream',
      credential_type: 'api_key',
      label: name,
      allowed_hosts: [UPSTREAM_NAME],
      ...more,
    },
    { headers: { 'idempotency-key': `create-${name}` } },
  )
  if (made.status !== 201) return undefined
  const id = String(made.body['id'])
  await call('POST', `${CREDENTIALS}/${id}/grants`, token, {
    grantee_type: 'agent',
    grantee_id: agentId,
  })
  return id
}

/** The vault: every type and scheme, rotated, refused, revoked. */
async function vaultOf(site: Site, agent: LoggedIn): Promise<readonly string[]> {
  const { call, token } = site
  const create = (name: string, more: Json) => credential(site, agent, name, more)
  const usable: string[] = []
  const schemes = {
    bearer: wordOf('bearer'),
    basic: `user:${wordOf('basic')}`,
    'header:x-api-key': wordOf('header'),
    'query:key': secretOf('query'),
  }
  for (const [scheme, secret] of Object.entries(schemes)) {
    const id = await create(`scheme-${scheme.split(':')[0]}`, { auth_scheme: scheme, secret })
    if (id !== undefined) usable.push(id)
  }
  const exportable = wordOf('exportable')
  const open = await create('exportable', {
    auth_scheme: 'bearer',
    secret: exportable,
    non_exportable: false,
  })
  await call('GET', `${CREDENTIALS}/${open}/secret`, token, undefined, { allowed: ['exportable'] })
  await call('POST', `${CREDENTIALS}/${open}/rotate`, token, { secret: wordOf('rotated') })
  await create('refused', { auth_scheme: 'nonsense', secret: secretOf('refused') })
  await create('two lines', { auth_scheme: 'bearer', secret: `a\r\n${wordOf('lines')}` })
  await create('misspelt', { auth_scheme: 'bearer', secret: [wordOf('list')] })
  await create('oauth2', {
    credential_type: 'oauth2',
    secret: JSON.stringify({
      token_url: `https://${UPSTREAM_NAME}/token`,
      client_id: 'us',
      client_secret: wordOf('oauth2 secret'),
      refresh_token: wordOf('oauth2 refresh'),
    }),
  })

  demand(usable.length === 4 && open !== undefined, `only ${usable.length} credentials`)
  return usable
}

/** Egress: echoing, redirecting and failing upstreams, by both routes, buffered and streamed. */
async function egressCalls(
  { service, upstream, api, workspace, tenantId }: Site,
  { key, agentId, direct }: LoggedIn,
  usable: readonly string[],
): Promise<void> {
  const person = await present(api, fixtureOf(workspace))
  flock.plant('authenticator', person.secret)
  const plain = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const delegated = await delegate(api, String(plain.body['access_token']), person)
  flock.plant('delegated token', delegated.token.split('.')[2]!)
  flock.plant('delegated refresh token', delegated.refreshToken)
  const callers = { direct, delegated: delegated.token, upstream, body: wordOf('body') }
  for (const [nth, id] of usable.entries()) {
    found.push(...(await proxied(service, flock, { ...callers, id, heavy: nth === 0 })))
  }
}

/** SSH: a certificate authority and a signed certificate. */
async function sshCertificate(site: Site, agent: LoggedIn): Promise<void> {
  const { api, workspace } = site
  const { privateKey } = freshKeyPair('ed25519')
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  flock.plant('authority key', pem.split('\n')[1]!)
  flock.plant('authority seed', String(createPrivateKey(pem).export({ format: 'jwk' }).d))
  const authority = await credential(site, agent, 'authority', {
    credential_type: 'ssh_ca',
    secret: pem,
    allowed_hosts: undefined,
  })
  const signed = await api.post('/api/v1/agents/delegations/ssh-sign', workspace.token, {
    credential_id: authority,
    target_host: 'db1.example',
    principals: ['deploy'],
  })
  demand(signed.status === 200, JSON.stringify(signed.body))
  const block = String(signed.body['private_key'] ?? '').split('\n')
  flock.plant('signed key', block[3]!)
}

/** Webhooks: supplied and generated secrets, rotated. */
async function webhooks({ api, call, token }: Site): Promise<void> {
  const secret = `whsec_${Buffer.from(wordOf('webhook secret')).toString('base64')}`
  const hook = { url: 'https://receiver.example/svc', event_types: ['*'] }
  const given = await call('POST', '/api/v1/webhooks', token, { ...hook, secret })
  const made = await api.post('/api/v1/webhooks', token, hook)
  flock.plant('made webhook secret', String(made.body['secret']))
  for (const { body } of [given, made]) {
    await call('GET', `/api/v1/webhooks/${String(body['id'])}`, token)
    await call('POST', `/api/v1/webhooks/${String(body['id'])}/test`, token, {})
  }
}

/** Asserts that a step succeeded, because a failed step would leak nothing. */
function demand(isTrue: boolean, words: string): void {
  if (!isTrue) throw new Error(words)
}

/** The logs so far and every row. */
async function look({ output, db }: SeparateService): Promise<void> {
  found.push(...flock.search('logs', output()))
  const client = new Client({ connectionString: db.superuserUrl })
  await client.connect()
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema')`,
    )
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(
        `select each::text as row from ${name} each`,
      )
      for (const { row } of rows) {
        // Searched as printed, and with the escapes of its quotes resolved.
        const plain = row.replaceAll('""', '"').replaceAll('\\\\', '\\')
        found.push(...flock.search(`table ${name}`, `${row}\n${plain}`))
      }
    }
  } finally {
    await client.end()
  }
}
