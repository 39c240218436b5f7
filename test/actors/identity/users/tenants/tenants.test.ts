import test from 'ava'
import { systemClock } from '../../../../../runtime/kernel/clock.js'
import { heldClock } from '../../../../support/held-clock.js'
import { spawnInline } from '../../../../../runtime/kernel/inline.js'
import { systemRandom } from '../../../../../runtime/kernel/random.js'
import { tenantsActor } from '../../../../../actors/identity/users/tenants/actor.js'
import { TENANTS_CHANNEL } from '../../../../../actors/identity/users/tenants/protocol.js'
import { freshDatabase } from '../../../../support/storage/database.js'
import { sql } from '../../../../support/storage/sql.js'

const fresh = await freshDatabase()
test.after.always(() => fresh.drop())
const { database } = fresh

function spawn(clock = systemClock, defaultTenantSlug?: string) {
  const settings = {
    baseDomain: 'svc.example',
    issuerHost: 'auth.svc.example',
    defaultTenantSlug,
  }
  const random = systemRandom(systemClock)
  const needs = { database, clock, random, settings }
  return spawnInline(tenantsActor, needs, { cloneMessages: true }).ref
}

async function insertTenant(slug: string): Promise<string> {
  const id = crypto.randomUUID()
  await sql(
    database,
    `with o as (insert into organizations values ($1, $2, $2, 'active', now(), now()))
     select $1::uuid`,
    [id, slug],
  )
  await sql(
    database,
    `insert into tenants (id, organization_id, name, slug, environment, admit_agents, created_at,
       updated_at) values ($1, $1, $2, $2, 'sandbox', true, now(), now())`,
    [id, slug],
  )
  return id
}

test.serial('ten processes that start concurrently agree on the control plane', async (t) => {
  const found = await Promise.all(Array.from({ length: 10 }, () => spawn().ensureControlPlane({})))
  const ids = new Set(found.map(({ tenant }) => tenant.id))
  t.is(ids.size, 1)
  const [first] = found
  t.like(first?.tenant, {
    slug: 'control-plane',
    controlPlane: true,
    organizationId: null,
    admitAgents: true,
    directAgentRegistration: false,
  })
  t.deepEqual(await spawn().ensureControlPlane({}), first)
})

test.serial('a tenant is found by id, slug and host', async (t) => {
  const id = await insertTenant('found')
  const tenants = spawn()
  for (const [selector, by] of [
    [{ tenantId: id }, 'explicit'],
    [{ tenantSlug: 'found' }, 'explicit'],
    [{ host: 'found.svc.example' }, 'host'],
  ] as const) {
    t.like(await tenants.resolve(selector), { tag: 'resolved', by, tenant: { id } })
  }
})

test.serial('an unknown default slug is an unknown tenant, not the control plane', async (t) => {
  t.deepEqual(await spawn(systemClock, 'missing').resolve({}), { tag: 'unknown_tenant' })
})

test.serial(
  'a change is seen immediately when notified, and soon when the notification is lost',
  async (t) => {
    const id = await insertTenant('changing')
    const clock = heldClock(new Date())
    const tenants = spawn(clock)
    const admits = async () => {
      const resolved = await tenants.resolve({ tenantId: id })
      return resolved.tag === 'resolved' && resolved.tenant.admitAgents
    }
    const admit = (value: boolean) =>
      sql(database, `update tenants set admit_agents = $2 where id = $1`, [id, value])
    t.true(await admits())
    await admit(false)
    t.true(await admits(), 'remembered')
    tenants.send('forget', { tenantId: id })
    t.false(await admits(), 'told')
    await admit(true)
    t.false(await admits(), 'remembered')
    clock.advance(10_000)
    t.true(await admits(), 'too old')
  },
)

test.serial('the database announces every tenant that changes', async (t) => {
  const heard: string[] = []
  const end = await database.listener.listen(TENANTS_CHANNEL, {
    notified: (id) => void heard.push(id),
  })
  const id = await insertTenant('announced')
  while (!heard.includes(id)) await new Promise((resolve) => setTimeout(resolve, 10))
  end()
  t.true(heard.includes(id))
})

test.serial('the whole cache can be invalidated', async (t) => {
  const id = await insertTenant('forgotten')
  const tenants = spawn()
  await tenants.resolve({ tenantId: id })
  await sql(database, `update tenants set status = 'suspended' where id = $1`, [id])
  tenants.send('forget', { tenantId: null })
  t.like(await tenants.resolve({ tenantId: id }), { tenant: { status: 'suspended' } })
})

test.serial('a slug that moves to another tenant resolves to it', async (t) => {
  const first = await insertTenant('moving')
  const second = await insertTenant('waiting')
  const tenants = spawn()
  t.like(await tenants.resolve({ tenantSlug: 'moving' }), { tenant: { id: first } })
  await sql(database, `update tenants set slug = 'moved' where id = $1`, [first])
  await sql(database, `update tenants set slug = 'moving' where id = $1`, [second])
  tenants.send('forget', { tenantId: first })
  tenants.send('forget', { tenantId: second })
  t.like(await tenants.resolve({ tenantSlug: 'moving' }), { tenant: { id: second } })
})
