/** Numbers all recorded events, so that a test can read the tables of events immediately. The service does it within milliseconds. */
import { hasMore, numberWaiting } from '../../../storage/platform/event-numbers.js'
import type { Database } from '../../../storage/platform/sql.js'

export async function numberAll(database: Pick<Database, 'system'>): Promise<void> {
  for (;;) {
    const { tenants, next } = await database.system((tx) => numberWaiting(tx))
    const failed = tenants.find(({ failure }) => failure !== null && failure !== 'locked')
    if (failed !== undefined) throw new Error(`${failed.tenantId}: ${failed.failure}`)
    if (next === undefined && !tenants.some(hasMore)) return
  }
}
