/** Which connections a process opens: pools by plane and purpose, and what they add up to. */
import type { PoolConfig } from 'pg'
import { isUnixSocket, turnsTlsOff } from './tls-mode.js'

export type Plane = 'all' | 'auth' | 'control' | 'async'

/** What the pools read of the section [database] (interface.md, Deployment configuration, 5). */
export interface PoolSettings extends PlanePoolSettings {
  readonly max_connections: number
  readonly min_connections: number
  readonly identity_max_connections: number
  readonly connect_timeout_secs: number
  readonly idle_timeout_secs: number
  readonly max_lifetime_secs: number
  readonly statement_cache_capacity: number
  readonly test_before_acquire: boolean
  readonly statement_timeout_secs: number
  readonly background_statement_timeout_secs: number
  readonly idle_in_transaction_timeout_secs: number
  readonly maintenance_statement_timeout_secs: number
  readonly require_ssl: boolean
  readonly auth_pool?: PlanePoolSettings | undefined
  readonly control_pool?: PlanePoolSettings | undefined
  readonly async_pool?: PlanePoolSettings | undefined
}

interface PlanePoolSettings {
  readonly max_connections?: number | undefined
  readonly min_connections?: number | undefined
  readonly identity_max_connections?: number | undefined
}

/** Every URL with its fallbacks applied (decisions.md section 23, database URLs). */
export interface PoolUrls {
  readonly runtime: string
  readonly identity: string
  readonly listener: string
  readonly auth: string
  readonly control: string
  readonly async: string
  readonly maintenance: string
}

export interface PoolPlan {
  readonly name: 'identity' | 'plane' | 'maintenance'
  readonly url: string
  readonly max: number
  readonly min: number
  readonly statementTimeoutMs: number
}

/** Maintenance runs a statement at a time; the second is for looking in meanwhile. */
const MAINTENANCE_CONNECTIONS = 2
const LISTENER_CONNECTIONS = 1

/** The pools of a plane. `all` is served by the runtime URL and the base sizes. */
export function planPools(settings: PoolSettings, urls: PoolUrls, plane: Plane): PoolPlan[] {
  const own = plane === 'all' ? undefined : settings[`${plane}_pool`]
  const max = own?.max_connections ?? settings.max_connections
  const min = Math.min(own?.min_connections ?? settings.min_connections, max)
  return [
    {
      name: 'identity',
      url: urls.identity,
      max: own?.identity_max_connections ?? settings.identity_max_connections,
      min: 0,
      statementTimeoutMs: settings.statement_timeout_secs * 1000,
    },
    {
      name: 'plane',
      url: plane === 'all' ? urls.runtime : urls[plane],
      max,
      min,
      statementTimeoutMs: settings.statement_timeout_secs * 1000,
    },
    {
      name: 'maintenance',
      url: urls.maintenance,
      max: MAINTENANCE_CONNECTIONS,
      min: 0,
      statementTimeoutMs: settings.maintenance_statement_timeout_secs * 1000,
    },
  ]
}

export interface ConnectionBudget {
  readonly identity: number
  readonly plane: number
  readonly maintenance: number
  readonly listener: number
  readonly total: number
}

/** The most connections one process of the plane opens; times its processes, it must fit. */
export function connectionBudget(settings: PoolSettings, plane: Plane): ConnectionBudget {
  const nowhere = ''
  const urls = {
    runtime: nowhere,
    identity: nowhere,
    listener: nowhere,
    auth: nowhere,
    control: nowhere,
    async: nowhere,
    maintenance: nowhere,
  }
  const sizes = Object.fromEntries(
    planPools(settings, urls, plane).map(({ name, max }) => [name, max]),
  ) as Record<PoolPlan['name'], number>
  const listener = LISTENER_CONNECTIONS
  return { ...sizes, listener, total: sizes.identity + sizes.plane + sizes.maintenance + listener }
}

/**
 * How many background transactions may run on the plane's pool at once. Requests go first: outside
 * the async plane, where all work is background, sweeps and timers get a quarter of the pool.
 */
export function backgroundShare(max: number, plane: Plane): number {
  return plane === 'async' ? max : Math.max(1, Math.floor(max / 4))
}

/**
 * How many connections of a pool the transactions of one tenant may hold at once: what is left is for
 * the other tenants, however long those transactions take.
 */
export function tenantConnections(max: number): number {
  return Math.max(1, max - Math.ceil(max / 4))
}

/** The options of one connection. Time limits are set as the connection starts, for all its statements. */
export function connectionOptions(
  settings: PoolSettings,
  url: string,
  statementTimeoutMs: number,
  applicationName: string,
): PoolConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    keepAlive: true,
    connectionTimeoutMillis: settings.connect_timeout_secs * 1000,
    // Zero means no limit, for pg as for PostgreSQL.
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: settings.idle_in_transaction_timeout_secs * 1000,
    ...tlsOptions(url, settings.require_ssl),
  }
}

/**
 * With `require_ssl` the certificate is verified, unless the URL's own sslmode says otherwise. A
 * unix socket has no TLS and crosses no network.
 * @throws when `require_ssl` meets a URL that turns TLS off.
 */
export function tlsOptions(url: string, required: boolean): Pick<PoolConfig, 'ssl'> {
  if (!required) return {}
  if (isUnixSocket(url)) return {}
  const mode = new URL(url).searchParams.get('sslmode')
  if (mode === null) return { ssl: true }
  if (turnsTlsOff(url)) {
    throw new Error(`database.require_ssl is true, but a database URL says sslmode=${mode}`)
  }
  return {}
}

/** How many connections the server gives to roles that are not superusers, for all processes. */
export async function serverConnectionLimit(database: {
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>
}): Promise<number> {
  const { rows } = await database.query(
    `select current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int as room`,
  )
  return rows[0]?.['room'] as number
}
