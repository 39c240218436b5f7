/** The coordination backends of a fleet. */
import { startRedisGroup } from '../service/redis-groups.js'
import { program } from '../service/program.js'
import { startMemcached, startRedis } from '../service/servers.js'

export const COORDINATIONS = [
  'postgres',
  'redis',
  'redis-cluster',
  'redis-sentinel',
  'memcached',
] as const
export type CoordinationName = (typeof COORDINATIONS)[number]

export interface CoordinationServers {
  readonly environment: Readonly<Record<string, string>>
  /** Kills what answers now. Absent where the database coordinates. */
  readonly kill?: (() => Promise<void>) | undefined
  /** Starts what was killed, where no other server takes over. */
  readonly restart?: (() => Promise<void>) | undefined
  stop(): Promise<void>
}

const BACKEND = 'SVC_DEPLOYMENT__COORDINATION_BACKEND'

/** Any key: the primary of its slot is the one to kill. */
const SOME_KEY = 'svc:once:some'

export async function startCoordination(name: CoordinationName): Promise<CoordinationServers> {
  if (name === 'postgres') return { environment: {}, stop: async () => undefined }
  if (name === 'redis-cluster' || name === 'redis-sentinel') {
    const group = await startRedisGroup(name === 'redis-cluster' ? 'cluster' : 'sentinel')
    return {
      environment: { [BACKEND]: 'redis', ...group.environment },
      kill: () => group.killPrimaryOf(SOME_KEY),
      stop: () => group.stop(),
    }
  }
  const isRedis = name === 'redis'
  const path = program(isRedis ? 'redis-server' : 'memcached')!
  const server = await (isRedis ? startRedis(path) : startMemcached(path))
  const address = `127.0.0.1:${server.port}`
  return {
    environment: isRedis
      ? { [BACKEND]: 'redis', SVC_REDIS__URL: `redis://${address}` }
      : { [BACKEND]: 'memcached', SVC_MEMCACHED__ADDRESS: address },
    kill: () => server.kill(),
    restart: () => server.restart(),
    stop: () => server.stop(),
  }
}
