import test from 'ava'
import { eventsAfter } from '../../../../storage/platform/outbox.js'
import { contract } from '../../../vectors/contract.js'
import {
  identityFixture,
  newcomer,
  registered,
  started,
} from '../../../support/identity/identity.js'
import { nonceFor } from '../../../support/identity/nonce.js'
import { sql } from '../../../support/storage/sql.js'

const resources = await identityFixture()
const strict = await identityFixture({ minDurationSecs: 60, difficultyBits: 4 })
test.after.always(async () => {
  await resources.close()
  await strict.close()
})
const { agents, controlPlane, database } = resources
const control = { tenantId: controlPlane.id }

async function tenantWith(change: string): Promise<string> {
  const organization = crypto.randomUUID()
  const id = crypto.randomUUID()
  await sql(
    database,
    `insert into organizations values ($1::uuid, 'Acme', 'o-' || left($1::text, 8), 'active', now(), now())`,
    [organization],
  )
  await sql(
    database,
    `insert into tenants (id, organization_id, name, slug, environment, admit_agents, created_at,
       updated_at) values ($1::uuid, $2, 'Acme', 't-' || left($1::text, 8), 'production', false, now(), now())`,
    [id, organization],
  )
  if (change !== '') await sql(database, `update tenants set ${change} where id = $1`, [id])
  return id
}

test('an agent registers with a key, a proof of ownership and a proof of work', async (t) => {
  const { key, challengeId, nonce, outcome } = await started(resources)
  t.is(Buffer.from(outcome.challengeToken, 'base64url').length, 32)
  t.like(outcome, { difficultyBits: 4, minDurationSeconds: 0, expiresInSeconds: 300 })
  const done = await agents.completeAgentRegistration({ challengeId, nonce })
  if (done.tag !== 'registered') return t.fail(done.tag)
  t.like(done.agent, {
    tenantId: controlPlane.id,
    name: 'Newcomer',
    status: 'active',
    did: key.did,
    scopes: ['openid', 'vault:list', 'vault:read'],
    metadata: {},
    lastAuthenticatedAt: null,
  })
  t.deepEqual(done.agent.keys, [done.key])
  t.like(done.key, {
    id: key.fingerprint,
    algorithm: 'ed25519',
    publicKey: key.publicKey,
    status: 'active',
    revokedAt: null,
  })
  t.like(done.agent.anchors[0], { type: 'did_key', value: key.did, status: 'active' })
  const read = await agents.readOwnAgent({ agentId: done.agent.id })
  t.deepEqual(read, { tag: 'found', agent: done.agent })

  const events = await database.tenant(controlPlane.id, (tx) =>
    eventsAfter(tx, controlPlane.id, 0, 1000),
  )
  const told = events.find(({ data }) => data['key_id'] === key.fingerprint)
  t.is(told?.type, 'admin.agent.registered')
  t.like(told?.data, { actor: { type: 'agent', id: done.agent.id }, name: 'Newcomer' })
})

test('concurrent starts get their own results', async (t) => {
  const { registration: taken, challengeId, nonce } = await started(resources)
  await agents.completeAgentRegistration({ challengeId, nonce })
  const tenants = [controlPlane.id, await tenantWith('admit_agents = true')]
  const asked = Array.from({ length: 60 }, (_, at) => {
    const tenantId = tenants[at % 2]!
    const isTaken = at % 10 === 0
    const registration = isTaken ? taken : newcomer(tenantId, `Number ${at}`).registration
    return { tenantId, isTaken, name: registration.name, registration }
  })
  const outcomes = await Promise.all(
    asked.map(({ registration, tenantId }) =>
      agents.startAgentRegistration({ kind: 'agent', registration, tenant: { tenantId } }),
    ),
  )
  for (const [at, outcome] of outcomes.entries()) {
    const { isTaken, tenantId, name } = asked[at]!
    if (isTaken) {
      t.is(outcome.tag, 'fingerprint_known')
      continue
    }
    if (outcome.tag !== 'started') return t.fail(outcome.tag)
    const [row] = await sql<{ token: string; tenant: string; name: string }>(
      database,
      'select challenge_token as token, tenant_id as tenant, name from pow_challenges where id = $1',
      [outcome.challengeId],
    )
    t.deepEqual(row, { token: outcome.challengeToken, tenant: tenantId, name })
  }
})

for (const keyAlgorithm of ['ed25519', 'es256'] as const) {
  test(`the anchor value is optional for ${keyAlgorithm}`, async (t) => {
    const { registration } = newcomer(controlPlane.id, 'Newcomer', keyAlgorithm)
    const outcome = await agents.startAgentRegistration({
      kind: 'agent',
      registration: { ...registration, anchorValue: undefined },
      tenant: control,
    })
    t.is(outcome.tag, 'started')
  })
}

for (const [title, change, expected] of [
  ['a missing proof', { keyOwnershipProof: undefined }, { tag: 'invalid_ownership_proof' }],
  ['a proof that is not base64url', { keyOwnershipProof: '!' }, { tag: 'invalid_ownership_proof' }],
  [
    'a proof of something else',
    { keyOwnershipProof: contract.challenge.signature },
    { tag: 'invalid_ownership_proof' },
  ],
  [
    'an invalid key',
    { publicKey: 'AAAA' },
    { tag: 'invalid_registration', pointer: '/public_key' },
  ],
  [
    'an anchor of another key',
    { anchorValue: contract.key.did },
    { tag: 'invalid_registration', pointer: '/anchor_value' },
  ],
] as const) {
  test(`${title} is refused`, async (t) => {
    const { registration } = newcomer(controlPlane.id)
    const outcome = await agents.startAgentRegistration({
      kind: 'agent',
      registration: { ...registration, ...change },
      tenant: control,
    })
    t.like(outcome, expected)
  })
}

test('a proof for one tenant is invalid in another', async (t) => {
  const tenantId = await tenantWith('admit_agents = true')
  const { registration } = newcomer(controlPlane.id)
  const outcome = await agents.startAgentRegistration({
    kind: 'agent',
    registration,
    tenant: { tenantId },
  })
  t.is(outcome.tag, 'invalid_ownership_proof')
})

for (const [title, change, tag] of [
  ['a tenant that admits agents registers them', 'admit_agents = true', 'started'],
  ['a production tenant refuses agents unless it says otherwise', '', 'tenant_refuses'],
  [
    'a suspended tenant refuses agents',
    `admit_agents = true, status = 'suspended'`,
    'tenant_refuses',
  ],
] as const) {
  test(title, async (t) => {
    const tenantId = await tenantWith(change)
    const { registration } = newcomer(tenantId)
    const outcome = await agents.startAgentRegistration({
      kind: 'agent',
      registration,
      tenant: { tenantId },
    })
    t.is(outcome.tag, tag)
  })
}

test('a tenant is found by its slug and by its host, and the proof still signs its id', async (t) => {
  const tenantId = await tenantWith('admit_agents = true')
  const tenantSlug = `t-${tenantId.slice(0, 8)}`
  for (const tenant of [{ tenantSlug }, { host: `${tenantSlug}.svc.example:8080` }]) {
    const { registration } = newcomer(tenantId)
    const message = { kind: 'agent', registration, tenant } as const
    t.is((await agents.startAgentRegistration(message)).tag, 'started')
  }
})

for (const [title, tenant, tag] of [
  ['an unknown tenant', { tenantId: crypto.randomUUID() }, 'unknown_tenant'],
  ['an unknown slug', { tenantSlug: 'unknown' }, 'unknown_tenant'],
  ['a tenant named twice', { ...control, tenantSlug: 'control-plane' }, 'conflicting_tenant'],
] as const) {
  test(`${title} takes no registration`, async (t) => {
    const { registration } = newcomer(controlPlane.id)
    const outcome = await agents.startAgentRegistration({ kind: 'agent', registration, tenant })
    t.is(outcome.tag, tag)
  })
}

test('a workspace starts in the control plane, whichever host the request names', async (t) => {
  const elsewhere = await tenantWith('admit_agents = true')
  const { registration } = newcomer(controlPlane.id)
  const host = `t-${elsewhere.slice(0, 8)}.svc.example`
  const message = { kind: 'workspace', registration } as const
  t.is((await agents.startAgentRegistration({ ...message, tenant: { host } })).tag, 'started')
  const named = { ...message, tenant: { tenantId: elsewhere } }
  t.like(await agents.startAgentRegistration(named), { pointer: '/tenant_id' })
})

test('a registered key conflicts at the next start', async (t) => {
  const { key } = await registered(resources)
  const sent = key.registration({ issuer: 'https://auth.svc.example', tenantId: controlPlane.id })
  const again = await agents.startAgentRegistration({
    kind: 'agent',
    registration: {
      name: 'Again',
      anchorType: sent.anchor_type,
      publicKey: sent.public_key,
      keyAlgorithm: sent.key_algorithm,
      keyOwnershipProof: sent.key_ownership_proof,
    },
    tenant: control,
  })
  t.is(again.tag, 'fingerprint_known')
})

test('of two challenges for one key the second conflicts and stays open', async (t) => {
  const { registration } = newcomer(controlPlane.id)
  const start = { kind: 'agent', registration, tenant: control } as const
  const [first, second] = [
    await agents.startAgentRegistration(start),
    await agents.startAgentRegistration(start),
  ]
  if (first.tag !== 'started' || second.tag !== 'started') return t.fail()
  const complete = (challenge: typeof first) =>
    agents.completeAgentRegistration({
      challengeId: challenge.challengeId,
      nonce: nonceFor(challenge),
    })
  t.is((await complete(first)).tag, 'registered')
  t.is((await complete(second)).tag, 'fingerprint_known')
  t.is((await complete(second)).tag, 'fingerprint_known')
})

test('a challenge completes once', async (t) => {
  const { challengeId, nonce } = await started(resources)
  t.is((await agents.completeAgentRegistration({ challengeId, nonce })).tag, 'registered')
  const again = await agents.completeAgentRegistration({ challengeId, nonce })
  t.is(again.tag, 'challenge_consumed')
})

for (const challengeId of [crypto.randomUUID(), 'no-uuid', '']) {
  test(`unknown challenge "${challengeId.slice(0, 8)}"`, async (t) => {
    const outcome = await agents.completeAgentRegistration({ challengeId, nonce: '0' })
    t.is(outcome.tag, 'unknown_challenge')
  })
}

test('a challenge of one route cannot be completed on the other', async (t) => {
  const workspace = await started(resources, 'workspace')
  const { challengeId, nonce } = workspace
  t.is((await agents.completeAgentRegistration({ challengeId, nonce })).tag, 'challenge_mismatch')
  const agent = await started(resources, 'agent')
  const checked = await agents.checkCompletion({
    challengeId: agent.challengeId,
    nonce: agent.nonce,
    kind: 'workspace',
  })
  t.is(checked.tag, 'challenge_mismatch')
})

test('a sent challenge_token must equal the issued one', async (t) => {
  const { challengeId, nonce, outcome } = await started(resources)
  const wrong = await agents.completeAgentRegistration({
    challengeId,
    nonce,
    challengeToken: 'another',
  })
  t.is(wrong.tag, 'challenge_mismatch')
  const { challengeToken } = outcome
  const right = await agents.completeAgentRegistration({ challengeId, nonce, challengeToken })
  t.is(right.tag, 'registered')
})

test('nine invalid proofs leave the challenge open', async (t) => {
  const { challengeId, nonce, outcome } = await started(resources)
  const wrong = nonceFor(outcome, 'invalid')
  for (let count = 0; count < 9; count += 1) {
    const refused = await agents.completeAgentRegistration({ challengeId, nonce: wrong })
    t.is(refused.tag, 'invalid_proof')
  }
  t.is((await agents.completeAgentRegistration({ challengeId, nonce })).tag, 'registered')
})

test('the tenth invalid proof expires the challenge, even if all are concurrent', async (t) => {
  const { challengeId, nonce, outcome } = await started(resources)
  const wrong = nonceFor(outcome, 'invalid')
  const refused = await Promise.all(
    Array.from({ length: 12 }, () =>
      agents.completeAgentRegistration({ challengeId, nonce: wrong }),
    ),
  )
  const tags = refused.map(({ tag }) => tag)
  t.is(tags.filter((tag) => tag === 'invalid_proof').length, 10)
  t.is(tags.filter((tag) => tag === 'challenge_expired').length, 2)
  const late = await agents.completeAgentRegistration({ challengeId, nonce })
  t.is(late.tag, 'challenge_expired')
})

test('a challenge expires by time', async (t) => {
  const { challengeId, nonce } = await started(resources)
  await sql(database, `update pow_challenges set expires_at = clock_timestamp() where id = $1`, [
    challengeId,
  ])
  const outcome = await agents.completeAgentRegistration({ challengeId, nonce })
  t.is(outcome.tag, 'challenge_expired')
})

test('a valid proof before the minimum duration succeeds when it is repeated later', async (t) => {
  const { challengeId, nonce, outcome } = await started(strict)
  const wrong = nonceFor(outcome, 'invalid')
  const complete = (sent: string) =>
    strict.agents.completeAgentRegistration({ challengeId, nonce: sent })
  // An invalid proof is reported first, even before the minimum duration.
  t.is((await complete(wrong)).tag, 'invalid_proof')
  const early = await complete(nonce)
  if (early.tag !== 'too_early') return t.fail(early.tag)
  t.true(Number.isInteger(early.waitSeconds))
  t.true(early.waitSeconds >= 1 && early.waitSeconds <= 60)
  await sql(
    strict.database,
    `update pow_challenges set created_at = created_at - interval '59 seconds' where id = $1`,
    [challengeId],
  )
  t.deepEqual(await complete(nonce), { tag: 'too_early', waitSeconds: 1 })
  await sql(
    strict.database,
    `update pow_challenges set created_at = created_at - interval '1 second' where id = $1`,
    [challengeId],
  )
  t.is((await complete(nonce)).tag, 'registered')
})

test('direct registration is refused unless the tenant allows it', async (t) => {
  const { registration } = newcomer(controlPlane.id)
  const outcome = await agents.registerAgent({ registration, tenant: control })
  t.is(outcome.tag, 'tenant_refuses')
})

test('direct registration registers an agent, once per key', async (t) => {
  const tenantId = await tenantWith('direct_agent_registration = true')
  const { key, registration } = newcomer(tenantId)
  const message = { registration, tenant: { tenantId } }
  const outcome = await agents.registerAgent(message)
  t.like(outcome, { tag: 'registered', agent: { tenantId, did: key.did } })
  t.is((await agents.registerAgent(message)).tag, 'fingerprint_known')
})

test('the same key can register in several tenants', async (t) => {
  const first = await tenantWith('direct_agent_registration = true')
  const second = await tenantWith('direct_agent_registration = true')
  const { key } = newcomer(first)
  for (const tenantId of [first, second]) {
    const sent = key.registration({ issuer: 'https://auth.svc.example', tenantId })
    const outcome = await agents.registerAgent({
      registration: {
        name: 'Twin',
        anchorType: sent.anchor_type,
        publicKey: sent.public_key,
        keyAlgorithm: sent.key_algorithm,
        keyOwnershipProof: sent.key_ownership_proof,
      },
      tenant: { tenantId },
    })
    t.is(outcome.tag, 'registered')
  }
})
