import test from 'ava'
import { REGISTERED_AGENT_SCOPES, TENANT_SCOPES } from '../../../../actors/domain/scopes.js'
import {
  type IdentityFixture,
  identityFixture,
  ISSUER,
  registered,
} from '../../../support/identity/identity.js'
import { sql } from '../../../support/storage/sql.js'
import { workspace } from '../../../support/identity/workspace.js'

const resources = await identityFixture()
test.after.always(() => resources.close())
const { agents, controlPlane, database, granted } = resources

type Key = Awaited<ReturnType<typeof registered>>['key']

async function challenged(
  { agents }: IdentityFixture,
  agentId: string,
  tenant: { tenantId?: string } = {},
) {
  const outcome = await agents.challengeAgent({
    agent: { by: 'agent_id', value: agentId },
    tenant,
  })
  if (outcome.tag !== 'challenged') throw new Error(outcome.tag)
  return outcome
}

const ADDRESS = '192.0.2.1'

async function loggedIn(key: Key, agentId: string, tenantId?: string, scope?: string) {
  const { challengeId, payload } = await challenged(
    resources,
    agentId,
    tenantId === undefined ? {} : { tenantId },
  )
  const signature = key.signChallenge(payload)
  return agents.verifyAgent({ challengeId, signature, scope, address: ADDRESS, dpop: null })
}

test('an agent signs the payload of its challenge and gets tokens', async (t) => {
  const { key, agent } = await registered(resources)
  const challenge = await challenged(resources, agent.id)
  t.like(challenge, {
    agentId: agent.id,
    keyId: key.fingerprint,
    tenantId: controlPlane.id,
    issuer: ISSUER,
    algorithm: 'ed25519',
    expiresInSeconds: 120,
  })
  t.is(Buffer.from(challenge.nonce, 'base64url').length, 32)
  t.is(challenge.expiresAt.getMilliseconds(), 0)
  t.deepEqual(challenge.payload.split('\n'), [
    'svc-agent-challenge-v1',
    ISSUER,
    controlPlane.id,
    agent.id,
    key.fingerprint,
    challenge.challengeId,
    challenge.nonce,
    String(challenge.expiresAt.getTime() / 1000),
  ])
  const verified = await agents.verifyAgent({
    challengeId: challenge.challengeId,
    signature: key.signChallenge(challenge.payload),
    keyId: key.fingerprint,
    address: ADDRESS,
    dpop: null,
  })
  t.like(verified, {
    tag: 'verified',
    tokenType: 'Bearer',
    expiresInSeconds: 300,
    scopes: [...REGISTERED_AGENT_SCOPES],
    agentId: agent.id,
    tenantId: controlPlane.id,
  })
  t.deepEqual(
    granted.find(({ agentId }) => agentId === agent.id),
    {
      agentId: agent.id,
      tenantId: controlPlane.id,
      organizationId: null,
      scopes: [...REGISTERED_AGENT_SCOPES],
      keyFingerprint: key.fingerprint,
      jkt: null,
      challengeId: challenge.challengeId,
      address: ADDRESS,
    },
  )
  const read = await agents.readOwnAgent({ agentId: agent.id })
  t.true(read.tag === 'found' && read.agent.lastAuthenticatedAt instanceof Date)
})

test('an agent is found by its DID and by its key id', async (t) => {
  const { key, agent } = await registered(resources)
  for (const name of [
    { by: 'did', value: key.did },
    { by: 'key_id', value: key.fingerprint },
  ] as const) {
    const outcome = await agents.challengeAgent({ agent: name, tenant: {} })
    t.like(outcome, { tag: 'challenged', agentId: agent.id, keyId: key.fingerprint })
  }
})

test('unknown, suspended and foreign agents get the same error', async (t) => {
  const { agent } = await registered(resources)
  const deprecated = await registered(resources)
  const stranger = await registered(resources)
  const { tenant } = await workspace(resources)
  await sql(database, `update agents set status = 'suspended' where id = $1`, [agent.id])
  await sql(database, `update agent_keys set status = 'deprecated' where agent_id = $1`, [
    deprecated.agent.id,
  ])
  const ask = (value: string, selector: { tenantId?: string; tenantSlug?: string } = {}) =>
    agents.challengeAgent({ agent: { by: 'agent_id', value }, tenant: selector })
  for (const outcome of [
    await ask(crypto.randomUUID()),
    await ask('no-uuid'),
    await ask(agent.id),
    await ask(deprecated.agent.id),
    await ask(stranger.agent.id, { tenantId: tenant.id }),
    await ask(stranger.agent.id, { tenantId: crypto.randomUUID() }),
    await ask(stranger.agent.id, { tenantId: controlPlane.id, tenantSlug: 'control-plane' }),
  ]) {
    t.deepEqual(outcome, { tag: 'unknown_agent' })
  }
})

test('a wrong signature spends the challenge', async (t) => {
  const { key, agent } = await registered(resources)
  const { challengeId, payload } = await challenged(resources, agent.id)
  const verify = (signature: string) =>
    agents.verifyAgent({ challengeId, signature, address: ADDRESS, dpop: null })
  t.is((await verify(key.signChallenge(`${payload}\n`))).tag, 'invalid_grant')
  t.is((await verify(key.signChallenge(payload))).tag, 'invalid_grant')
})

test('a login that asks for a foreign scope spends the challenge', async (t) => {
  const { key, agent } = await registered(resources)
  const { challengeId, payload } = await challenged(resources, agent.id)
  const verify = (scope: string) =>
    agents.verifyAgent({
      challengeId,
      signature: key.signChallenge(payload),
      scope,
      address: ADDRESS,
      dpop: null,
    })
  t.is((await verify('users:manage')).tag, 'invalid_scope')
  t.is((await verify('vault:read')).tag, 'invalid_grant')
})

test('a challenge is spent once', async (t) => {
  const { key, agent } = await registered(resources)
  const { challengeId, payload } = await challenged(resources, agent.id)
  const verify = {
    challengeId,
    signature: key.signChallenge(payload),
    address: ADDRESS,
    dpop: null,
  }
  t.is((await agents.verifyAgent(verify)).tag, 'verified')
  t.is((await agents.verifyAgent(verify)).tag, 'invalid_grant')
})

for (const [title, statement] of [
  [
    'a challenge past its time',
    `update agent_challenges set expires_at = clock_timestamp() where agent_id = $1`,
  ],
  ['a suspended agent', `update agents set status = 'suspended' where id = $1`],
  [
    'a revoked key',
    `update agent_keys set status = 'revoked', revoked_at = now() where agent_id = $1`,
  ],
] as const) {
  test(`${title} does not log in with the right signature`, async (t) => {
    const { key, agent } = await registered(resources)
    const { challengeId, payload } = await challenged(resources, agent.id)
    await sql(database, statement, [agent.id])
    const signature = key.signChallenge(payload)
    const outcome = await agents.verifyAgent({
      challengeId,
      signature,
      address: ADDRESS,
      dpop: null,
    })
    t.is(outcome.tag, 'invalid_grant')
  })
}

test('a key deprecated after its challenge completes the login', async (t) => {
  const { key, agent } = await registered(resources)
  const { challengeId, payload } = await challenged(resources, agent.id)
  await sql(database, `update agent_keys set status = 'deprecated' where agent_id = $1`, [agent.id])
  const signature = key.signChallenge(payload)
  const outcome = await agents.verifyAgent({ challengeId, signature, address: ADDRESS, dpop: null })
  t.is(outcome.tag, 'verified')
})

for (const [title, change] of [
  ['another key id', { keyId: 'another' }],
  ['a malformed signature', { signature: 'AAAA' }],
  ['another challenge', { challengeId: crypto.randomUUID() }],
  ['an invalid challenge id', { challengeId: 'x' }],
] as const) {
  test(`${title} does not log in`, async (t) => {
    const { key, agent } = await registered(resources)
    const { challengeId, payload } = await challenged(resources, agent.id)
    const verify = {
      challengeId,
      signature: key.signChallenge(payload),
      address: ADDRESS,
      dpop: null,
      ...change,
    }
    t.is((await agents.verifyAgent(verify)).tag, 'invalid_grant')
  })
}

test('a login can request fewer scopes, but no others', async (t) => {
  const { key, agent } = await registered(resources)
  const less = await loggedIn(key, agent.id, undefined, 'vault:read')
  t.like(less, { tag: 'verified', scopes: ['vault:read'] })
  const more = await loggedIn(key, agent.id, undefined, 'vault:read users:manage')
  t.is(more.tag, 'invalid_scope')
})

test('the owner of a workspace logs in to its control plane and to its tenant', async (t) => {
  const { key, agent, tenant } = await workspace(resources)
  t.like(await loggedIn(key, agent.id), {
    tenantId: controlPlane.id,
    scopes: ['org:read', 'org:create', 'org:manage', 'tenant:manage'],
  })
  const inside = await loggedIn(key, agent.id, tenant.id)
  t.like(inside, { tenantId: tenant.id, scopes: [...TENANT_SCOPES] })
})

test('a member of a suspended organization cannot log in to its tenant', async (t) => {
  const { agent, organization, tenant } = await workspace(resources)
  await sql(database, `update organizations set status = 'suspended' where id = $1`, [
    organization.id,
  ])
  const outcome = await agents.challengeAgent({
    agent: { by: 'agent_id', value: agent.id },
    tenant: { tenantId: tenant.id },
  })
  t.is(outcome.tag, 'unknown_agent')
})

const dpop = (proof: string) => ({
  proof,
  httpMethod: 'POST',
  httpUrl: `${ISSUER}/api/v1/agents/auth/verify`,
})

test('an invalid DPoP proof does not spend the challenge', async (t) => {
  const { key, agent } = await registered(resources)
  const { challengeId, payload } = await challenged(resources, agent.id)
  const verify = { challengeId, signature: key.signChallenge(payload), address: ADDRESS }
  const refused = await agents.verifyAgent({ ...verify, dpop: dpop('bad') })
  t.like(refused, { tag: 'proof_refused', error: 'use_dpop_nonce', dpopNonce: 'nonce' })
  const verified = await agents.verifyAgent({ ...verify, dpop: dpop('good') })
  t.like(verified, { tag: 'verified', tokenType: 'DPoP' })
  t.is(granted.find(({ agentId }) => agentId === agent.id)?.jkt, 'thumbprint')
})

test('an agent with two keys is challenged for the newest, or for the named one', async (t) => {
  const { key, agent } = await registered(resources)
  const older = await registered(resources)
  await sql(
    database,
    `update agent_keys set agent_id = $1, created_at = created_at - interval '1 hour'
     where agent_id = $2`,
    [agent.id, older.agent.id],
  )
  t.is((await challenged(resources, agent.id)).keyId, key.fingerprint)
  for (const { fingerprint } of [key, older.key]) {
    const named = { by: 'key_id', value: fingerprint } as const
    const outcome = await agents.challengeAgent({ agent: named, tenant: {} })
    t.like(outcome, { tag: 'challenged', agentId: agent.id, keyId: fingerprint })
  }
})
