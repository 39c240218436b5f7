/** The open resources of one process, from which its actors are wired. */
import type { CaughtMail } from '../../actors/operations/mail/caught-mail.js'
import type { ProcessReport, ProcessState } from '../../actors/operations/health/actor.js'
import type { Coordination } from '../../storage/platform/coordination/port.js'
import type { OpenDatabase } from '../../storage/platform/database.js'
import type { Kms } from '../../storage/platform/kms/kms.js'
import type { TenantSealer } from '../../storage/platform/sealing/seal.js'
import type { Clock } from '../kernel/clock.js'
import type { Logger } from '../kernel/log.js'
import type { Metrics } from '../kernel/metrics/metrics.js'
import type { Random } from '../kernel/random.js'
import type { Settings } from './configuration/settings.js'

/** Everything that is open before the actors start. */
export interface ProcessResources {
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
  readonly report: ProcessReport
  /** Keeps sent mail for /dev/mail. Absent: it is not kept. */
  readonly caughtMail?: CaughtMail | undefined
}
