/** The default tenant of the services of the profile `single`. */
import { ONLY_SLUG } from '../fleet/profiles.js'
import type { TestService } from '../service.js'
import { sql } from '../storage/sql.js'
import { bootstrapped } from './person.js'

/** Makes it, unless another file has. */
export async function onlyTenant(running: TestService): Promise<{ readonly tenantId: string }> {
  const named = () =>
    sql<{ tenantId: string }>(running)`
      select id as "tenantId" from tenants where slug = ${ONLY_SLUG}`
  if ((await named()).length === 0) {
    const { tenantId } = await bootstrapped(running)
    const text = 'update tenants set slug = $2 where id = $1'
    // Two files that name theirs at the same time: the second one fails.
    await sql(running, text, [tenantId, ONLY_SLUG]).catch(() => undefined)
  }
  const [tenant] = await named()
  if (tenant === undefined) throw new Error('there is no default tenant')
  return tenant
}
