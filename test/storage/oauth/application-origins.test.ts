/** An origin is found among the applications of all tenants, as soon as one lists it and as long as one does. */
import test from 'ava'
import {
  deleteApplicationRow,
  insertApplication,
  originListed,
  replaceApplicationRow,
} from '../../../storage/oauth/applications.js'
import { defaultAudience } from '../../../storage/oauth/audiences.js'
import { insertOrganization } from '../../../storage/identity/organizations.js'
import { insertTenant } from '../../../storage/identity/tenants.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { freshDatabase } from '../../support/storage/database.js'

const random = systemRandom(systemClock)
const SHOP = 'https://shop.example'
const OTHER = 'https://other.example'

test('the origins of an application follow its changes', async (t) => {
  const { database } = await freshDatabase(t)
  const createdAt = new Date()
  const tenantId = random.uuid()
  const organizationId = random.uuid()
  await database.system(async (tx) => {
    await insertOrganization(tx, {
      id: organizationId,
      name: 'One',
      slug: 'one',
      createdAt,
      network: null,
    })
    const tenant = { id: tenantId, organizationId, name: 'One', slug: 'one', createdAt }
    await insertTenant(tx, { ...tenant, environment: 'sandbox', admitAgents: true })
  })
  const id = random.uuid()
  const application = { id, tenantId, name: 'Web', redirectUris: [], createdAt }
  const listed = (origin: string, client: string | null = null) =>
    database.system((tx) => originListed(tx, origin, client))
  const replaced = (allowedOrigins: string[], status: 'active' | 'disabled' = 'active') =>
    database.tenant(tenantId, (tx) =>
      replaceApplicationRow(
        tx,
        { ...application, allowedOrigins, status, updatedAt: new Date() },
        { audience: defaultAudience(id) },
      ),
    )

  await database.tenant(tenantId, (tx) =>
    insertApplication(tx, {
      ...application,
      allowedOrigins: [SHOP, SHOP],
      secretSha256: null,
      clientType: 'public',
      tokenEndpointAuthMethod: 'none',
    }),
  )
  t.true(await listed(SHOP))
  t.true(await listed(SHOP, id))
  t.true(await listed(SHOP, random.uuid()), 'no such application')
  const second = random.uuid()
  await database.tenant(tenantId, (tx) =>
    insertApplication(tx, { ...application, id: second, secretSha256: null }),
  )
  t.false(await listed(SHOP, second), 'another application')
  t.false(await listed(OTHER))

  await replaced([OTHER])
  t.deepEqual([await listed(SHOP), await listed(OTHER)], [false, true])
  await replaced([OTHER], 'disabled')
  t.false(await listed(OTHER))
  await replaced([])
  await replaced([SHOP, OTHER])
  t.deepEqual([await listed(SHOP), await listed(OTHER)], [true, true])

  await database.tenant(tenantId, (tx) => deleteApplicationRow(tx, tenantId, id))
  t.deepEqual([await listed(SHOP), await listed(OTHER)], [false, false])
})
