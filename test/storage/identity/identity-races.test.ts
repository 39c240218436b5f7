/** Races of the first start, of challenges and of workspaces, and what a transaction of one tenant sees. */
import test from 'ava'
import {
  insertAgentChallenges,
  spendAgentChallenges,
} from '../../../storage/agents/agent-challenges.js'
import type { NewAgent } from '../../../storage/agents/agents.js'
import { insertPowChallenges, redeemPowChallenge } from '../../../storage/agents/pow-challenges.js'
import {
  findControlPlane,
  findTenant,
  insertControlPlane,
} from '../../../storage/identity/tenants.js'
import { freshDatabase } from '../../support/storage/database.js'
import { identityFixture, registered, started } from '../../support/identity/identity.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { sql } from '../../support/storage/sql.js'
import { findOperatorInvite } from '../../../storage/identity/operator-invites.js'
import { workspace } from '../../support/identity/workspace.js'

const RACERS = 50

const fixture = await identityFixture()
test.after.always(() => fixture.close())
const { agents, controlPlane, database, workspaces } = fixture
const race = <T>(run: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: RACERS }, (_, index) => run(index)))

test.serial('of 50 first starts one creates the control plane and all find the same', async (t) => {
  const { database } = await freshDatabase(t)
  const found = await race(() =>
    database.system(async (tx) => {
      await insertControlPlane(tx, {
        id: crypto.randomUUID(),
        name: 'Control plane',
        slug: 'control-plane',
        createdAt: new Date(),
      })
      return findControlPlane(tx)
    }),
  )
  t.is(new Set(found.map((tenant) => tenant?.id)).size, 1)
  t.like(found[0], { slug: 'control-plane', controlPlane: true, admitAgents: true })
})

test.serial('of 50 redemptions of one challenge one registers', async (t) => {
  const id = crypto.randomUUID()
  const proven = {
    name: 'Racer',
    anchorType: 'did_key' as const,
    did: `did:key:z${id}`,
    publicKey: new Uint8Array(32),
    fingerprint: id,
  }
  await database.tenant(controlPlane.id, (tx) =>
    insertPowChallenges(tx, [
      {
        ...proven,
        id,
        tenantId: controlPlane.id,
        kind: 'agent',
        challengeToken: 'token',
        difficultyBits: 1,
        minDurationSecs: 0,
        keyAlgorithm: 'ed25519',
        ttlSecs: 60,
      },
    ]),
  )
  const agent = (): NewAgent => ({
    ...proven,
    id: crypto.randomUUID(),
    tenantId: controlPlane.id,
    algorithm: 'ed25519',
    scopes: [],
    createdAt: new Date(),
  })
  const outcomes = await race(() =>
    database.tenant(controlPlane.id, (tx) => redeemPowChallenge(tx, id, agent())),
  )
  t.is(outcomes.filter((outcome) => outcome === 'registered').length, 1)
  t.is(outcomes.filter((outcome) => outcome === 'closed').length, RACERS - 1)
  const rows = await sql(database)`select from agents where name = 'Racer'`
  t.is(rows.length, 1)
})

test.serial('of 50 verifications of one login challenge one uses it up', async (t) => {
  const { key, agent } = await registered(fixture)
  const id = crypto.randomUUID()
  await insertAgentChallenges(database, [
    {
      id,
      tenantId: controlPlane.id,
      agentId: agent.id,
      fingerprint: key.fingerprint,
      nonce: 'nonce',
      ttlSecs: 60,
    },
  ])
  const spent = await race(() =>
    database.tenant(controlPlane.id, (tx) => spendAgentChallenges(tx, controlPlane.id, [id])),
  )
  t.is(spent.filter(([won]) => won).length, 1)
})

test.serial(
  'of 50 completes of one challenge one registers, the others find it consumed',
  async (t) => {
    const { challengeId, nonce } = await started(fixture)
    const outcomes = await race(() => agents.completeAgentRegistration({ challengeId, nonce }))
    const tags = outcomes.map(({ tag }) => tag)
    t.is(tags.filter((tag) => tag === 'registered').length, 1)
    t.is(tags.filter((tag) => tag === 'challenge_consumed').length, RACERS - 1)
  },
)

test.serial('of 50 completes of two challenges for one key one registers', async (t) => {
  const first = await started(fixture)
  const message = {
    kind: 'agent',
    registration: first.registration,
    tenant: { tenantId: controlPlane.id },
  } as const
  const second = await agents.startAgentRegistration(message)
  if (second.tag !== 'started') return t.fail(second.tag)
  const challenges = [
    { challengeId: first.challengeId, nonce: first.nonce },
    { challengeId: second.challengeId, nonce: nonceFor(second) },
  ]
  const outcomes = await race((index) => agents.completeAgentRegistration(challenges[index % 2]!))
  t.is(outcomes.filter(({ tag }) => tag === 'registered').length, 1)
})

test.serial(
  'of 50 completes of one workspace one provisions, and one password is hashed',
  async (t) => {
    const { challengeId, nonce } = await started(fixture, 'workspace')
    const hashedBefore = fixture.hashed.length
    const outcomes = await race(() =>
      workspaces.completeWorkspaceBootstrap({
        challengeId,
        nonce,
        organizationName: 'Raced',
        redirectUris: [],
        issueOperatorInvite: false,
        framework: 'generic',
        network: null,
      }),
    )
    const tags = outcomes.map(({ tag }) => tag)
    t.is(tags.filter((tag) => tag === 'provisioned').length, 1)
    t.is(tags.filter((tag) => tag === 'challenge_consumed').length, RACERS - 1)
    t.is(fixture.hashed.length - hashedBefore, 1)
    const rows = await sql(database)`select from organizations where name = 'Raced'`
    t.is(rows.length, 1)
  },
)

test.serial('of 50 completions and verifications over two processes one each wins', async (t) => {
  const processes = [fixture, fixture.sibling()]
  const at = (index: number) => processes[index % 2]!
  const { key, challengeId, nonce } = await started(fixture, 'workspace')
  const made = await race((index) =>
    at(index).workspaces.completeWorkspaceBootstrap({
      challengeId,
      nonce,
      organizationName: 'Two Processes',
      redirectUris: [],
      issueOperatorInvite: false,
      framework: 'generic',
      network: null,
    }),
  )
  const tags = made.map(({ tag }) => tag)
  t.is(tags.filter((tag) => tag === 'provisioned').length, 1)
  t.is(tags.filter((tag) => tag === 'challenge_consumed').length, RACERS - 1)
  const named = { by: 'key_id', value: key.fingerprint } as const
  const login = await agents.challengeAgent({ agent: named, tenant: {} })
  if (login.tag !== 'challenged') return t.fail(login.tag)
  const signature = key.signChallenge(login.payload)
  const verified = await race((index) =>
    at(index).agents.verifyAgent({
      challengeId: login.challengeId,
      signature,
      address: '192.0.2.1',
      dpop: null,
    }),
  )
  t.is(verified.filter(({ tag }) => tag === 'verified').length, 1)
  t.is(verified.filter(({ tag }) => tag === 'invalid_grant').length, RACERS - 1)
})

test.serial('of 25 wrong proofs over two processes exactly ten count', async (t) => {
  const processes = [fixture, fixture.sibling()]
  const { challengeId, nonce, outcome } = await started(fixture)
  const wrong = nonceFor(outcome, 'invalid')
  await Promise.all(
    Array.from({ length: 25 }, (_, index) =>
      processes[index % 2]!.agents.completeAgentRegistration({ challengeId, nonce: wrong }),
    ),
  )
  const [row] = await sql<{ invalid_proofs: number; status: string }>(database)`
    select invalid_proofs, status from pow_challenges where id = ${challengeId}`
  t.deepEqual(row, { invalid_proofs: 10, status: 'expired' })
  for (const { agents } of processes) {
    const late = await agents.completeAgentRegistration({ challengeId, nonce })
    t.is(late.tag, 'challenge_expired')
  }
})

test.serial('workspaces of the same name created concurrently get different slugs', async (t) => {
  const challenges = await Promise.all(
    Array.from({ length: 12 }, () => started(fixture, 'workspace')),
  )
  const outcomes = await Promise.all(
    challenges.map(({ challengeId, nonce }) =>
      workspaces.completeWorkspaceBootstrap({
        challengeId,
        nonce,
        organizationName: 'Same Name',
        redirectUris: [],
        issueOperatorInvite: false,
        framework: 'generic',
        network: null,
      }),
    ),
  )
  const slugs = outcomes.map((outcome) =>
    outcome.tag === 'provisioned' ? outcome.organization.slug : outcome.tag,
  )
  t.is(new Set(slugs).size, slugs.length)
})

const count = (tenantId: string, table: string) =>
  database.tenant(tenantId, async (tx) => {
    const { rows } = await tx.query<{ count: number }>({
      name: `test.count_${table}`,
      text: `select count(*)::int as count from ${table}`,
    })
    return rows[0]?.count
  })

test('a transaction of one tenant sees that tenant, its organization and its users', async (t) => {
  const first = await workspace(fixture, { organizationName: 'First', issueOperatorInvite: true })
  await workspace(fixture, { organizationName: 'Second', issueOperatorInvite: true })
  for (const [table, seen] of [
    ['tenants', 1],
    ['organizations', 1],
    ['organization_members', 2],
    ['tenant_users', 1],
    ['operator_invites', 1],
    ['applications', 1],
    // Agents of a workspace are registered in the control plane.
    ['agents', 0],
    ['agent_keys', 0],
    ['agent_anchors', 0],
    ['pow_challenges', 0],
    ['accounts', 0],
  ] as const) {
    t.is(await count(first.tenant.id, table), seen, table)
  }
})

test('the control plane sees its agents, and no organization', async (t) => {
  await workspace(fixture)
  t.true((await count(controlPlane.id, 'agents'))! > 0)
  t.is(await count(controlPlane.id, 'organizations'), 0)
  t.is(await count(controlPlane.id, 'tenants'), 1)
  t.is(await count(controlPlane.id, 'accounts'), 0)
})

test('a transaction of one tenant finds nothing of another by its id', async (t) => {
  const first = await workspace(fixture)
  const second = await workspace(fixture)
  const found = await database.tenant(first.tenant.id, (tx) => findTenant(tx, second.tenant.id))
  t.is(found, undefined)
  const invite = await database.tenant(first.tenant.id, (tx) =>
    findOperatorInvite(tx, new Uint8Array(32)),
  )
  t.is(invite, undefined)
})

for (const [title, text] of [
  ['an organization', `insert into organizations values ($1, 'X', 'xxx', 'active', now(), now())`],
  [
    'an account',
    `insert into accounts (id, email, email_key, created_at, updated_at)
     values ($1, 'a@x.test', 'a@x.test', now(), now())`,
  ],
  [
    'an agent of another tenant',
    `insert into agents (tenant_id, id, name, scopes, created_at, updated_at)
     values ($1, $1, 'X', '{}', now(), now())`,
  ],
] as const) {
  test(`a transaction of one tenant cannot write ${title}`, async (t) => {
    const { tenant } = await workspace(fixture)
    const name = `test.write_${title.replaceAll(' ', '_')}`
    const values = [crypto.randomUUID()]
    const error = await t.throwsAsync(
      database.tenant(tenant.id, (tx) => tx.query({ name, text, values })),
    )
    t.regex(error?.message ?? '', /row-level security/)
  })
}
