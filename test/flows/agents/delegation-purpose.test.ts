/** What an agent says it will do: shown to the person, named in tokens, and recorded with all that is done. */
import { createHash, randomUUID } from 'node:crypto'
import test from 'ava'
import { Command } from 'commander'
import { auditCommand } from '../../../runtime/cli/audit.js'
import { openDatabaseTools } from '../../../runtime/cli/key-tools.js'
import { apiOf, claimsOf, type Json } from '../../support/api.js'
import { ask, DEVICE, delegate, fixtureOf, present } from '../../support/agents/delegation.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const running = await sharedService('plain')
const api = apiOf(running)
const workspace = await api.workspace()
await sql(
  running,
)`update tenant_users set roles = '{owner}' where tenant_id = ${workspace.tenantId}`
const person = await present(api, fixtureOf(workspace))

const PURPOSE = 'Rotate the “deploy” key <b>today</b>'
const SCOPE = 'openid vault:list vault:manage'
const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('base64url')

/** The RFC 8785 form of what a delegation permits, from its record. */
const policyOf = ({ audience, expires_at, scope }: Json) =>
  JSON.stringify({ audience, expires_at, limits: {}, scopes: String(scope).split(' ') })

const eventsOf = async (requestId: string) =>
  (await api.list(`/api/v1/audit-events?request_id=${requestId}`, workspace.token)).rows

test('the page and the record show the purpose, and tokens have its hash', async (t) => {
  const { token, agentId } = workspace
  const asked = await ask(api, token, { scope: SCOPE, purpose: ` ${PURPOSE}\n` })
  const page = await person.browser.get(String(asked.body['verification_uri_complete'])).gives(200)
  t.regex(page.html, /data-purpose[^>]*><bdi>Rotate the “deploy” key &lt;b&gt;today&lt;\/b&gt;</)

  const lent = await delegate(api, token, person, { scope: SCOPE, purpose: PURPOSE })
  const { body: record } = await api.get(`/api/v1/delegations/${lent.delegationId}`, token)
  const intent = {
    id: lent.delegationId,
    purpose_hash: sha256(PURPOSE),
    policy_hash: sha256(policyOf(record)),
  }
  t.like(record, {
    purpose: PURPOSE,
    purpose_hash: intent.purpose_hash,
    policy_hash: intent.policy_hash,
  })
  t.deepEqual(claimsOf(lent.token)['delegation'], intent)

  const requestId = randomUUID()
  const refreshed = await api
    .form(
      '/oauth/token',
      { grant_type: 'refresh_token', client_id: agentId, refresh_token: lent.refreshToken },
      { 'x-request-id': requestId },
    )
    .gives(200)
  t.deepEqual(claimsOf(refreshed.body['access_token'])['delegation'], intent)
  const [issued] = await eventsOf(requestId)
  t.like(issued, { type: 'auth.token.issued', delegation_id: lent.delegationId })
  t.deepEqual((issued!['data'] as Json)['delegation'], intent)

  const account = await person.browser.get('/auth/account').gives(200)
  t.regex(account.html, /data-purpose><bdi>Rotate the “deploy” key/)
})

test('a request without a purpose has no purpose hash, and a bad purpose is refused', async (t) => {
  const lent = await delegate(api, workspace.token, person, { scope: SCOPE })
  t.like(claimsOf(lent.token)['delegation'], { id: lent.delegationId, purpose_hash: null })
  for (const purpose of ['', ' ', '\u200B', 'a\u202Eb', 'a\u0000b', 'x'.repeat(501), 1]) {
    const { status, body } = await api.post(DEVICE, workspace.token, { scope: SCOPE, purpose })
    t.is(status, 400, JSON.stringify(purpose))
    t.like((body['errors'] as Json[])[0], { pointer: '#/purpose' })
  }
  await api.post(DEVICE, workspace.token, { scope: SCOPE, purpose: '💡'.repeat(500) }).gives(200)
})

test('what is done under a delegation is recorded with it, and svc audit explain tells why', async (t) => {
  const { token, tenantId, agentId } = workspace
  const lent = await delegate(api, token, person, { scope: SCOPE, purpose: PURPOSE })
  const requestId = randomUUID()
  const made = await api.call('POST', '/api/v1/vault/credentials', {
    token: lent.token,
    headers: { 'x-request-id': requestId },
    json: {
      provider: 'github',
      credential_type: 'api_key',
      label: 'Deployments',
      auth_scheme: 'bearer',
      allowed_hosts: ['api.github.com'],
      secret: 'a secret of many letters',
    },
  })
  t.is(made.status, 201, JSON.stringify(made.body))
  const events = await eventsOf(requestId)
  t.true(events.length > 0)
  const intent = claimsOf(lent.token)['delegation']
  for (const { data } of events) t.deepEqual((data as Json)['delegation'], intent)
  const ofObject = `/api/v1/audit-events?resource_id=${String(made.body['id'])}`
  t.deepEqual((await api.list(ofObject, token)).rows, events)
  t.is((await api.get('/api/v1/audit-events/verify', token)).body['valid'], true)

  const explain = async (...more: string[]) => {
    const said = { out: '', err: '', code: 0 }
    const program = new Command().exitOverride()
    auditCommand(program, {
      open: () => openDatabaseTools({ environment: { DATABASE_URL: running.db.url }, cwd: '/' }),
      out: (text) => (said.out += text),
      err: (text) => (said.err += text),
      exitWith: (code) => (said.code = code),
    })
    await program.parseAsync(['node', 'svc', 'audit', 'explain', ...more])
    return said
  }
  const told = await explain(requestId, '--json')
  t.is(told.code, 0, told.err)
  const { events: explained } = JSON.parse(told.out) as { events: readonly Json[] }
  t.is(explained.length, events.length)
  t.like(explained[0], {
    action: 'vault.credential.created',
    outcome: 'success',
    tenant_id: tenantId,
    who: { type: 'human', id: claimsOf(lent.token)['sub'] },
    through: [{ type: 'agent', id: agentId }],
    resource: { type: 'vault_credential', id: made.body['id'] },
    for: { delegation_id: lent.delegationId, purpose: PURPOSE, purpose_matches: true },
    by: [{ kind: 'delegation', id: lent.delegationId }],
  })
  const text = (await explain(requestId)).out
  t.regex(text, /vault\.credential\.created: success/)
  t.regex(text, /for {6}"Rotate the “deploy” key <b>today<\/b>"/)
  t.regex(text, new RegExp(`through {2}agent .*${agentId}`))

  const unknown = await explain(randomUUID())
  t.is(unknown.code, 1)
  t.regex(unknown.err, /no audit event has the request id/)

  // The record of the delegation no longer says what the event recorded.
  await sql(
    running,
  )`update delegations set purpose = 'Something else' where id = ${lent.delegationId}`
  t.regex((await explain(requestId)).out, /which is not what the event recorded/)
})
