/** Settings of storage: [database], [redis] and [memcached]. */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  notes,
  optionalCount,
  secret,
  text,
  timerSeconds,
  url,
} from '../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../runtime/kernel/config/section.js'
import { turnsTlsOff } from './tls-mode.js'

const databaseUrl = () =>
  url(
    ['postgres:', 'postgresql:'],
    'a postgres:// or postgresql:// URL',
    'postgres://svc@127.0.0.1:5432/svc',
  )

const planePool = (plane: string) =>
  z
    .object({
      max_connections: optionalCount(1, 10_000, 20).describe('Overrides max_connections.'),
      min_connections: optionalCount(0, 10_000, 2).describe('Overrides min_connections.'),
      identity_max_connections: optionalCount(1, 10_000, 10).describe(
        'Overrides identity_max_connections.',
      ),
    })
    .describe(`Pool sizes of the ${plane} plane.`)

const URL_KEYS = [
  'url',
  'identity_url',
  'listener_url',
  'auth_url',
  'control_url',
  'async_url',
  'migration_url',
  'maintenance_url',
] as const

type UrlsAndTls = { readonly require_ssl: boolean } & {
  readonly [key in (typeof URL_KEYS)[number]]?: string | undefined
}

export const databaseSettings = section(
  'database',
  {
    url: databaseUrl()
      .optional()
      .describe('The runtime database. Without it the embedded PostgreSQL.'),
    identity_url: databaseUrl().optional().describe('Identity pool. Required in production.'),
    listener_url: databaseUrl()
      .optional()
      .describe('Session-pooled, for LISTEN. Required in production.'),
    auth_url: databaseUrl().optional().describe('Runtime URL of the auth plane.'),
    control_url: databaseUrl().optional().describe('Runtime URL of the control plane.'),
    async_url: databaseUrl().optional().describe('Runtime URL of the async plane.'),
    migration_url: databaseUrl().optional().describe('Used by `svc migrate` only.'),
    maintenance_url: databaseUrl().optional().describe('Used by `svc backup` and `svc seed` only.'),
    max_connections: count(20, 1, 10_000).describe('Maximum of connections of the runtime pool.'),
    min_connections: count(2, 0, 10_000).describe('Minimum of connections of the runtime pool.'),
    identity_max_connections: count(10, 1, 10_000).describe(
      'Maximum of connections of the identity pool.',
    ),
    connect_timeout_secs: timerSeconds(5).describe('Time limit for opening a connection.'),
    idle_timeout_secs: timerSeconds(600).describe(
      'Idle connections above the minimum are closed after this time.',
    ),
    max_lifetime_secs: timerSeconds(1800).describe('Maximum age of a connection.'),
    statement_cache_capacity: count(100, 1, 2048).describe('Prepared statements per connection.'),
    prepared_statements: z
      .enum(['named', 'unnamed'])
      .default('named')
      .describe(
        'unnamed works through a pooler in transaction mode, such as PgBouncer. Time limits are then set in each transaction.',
      ),
    announce: z
      .enum(['notify', 'table'])
      .default('notify')
      .describe(
        'How processes hear of changes: by NOTIFY, or from a table that each process reads every 250 ms.',
      ),
    test_before_acquire: flag(true).describe('Test idle connections before use.'),
    statement_timeout_secs: timerSeconds(10).describe('Time limit of a statement of a request.'),
    background_statement_timeout_secs: timerSeconds(60).describe(
      'Time limit of a statement of background work.',
    ),
    idle_in_transaction_timeout_secs: timerSeconds(30).describe(
      'Idle transactions are terminated after this time.',
    ),
    maintenance_statement_timeout_secs: timerSeconds(600).describe(
      'Time limit of a statement of `svc seed`.',
    ),
    require_ssl: flag(false).describe('Refuse connections without TLS. Required in production.'),
    auth_pool: planePool('auth'),
    control_pool: planePool('control'),
    async_pool: planePool('async'),
  },
  {
    about: 'PostgreSQL. Without a URL, and outside production, an embedded PostgreSQL is used.',
    rules: [
      ...URL_KEYS.map((key, at) => ({
        keys: [key, 'require_ssl'] as [string, string],
        holds: (settings: UrlsAndTls) =>
          !settings.require_ssl ||
          !turnsTlsOff(settings[key]) ||
          // Report a URL once, not for each setting that falls back to it.
          URL_KEYS.slice(0, at).some((other) => settings[other] === settings[key]),
        rule: 'must not disable TLS by sslmode while database.require_ssl is true',
        fix: 'set sslmode to verify-full, or remove it',
      })),
      {
        keys: ['listener_url', 'url', 'prepared_statements', 'announce'],
        holds: ({ listener_url, url, prepared_statements, announce }) =>
          prepared_statements === 'named' || announce === 'table' || listener_url !== url,
        rule: 'differ from database.url while database.prepared_statements is "unnamed", because LISTEN needs a session',
        fix: 'set listener_url to a direct connection, or announce to "table"',
      },
      {
        keys: ['migration_url', 'url', 'prepared_statements'],
        holds: ({ migration_url, url, prepared_statements }) =>
          prepared_statements === 'named' || url === undefined || migration_url !== url,
        rule: 'differ from database.url while database.prepared_statements is "unnamed", because migrations need a session',
        fix: 'set migration_url to a direct connection',
      },
      ...URL_KEYS.map((key, at) => ({
        keys: [key] as [string],
        holds: (settings: UrlsAndTls) =>
          sessionAttributes(settings[key]) === 'read-write' ||
          URL_KEYS.slice(0, at).some((other) => settings[other] === settings[key]),
        rule: 'reach a primary: target_session_attrs must be read-write, which is the default',
        fix: 'set target_session_attrs to read-write, or remove it',
      })),
      {
        keys: ['min_connections', 'max_connections'],
        holds: ({ min_connections, max_connections }) => min_connections <= max_connections,
        rule: 'be at most database.max_connections',
        fix: 'lower min_connections or raise max_connections',
      },
      ...(['auth_pool', 'control_pool', 'async_pool'] as const).map((pool) => ({
        keys: [
          `${pool}.min_connections`,
          `${pool}.max_connections`,
          'min_connections',
          'max_connections',
        ] as [string, ...string[]],
        holds: (settings: PoolSizes) => poolFits(settings, settings[pool]),
        rule: `be at most the max_connections of database.${pool}`,
        fix: `lower ${pool}.min_connections or raise ${pool}.max_connections`,
      })),
    ],
  },
)

/** `target_session_attrs` of a URL. Each connection is checked to reach a primary. */
function sessionAttributes(url: string | undefined): string {
  if (url === undefined) return 'read-write'
  return new URL(url).searchParams.get('target_session_attrs') ?? 'read-write'
}

type PlanePool = {
  readonly min_connections?: number | undefined
  readonly max_connections?: number | undefined
}
type PoolSizes = {
  readonly min_connections: number
  readonly max_connections: number
  readonly auth_pool: PlanePool
  readonly control_pool: PlanePool
  readonly async_pool: PlanePool
}

/** True if the effective sizes of the pool are valid. */
function poolFits(sizes: PoolSizes, pool: PlanePool): boolean {
  if (pool.min_connections === undefined && pool.max_connections === undefined) return true
  const least = pool.min_connections ?? sizes.min_connections
  return least <= (pool.max_connections ?? sizes.max_connections)
}

const HOST_AND_PORT = /^(\[[0-9a-fA-F:.]+\]|[^\s:/,@?#[\]]+):[0-9]{1,5}$/

export const redisSettings = section(
  'redis',
  {
    mode: z
      .enum(['single', 'cluster', 'sentinel'])
      .default('single')
      .describe(
        'single: the server of redis.url. cluster: a Redis Cluster, of which redis.nodes lists some. sentinel: the primary that the Sentinels of redis.nodes name.',
      ),
    url: url(['redis:', 'rediss:'], 'a redis:// or rediss:// URL', 'redis://127.0.0.1:6379')
      .optional()
      .describe('Required when deployment.coordination_backend is redis and redis.mode is single.'),
    nodes: list(z.string().regex(HOST_AND_PORT))
      .register(notes, {
        words: 'a list of host:port',
        example: ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379'],
      })
      .default([])
      .describe('Nodes of the cluster, or all Sentinels. Required unless redis.mode is single.'),
    master_name: z
      .string()
      .min(1)
      .default('mymaster')
      .describe('The name under which Sentinel knows the primary (sentinel monitor).'),
    username: text('svc').optional().describe('User of the cluster or the primary (ACL).'),
    password: secret()
      .optional()
      .describe('Password of the cluster or the primary. For single it is in redis.url.'),
    sentinel_username: text('svc').optional().describe('User of the Sentinels.'),
    sentinel_password: secret().optional().describe('Password of the Sentinels.'),
    tls: flag(false).describe('TLS to all of redis.nodes and to the primary.'),
    pool_size: count(10, 1, 1000).describe(
      'Connections to one server or to the primary. A cluster gets one to each primary.',
    ),
    connect_timeout_secs: timerSeconds(2).describe('Time limit for opening a connection.'),
    command_timeout_secs: timerSeconds(2).describe(
      'Time limit of a command. Each Sentinel has three quarters of it for its answer.',
    ),
  },
  { about: 'Used when deployment.coordination_backend is "redis".' },
)

export const memcachedSettings = section(
  'memcached',
  {
    address: z
      .string()
      .regex(HOST_AND_PORT)
      .register(notes, { words: 'host:port', example: '127.0.0.1:11211' })
      .optional()
      .describe('host:port. Required when deployment.coordination_backend is memcached.'),
    pool_size: count(10, 1, 1000).describe('Connections.'),
    max_idle: count(10, 0, 1000).describe('Idle connections kept.'),
    connect_timeout_secs: timerSeconds(2).describe('Time limit for opening a connection.'),
    command_timeout_secs: timerSeconds(2).describe('Time limit of a command.'),
  },
  { about: 'Used when deployment.coordination_backend is "memcached".' },
)

type DatabaseSettings = SettingsOf<typeof databaseSettings>
export type RedisSettings = SettingsOf<typeof redisSettings>
export type MemcachedSettings = SettingsOf<typeof memcachedSettings>

export type DatabaseUrls = {
  readonly runtime: string
  readonly identity: string
  readonly listener: string
  readonly auth: string
  readonly control: string
  readonly async: string
  readonly migration: string
  readonly maintenance: string
}

/** The URLs with their fallbacks (docs/reference/configuration.md), or undefined if there is no URL. */
export function databaseUrls(
  settings: DatabaseSettings,
  embeddedUrl?: string,
): DatabaseUrls | undefined {
  const runtime = settings.url ?? embeddedUrl
  if (runtime === undefined) return undefined
  const migration = settings.migration_url ?? runtime
  return {
    runtime,
    identity: settings.identity_url ?? runtime,
    listener: settings.listener_url ?? runtime,
    auth: settings.auth_url ?? runtime,
    control: settings.control_url ?? runtime,
    async: settings.async_url ?? runtime,
    migration,
    maintenance: settings.maintenance_url ?? migration,
  }
}
