/** What a service needs that writes to the database. */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { Database } from '../../storage/platform/sql.js'

export type WriteNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
}
