/** How a worker thread reaches the database and the keys. */
import { openKms } from '../../../storage/platform/kms/client.js'
import type { PoolSettings, PoolUrls } from '../../../storage/platform/pool-plan.js'
import type { Clock } from '../../kernel/clock.js'
import type { Logger } from '../../kernel/log.js'
import type { TelemetrySettings } from '../telemetry/settings.js'
import { type KmsAccess, THREAD_POOL_CONNECTIONS } from '../start-context.js'

/** What every worker thread of the service receives. */
export type ThreadAccess = {
  readonly database: PoolSettings
  readonly urls: PoolUrls
  readonly kms: KmsAccess
  readonly telemetry: TelemetrySettings
  readonly plane: string
}

/** A pool of few connections, whatever the plane's pool has. */
export function smallPool(settings: PoolSettings): PoolSettings {
  return {
    ...settings,
    max_connections: THREAD_POOL_CONNECTIONS,
    min_connections: 0,
    identity_max_connections: 1,
    auth_pool: undefined,
    control_pool: undefined,
    async_pool: undefined,
  }
}

export function kmsOf(access: KmsAccess, clock: Clock, log: Logger) {
  return openKms({ ...access, log, clock })
}
