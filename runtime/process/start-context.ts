/** What a start works on: the options it was given and what its steps have opened so far. */
import type { Gateway } from '../../gateway/gateway.js'
import type { Coordination } from '../../storage/platform/coordination/port.js'
import type { OpenDatabase } from '../../storage/platform/database.js'
import type { Kms } from '../../storage/platform/kms/kms.js'
import type { PoolUrls } from '../../storage/platform/pool-plan.js'
import type { Clock } from '../kernel/clock.js'
import type { Environment } from '../kernel/config/environment.js'
import type { Failure } from '../kernel/config/outcome.js'
import type { Logger } from '../kernel/log.js'
import type { Metrics } from '../kernel/metrics/metrics.js'
import type { Random } from '../kernel/random.js'
import type { System } from '../kernel/system.js'
import type { LoadedSettings } from '../configuration/load-settings.js'
import type { Settings } from '../configuration/settings.js'

export interface StartOptions {
  readonly environment: Environment
  /** Absolute. */
  readonly cwd: string
  readonly uid?: number | undefined
  readonly log: Logger
  /** Called with the settings before anything is logged. */
  readonly onSettings?: ((settings: Settings) => void) | undefined
  /** Aborted: the start is given up after the step in hand, and taken back. */
  readonly signal?: AbortSignal | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
  /** Copies the messages of inline asks, so that nothing comes to rely on sharing them. */
  readonly cloneMessages?: boolean | undefined
}

/** A start that an operator can mend. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
  /** Set when the configuration is at fault. */
  readonly failures: readonly Failure[] | undefined

  constructor(message: string, options: { failures?: readonly Failure[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.failures = options.failures
  }
}

/** Connections of the pool that the thread of the async plane opens at most. */
export const THREAD_POOL_CONNECTIONS = 4

/** How another thread of this process comes to the same keys. */
export type KmsAccess = {
  readonly socketPath: string
  readonly serverPublicKeyPath: string
  readonly clientPrivateKeyPath: string
}

/** What has been opened so far; a step reads what earlier ones put there. */
export interface StartContext {
  readonly options: StartOptions
  readonly loaded: LoadedSettings
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly state: { started: boolean; stopping: boolean }
  urls?: PoolUrls
  embedded?: boolean
  /** The master keys lie in the data directory. */
  hasLocalKeys?: boolean
  database?: OpenDatabase
  kms?: Kms
  kmsAccess?: KmsAccess
  coordination?: Coordination
  system?: System
  gateway?: Gateway
  url?: string
  controlPlaneTenantId?: string
}

/** The way back of a step; false when it took longer than it had. */
export type Undo = (withinMs: number) => Promise<boolean | void>
/** Opens something and answers with its way back. */
export type Step = readonly [name: string, run: (context: StartContext) => Promise<Undo | void>]
