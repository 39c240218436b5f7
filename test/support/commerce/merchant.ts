/** A selling tenant, inserted directly into the database. */
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { insertOrganization } from '../../../storage/identity/organizations.js'
import { insertPrice, insertProduct } from '../../../storage/commerce/products.js'
import type { Database } from '../../../storage/platform/sql.js'
import { insertTenant } from '../../../storage/identity/tenants.js'

const random = systemRandom(systemClock)

export type Merchant = {
  readonly tenantId: string
  readonly productId: string
  readonly priceId: string
}

export async function merchantIn(
  database: Database,
  price: { amountMinor?: number; interval?: 'day' | 'week' | 'month' | 'year' } = {},
): Promise<Merchant> {
  const [tenantId, organizationId] = [randomUUID(), randomUUID()]
  const productId = random.uuid()
  const priceId = random.uuid()
  const createdAt = systemClock.now()
  const slug = `m-${tenantId.slice(0, 8)}`
  await database.system(async (tx) => {
    await insertOrganization(tx, { id: organizationId, name: slug, slug, createdAt, network: null })
    await insertTenant(tx, {
      id: tenantId,
      organizationId,
      slug,
      name: slug,
      environment: 'sandbox',
      admitAgents: true,
      createdAt,
    })
    await insertProduct(tx, { id: productId, tenantId, name: 'Tea', createdAt })
    await insertPrice(tx, {
      id: priceId,
      tenantId,
      productId,
      amountMinor: price.amountMinor ?? 1999,
      currency: 'USD',
      interval: price.interval ?? null,
      intervalCount: price.interval === undefined ? null : 1,
      createdAt,
    })
  })
  return { tenantId, productId, priceId }
}
