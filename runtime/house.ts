/** What one process has opened, for furnishing its actors. */
import type { ProcessState } from '../actors/health/actor.js'
import type { Coordination } from '../storage/coordination/port.js'
import type { OpenDatabase } from '../storage/database.js'
import type { Kms } from '../storage/kms/kms.js'
import type { TenantSealer } from '../storage/seal.js'
import type { Clock } from './kernel/clock.js'
import type { Logger } from './kernel/log.js'
import type { Metrics } from './kernel/metrics.js'
import type { Random } from './kernel/random.js'
import type { Settings } from './settings.js'

/** Everything that has been opened by the time actors are seated. */
export interface House {
  readonly settings: Settings
  readonly database: OpenDatabase
  readonly coordination: Coordination
  readonly kms: Kms
  readonly sealer: TenantSealer
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Logger
  readonly process: ProcessState
}
