import test from 'ava'
import { findOperatorInvite } from '../../../storage/identity/operator-invites.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import { identityFixture } from '../../support/identity/identity.js'
import { workspace } from '../../support/identity/workspace.js'

const resources = await identityFixture()
test.after.always(() => resources.close())
const { database, controlPlane } = resources

const count = (tenantId: string, table: string) =>
  database.tenant(tenantId, async (tx) => {
    const { rows } = await tx.query<{ count: number }>({
      name: `test.count_${table}`,
      text: `select count(*)::int as count from ${table}`,
    })
    return rows[0]?.count
  })

test('a transaction of one tenant sees that tenant, its organization and its users', async (t) => {
  const first = await workspace(resources, { organizationName: 'First', issueOperatorInvite: true })
  await workspace(resources, { organizationName: 'Second', issueOperatorInvite: true })
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
  await workspace(resources)
  t.true((await count(controlPlane.id, 'agents'))! > 0)
  t.is(await count(controlPlane.id, 'organizations'), 0)
  t.is(await count(controlPlane.id, 'tenants'), 1)
  t.is(await count(controlPlane.id, 'accounts'), 0)
})

test('a transaction of one tenant finds nothing of another by its id', async (t) => {
  const first = await workspace(resources)
  const second = await workspace(resources)
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
    const { tenant } = await workspace(resources)
    const name = `test.write_${title.replaceAll(' ', '_')}`
    const values = [crypto.randomUUID()]
    const error = await t.throwsAsync(
      database.tenant(tenant.id, (tx) => tx.query({ name, text, values })),
    )
    t.regex(error?.message ?? '', /row-level security/)
  })
}
