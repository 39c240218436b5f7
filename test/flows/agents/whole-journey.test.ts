/**
 * Two tenants, two people, three agents, one service: agents register, get delegations, call an
 * upstream with vault credentials, get SSH certificates, and lose all access again, while webhooks
 * report it. At the end the audit chain of each tenant is verified offline.
 */
import test from 'ava'
import { apiOf, claimsOf, type Json } from '../../support/api.js'
import { verifyOffline } from '../../support/operations/audit.js'
import { fixtureOf, delegate, ownToken, present } from '../../support/agents/delegation.js'
import { bodyCall, CREDENTIALS, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { startReceiver } from '../../support/webhooks/receiver.js'
import { sharedService } from '../../support/service.js'
import { startUpstream } from '../../actors/vault/egress/upstream.js'
import { judge } from '../../support/webhooks/webhooks.js'

const AUDIT = '/api/v1/audit-events'
const SECRET = 'never-seen-by-an-agent'

test('the whole journey of agents and people, with its audit trail', async (t) => {
  t.timeout(240_000)
  const receiver = await startReceiver()
  const upstream = await startUpstream({ tls: true })
  const running = await sharedService('egress')
  const api = apiOf(running)
  t.teardown(async () => {
    await running.end()
    await receiver.close()
    await upstream.close()
  })
  const made = async (path: string, token: string, json: Json, status = 201): Promise<Json> => {
    const answer = await api.post(path, token, json)
    t.is(answer.status, status, `${path} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** A tenant with its first agent, a person, a webhook, and a credential for the upstream. */
  async function tenant(name: string) {
    const workspace = await api.workspace(name)
    const { token } = workspace
    const person = await present(api, fixtureOf(workspace))
    const own = await ownToken(api, workspace, person)
    const path = `/${name}`
    const url = receiver.origin + path
    const types = ['egress.stream.closed', 'admin.delegation.revoked']
    const hook = await made('/api/v1/webhooks', token, { url, event_types: types })
    const credential = await made(CREDENTIALS, token, {
      provider: 'upstream',
      label: 'Key',
      credential_type: 'api_key',
      auth_scheme: 'bearer',
      allowed_hosts: [UPSTREAM_NAME],
      secret: `${SECRET}-${name}`,
    })
    return { workspace, token, person, own, path, secret: String(hook['secret']), credential }
  }
  const harbour = await tenant('harbour')
  const meadow = await tenant('meadow')

  // The third agent registers in the first tenant, with a proof of work.
  const { tenantId } = harbour.workspace
  const third = await api.register(tenantId)
  const selector = { agent_id: third.agentId, tenant_id: tenantId }
  const direct = String((await api.login(third.key, selector)).body['access_token'])

  const call = (token: string, credential: Json) =>
    api.call('POST', '/v1/proxy/body', {
      token,
      headers: bodyCall({ credentialId: String(credential['id']) }, `${upstream.origin}/headers`),
    })

  const delegations = []
  for (const [at, agentToken, agentId] of [
    [harbour, direct, third.agentId],
    [meadow, meadow.token, meadow.workspace.agentId],
  ] as const) {
    const delegated = await delegate(api, agentToken, at.person)
    t.like(claimsOf(delegated.token), {
      act: { sub: agentId },
      delegation_id: delegated.delegationId,
      acr: 'aal2',
    })
    t.is((await call(delegated.token, at.credential)).status, 404, 'there is no grant yet')
    await made(`${CREDENTIALS}/${String(at.credential['id'])}/grants`, at.token, {
      grantee_type: 'delegation',
      grantee_id: delegated.delegationId,
    })
    const answer = await call(delegated.token, at.credential).gives(200)
    t.false(JSON.stringify(answer.body).includes(SECRET))
    t.is(upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}-${at.path.slice(1)}`)
    delegations.push({ at, delegated })
  }
  // A delegation is not valid in the other tenant.
  for (const [own, other] of [
    [delegations[0]!, meadow],
    [delegations[1]!, harbour],
  ] as const) {
    t.is((await call(own.delegated.token, other.credential)).status, 404)
    await api.post(`/api/v1/delegations/${own.delegated.delegationId}/revoke`, other.own).gives(404)
  }

  // A direct token signs; a delegated one does not.
  const authority = await made(CREDENTIALS, harbour.token, {
    provider: 'ssh',
    label: 'Authority',
    credential_type: 'ssh_ca',
  })
  const signing = {
    credential_id: authority['id'],
    target_host: 'host.example',
    principals: ['deploy'],
  }
  const sign = '/api/v1/agents/delegations/ssh-sign'
  const signed = await made(sign, harbour.token, signing, 200)
  t.regex(String(signed['certificate']), /^ssh-\S+-cert-v01@openssh\.com /)
  t.is((await api.post(sign, delegations[0]!.delegated.token, signing)).status, 403)

  // The person revokes the delegation, which ends everything.
  for (const { at, delegated } of delegations) {
    const path = `/api/v1/delegations/${delegated.delegationId}/revoke`
    t.is((await api.post(path, at.own)).status, 200)
    t.is((await call(delegated.token, at.credential)).status, 401)
    t.is((await api.get(CREDENTIALS, delegated.token)).status, 401)
  }
  t.is((await api.post(`/api/v1/agents/${third.agentId}/suspend`, harbour.token)).status, 200)
  t.is((await api.get('/api/v1/agents/me', direct)).status, 401)

  for (const { at, delegated } of delegations) {
    // One stream closed, one delegation revoked; each signed with the secret of its tenant.
    const received = await receiver.until(at.path, 2)
    const events = received.map((one) => {
      const verdict = judge(one, at.secret)
      t.is(verdict.tag, 'genuine')
      return verdict.tag === 'genuine' ? verdict.eventType : ''
    })
    t.true(events.includes('egress.stream.closed'), events.join())
    t.true(events.includes('admin.delegation.revoked'), events.join())

    const { body } = await api.get(`${AUDIT}/export`, at.token).gives(200)
    const lines = String(body['text']).split('\n').slice(0, -1)
    const good = await verifyOffline(lines)
    t.is(good.code, 0, good.out)
    t.false(lines.join('\n').includes(SECRET))
    const seen = lines.map((line) => JSON.parse(line) as Json)
    t.true(seen.every((event) => event['tenant_id'] === at.workspace.tenantId))
    const ofDelegation = seen.filter((event) => event['delegation_id'] === delegated.delegationId)
    t.true(ofDelegation.length > 0, 'delegated actions name their delegation')

    // The chain with one changed word or one missing line is invalid.
    const middle = Math.floor(lines.length / 2)
    const forged = JSON.stringify({ ...seen[middle], outcome: 'denied' })
    t.is((await verifyOffline(lines.with(middle, forged))).code, 1)
    t.is((await verifyOffline(lines.toSpliced(middle, 1))).code, 1)
  }
})
