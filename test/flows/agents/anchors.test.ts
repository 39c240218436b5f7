/** Revocation of anchors, with two services on one database. */
import test from 'ava'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import type { Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { sharedTwo } from '../../support/service/two-services.js'

const { first: api, second } = await sharedTwo()

const AGENTS = '/api/v1/agents'
const revokePath = (agentId: string, did: string) =>
  `${AGENTS}/${agentId}/anchors/${encodeURIComponent(did)}/revoke`

/** A logged-in agent of a sandbox with two keys and so two anchors. */
async function anchored() {
  const owner = await api.workspace()
  const { key, agentId } = await api.register(owner.tenantId)
  const selector = { agent_id: agentId, tenant_id: owner.tenantId }
  const { body } = await api.login(key, selector)
  const token = String(body['access_token'])
  const other = createAgentKey('es256')
  const { public_key, key_algorithm, key_ownership_proof } = other.registration({
    issuer: api.at.baseUrl,
    tenantId: owner.tenantId,
  })
  const more = { public_key, key_algorithm, key_ownership_proof }
  await api.post(`${AGENTS}/${agentId}/keys`, token, more).gives(201)
  return { owner, key, other, agentId, selector, token }
}

const anchorsOf = (agent: Json) =>
  (agent['anchors'] as Json[]).map(({ value, status }) => `${String(value)} ${String(status)}`)

test('revoking an anchor does not revoke its key', async (t) => {
  const { owner, key, other, agentId, selector, token } = await anchored()
  const byDid = { did: key.did, tenant_id: owner.tenantId }
  t.is((await api.login(key, byDid)).status, 200)

  const path = revokePath(agentId, key.did)
  const revoked = await api.post(path, token).gives(200)
  t.like(revoked.body, { type: 'did_key', value: key.did, status: 'revoked' })
  t.deepEqual(Object.keys(revoked.body).toSorted(), ['status', 'type', 'value', 'verified_at'])
  t.deepEqual((await second.post(path, token)).body, revoked.body)

  for (const at of [api, second]) {
    // The DID no longer identifies it; other identifiers do.
    const unknown = await at.login(key, byDid)
    t.like(unknown, { status: 400, body: { error: 'bad_request' } })
    t.is((await at.login(other, selector)).status, 200)
    const byKey = { key_id: key.fingerprint, tenant_id: owner.tenantId }
    t.is((await at.login(key, byKey)).status, 200)
    t.is((await at.login(other, { ...byDid, did: other.did })).status, 200)
    const { status, body } = await at.get(`${AGENTS}/me`, token)
    t.is(status, 200, 'its session continues')
    t.deepEqual(anchorsOf(body), [`${key.did} revoked`, `${other.did} active`])
    t.is(body['did'], other.did)
    t.deepEqual(
      (body['keys'] as Json[]).map(({ status: of }) => of),
      ['active', 'active'],
    )
  }
  const events = await api.list('/api/v1/audit-events?type=admin.agent.anchor.revoked', owner.token)
  t.is(events.rows.length, 1, 'repeating it changes nothing')
  t.like(events.rows[0]!, {
    subject: { sub: agentId, subject_type: 'agent' },
    resource: { type: 'agent', id: agentId },
    data: { type: 'did_key', value: key.did },
    request_id: revoked.headers['x-request-id'],
  })
  t.is((await api.get('/api/v1/audit-events/verify', owner.token)).body['valid'], true)
})

test('a did:web in the path has encoded percent signs', async (t) => {
  const { owner, agentId } = await anchored()
  const did = 'did:web:agents.example.com%3A8443:buyer'
  await sql(api.at)`
    insert into agent_anchors (tenant_id, agent_id, type, value, verified_at)
    values (${owner.tenantId}, ${agentId}, 'did_web', ${did}, now())`
  const revoked = await api.post(revokePath(agentId, did), owner.token).gives(200)
  t.like(revoked.body, { type: 'did_web', value: did, status: 'revoked' })
})

test('an agent cannot revoke its last anchor, a manager can', async (t) => {
  const { owner, key, other, agentId, selector, token } = await anchored()
  const both = [key, other].map(({ did }) => revokePath(agentId, did))
  const outcomes = await Promise.all([api.post(both[0]!, token), second.post(both[1]!, token)])
  t.deepEqual(outcomes.map(({ status }) => status).toSorted(), [200, 409])
  const refused = outcomes.find(({ status }) => status === 409)!
  t.is(refused.body['error'], 'conflict')

  for (const path of both) t.is((await api.post(path, owner.token)).status, 200)
  const { body } = await api.get(`${AGENTS}/${agentId}`, owner.token)
  t.deepEqual(
    (body['anchors'] as Json[]).map(({ status }) => status),
    ['revoked', 'revoked'],
  )
  t.is((await api.login(other, selector)).status, 200)
})

test('revoking a key revokes its anchors, finally', async (t) => {
  const { key, other, agentId, token } = await anchored()
  await api.post(`${AGENTS}/${agentId}/keys/${other.fingerprint}/revoke`, token).gives(200)
  const again = await api.post(revokePath(agentId, other.did), token)
  t.like(again, { status: 200, body: { status: 'revoked' } })
  t.is((await api.post(revokePath(agentId, key.did), token)).status, 409)
})

test('unknown anchors and unauthorized callers are refused', async (t) => {
  const { owner, key, agentId, token } = await anchored()
  const stranger = await anchored()
  const path = revokePath(agentId, key.did)
  t.is((await api.post(path)).status, 401)
  // Another agent of the tenant; an agent and a manager of another tenant.
  const colleague = await api.register(owner.tenantId)
  const { body } = await api.login(colleague.key, {
    agent_id: colleague.agentId,
    tenant_id: owner.tenantId,
  })
  await api.post(path, String(body['access_token'])).gives(403, 'insufficient_scope')
  for (const foreign of [stranger.token, stranger.owner.token])
    t.is((await api.post(path, foreign)).status, 404)
  // An anchor of another agent, an unknown one, and an invalid DID.
  for (const did of [stranger.key.did, createAgentKey().did, 'nonsense', '%', 'did:web:x%2Fy']) {
    const unknown = await api.post(revokePath(agentId, did), token)
    t.is(unknown.status, 404, did)
    t.is(unknown.body['error'], 'not_found')
  }
  // The owner's home tenant is the control plane, so its own tenant may not.
  const { key: ownKey, agentId: ownerId } = owner
  const answer = await api.patch(`${AGENTS}/${colleague.agentId}`, owner.token, {
    scopes: ['agents:manage'],
  })
  t.is(answer.status, 200)
  const managing = await api.login(colleague.key, {
    agent_id: colleague.agentId,
    tenant_id: owner.tenantId,
  })
  const made = await api.post(
    revokePath(ownerId, ownKey.did),
    String(managing.body['access_token']),
  )
  t.like(made, { status: 403, body: { error: 'policy_denied' } })
})
