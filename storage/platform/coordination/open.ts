/** Opens the driver of deployment.coordination_backend. */
import type { Logger } from '../../../runtime/kernel/log.js'
import type { OpenDatabase } from '../database.js'
import type { MemcachedSettings, RedisSettings } from '../settings.js'
import { memcachedCoordination } from './memcached.js'
import type { Coordination } from './port.js'
import { postgresCoordination } from './postgres.js'

interface CoordinationOptions {
  readonly backend: 'postgres' | 'redis' | 'memcached'
  readonly database: Pick<OpenDatabase, 'single'>
  readonly redis: RedisSettings
  readonly memcached: MemcachedSettings
  readonly log: Logger
}

/** @throws if the backend is unreachable or has no address. */
export async function openCoordination(options: CoordinationOptions): Promise<Coordination> {
  const { backend, database, redis, memcached, log } = options
  if (backend === 'postgres') return postgresCoordination(database)
  if (backend === 'redis') {
    // Only this backend loads the client: it takes a tenth of a second of each start.
    const { redisCoordination } = await import('./redis.js')
    return redisCoordination({ settings: redis, log })
  }
  if (memcached.address === undefined) throw new Error('memcached.address is not set')
  return memcachedCoordination({
    address: memcached.address,
    poolSize: memcached.pool_size,
    maxIdle: memcached.max_idle,
    connectTimeoutMs: memcached.connect_timeout_secs * 1000,
    commandTimeoutMs: memcached.command_timeout_secs * 1000,
    log,
  })
}
