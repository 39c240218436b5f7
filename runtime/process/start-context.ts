/** The context of a start: its options, and what its steps have opened so far. */
import type { CaughtMail } from '../../actors/operations/mail/caught-mail.js'
import type { Gateway } from '../../gateway/gateway.js'
import type { Coordination } from '../../storage/platform/coordination/port.js'
import type { OpenDatabase } from '../../storage/platform/database.js'
import type { Kms } from '../../storage/platform/kms/kms.js'
import type { PoolUrls } from '../../storage/platform/pool-plan.js'
import type { Clock } from '../kernel/clock.js'
import type { Environment } from '../kernel/config/environment.js'
import type { Failure } from '../kernel/config/outcome.js'
import type { Logger } from '../kernel/log.js'
import type { ActorStats, Metrics } from '../kernel/metrics/metrics.js'
import type { Random } from '../kernel/random.js'
import type { System } from '../kernel/system.js'
import type { LoadedSettings } from './configuration/load-settings.js'
import type { Settings } from './configuration/settings.js'

export interface StartOptions {
  readonly environment: Environment
  /** Absolute. */
  readonly cwd: string
  readonly uid?: number | undefined
  readonly log: Logger
  /** Called with the settings before anything is logged. */
  readonly onSettings?: ((settings: Settings) => void) | undefined
  /** When aborted, the start is given up after the current step and undone. */
  readonly signal?: AbortSignal | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
  /** Makes long documents before the process is ready. Default: at the first request. */
  readonly isWarm?: boolean | undefined
  /** Copies the messages of inline asks, so that no code relies on sharing them. */
  readonly cloneMessages?: boolean | undefined
}

/** A refused start, with a cause that an operator can fix. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
  /** Set when the configuration is invalid. */
  readonly failures: readonly Failure[] | undefined

  constructor(message: string, options: { failures?: readonly Failure[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.failures = options.failures
  }
}

/** Most connections in the pool of the async plane's thread. */
export const THREAD_POOL_CONNECTIONS = 4

/** How another thread of this process reaches the same keys. */
export type KmsAccess = {
  readonly socketPath: string
  readonly serverPublicKeyPath: string
  readonly clientPrivateKeyPath: string
}

/** What is open so far. A step reads what earlier steps added. */
export interface StartContext {
  readonly options: StartOptions
  readonly loaded: LoadedSettings
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly state: { started: boolean; stopping: boolean }
  /** Gateway threads of this process, the main thread included. */
  threads: number
  urls?: PoolUrls
  embedded?: boolean
  /** The master keys are stored in the data directory. */
  hasLocalKeys?: boolean
  database?: OpenDatabase
  kms?: Kms
  kmsAccess?: KmsAccess
  coordination?: Coordination
  caughtMail?: CaughtMail
  system?: System
  gateway?: Gateway
  /** Has the egress thread listen on a port. Undefined where it does not. */
  openEgressAddress?: (port: number) => Promise<void>
  url?: string
  /** The port of the listener. */
  port?: number
  /** The gateway threads besides the main thread. */
  gatewayThreads?: {
    unready(): readonly string[]
    /** As of the last heartbeat. */
    stats(): readonly ActorStats[]
  }
  controlPlaneTenantId?: string
}

/** Undoes a step. False when it took longer than allowed. */
export type Undo = (withinMs: number) => Promise<boolean | void>
/** Opens a resource and returns its undo. */
export type Step = readonly [name: string, run: (context: StartContext) => Promise<Undo | void>]
