/** A tenant whose events wait for deliveries. */
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { insertControlPlane } from '../../../storage/identity/tenants.js'
import type { Database } from '../../../storage/platform/sql.js'

const random = systemRandom(systemClock)

/** Without a subscription, no deliveries of an event are made. @returns the id of the tenant. */
export async function subscribedTenant(database: Pick<Database, 'system'>): Promise<string> {
  const tenant = random.uuid()
  await database.system(async (tx) => {
    await insertControlPlane(tx, {
      id: tenant,
      name: 'Listeners',
      slug: tenant,
      createdAt: new Date(),
    })
    await tx.query({
      name: 'test.webhook',
      text: `insert into webhooks (tenant_id, id, url, event_types, secret,
               secret_last_rotated_at, created_at, updated_at)
             values ($1, $2, 'https://example.com/', '{*}', 'x', now(), now(), now())`,
      values: [tenant, random.uuid()],
    })
  })
  return tenant
}
