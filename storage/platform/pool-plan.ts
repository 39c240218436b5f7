/** The connection pools of a process, by plane and purpose, and their total. */
import type { PoolConfig } from 'pg'
import { isUnixSocket, turnsTlsOff } from './tls-mode.js'

export type Plane = 'all' | 'auth' | 'control' | 'async'

/** The settings of [database] that concern pools. */
export interface PoolSettings extends PlanePoolSettings {
  readonly max_connections: number
  readonly min_connections: number
  readonly identity_max_connections: number
  readonly connect_timeout_secs: number
  readonly idle_timeout_secs: number
  readonly max_lifetime_secs: number
  readonly statement_cache_capacity: number
  /** Default `named`. `unnamed` works through a pooler that gives each transaction another connection. */
  readonly prepared_statements?: 'named' | 'unnamed' | undefined
  /** Default `notify`. `table` announces changes in rows instead of with NOTIFY. */
  readonly announce?: 'notify' | 'table' | undefined
  readonly test_before_acquire: boolean
  readonly statement_timeout_secs: number
  readonly background_statement_timeout_secs: number
  readonly idle_in_transaction_timeout_secs: number
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

/** The database URLs with their fallbacks. */
export interface PoolUrls {
  readonly runtime: string
  readonly identity: string
  readonly listener: string
  readonly auth: string
  readonly control: string
  readonly async: string
}

export interface PoolPlan {
  readonly name: 'identity' | 'plane'
  readonly url: string
  readonly max: number
  readonly min: number
  readonly statementTimeoutMs: number
}

const LISTENER_CONNECTIONS = 1

/** The pools of a plane. Plane `all` uses the runtime URL and the base sizes. */
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
  ]
}

/** The pools of the main thread, and the pools of each other gateway thread. */
interface DividedPools {
  readonly main: PoolSettings
  readonly other: PoolSettings
}

/** Divides the connections of a process between its gateway threads. The main thread gets the remainder. */
export function dividePools(settings: PoolSettings, plane: Plane, threads: number): DividedPools {
  if (threads === 1) return { main: settings, other: settings }
  const own = plane === 'all' ? undefined : settings[`${plane}_pool`]
  const max = own?.max_connections ?? settings.max_connections
  const min = Math.min(own?.min_connections ?? settings.min_connections, max)
  const identity = own?.identity_max_connections ?? settings.identity_max_connections
  const share = (of: number) => Math.floor(of / threads)
  const rest = (of: number) => of - share(of) * (threads - 1)
  const pools = (part: (of: number) => number): PoolSettings => ({
    ...settings,
    max_connections: part(max),
    min_connections: part(min),
    identity_max_connections: part(identity),
    auth_pool: undefined,
    control_pool: undefined,
    async_pool: undefined,
  })
  return { main: pools(rest), other: pools(share) }
}

interface ConnectionBudget {
  readonly identity: number
  readonly plane: number
  readonly listener: number
  readonly total: number
}

/** The maximum of connections of one process of the plane. The server must allow the sum of all processes. */
export function connectionBudget(settings: PoolSettings, plane: Plane): ConnectionBudget {
  const nowhere = ''
  const urls = {
    runtime: nowhere,
    identity: nowhere,
    listener: nowhere,
    auth: nowhere,
    control: nowhere,
    async: nowhere,
  }
  const sizes = Object.fromEntries(
    planPools(settings, urls, plane).map(({ name, max }) => [name, max]),
  ) as Record<PoolPlan['name'], number>
  const listener = LISTENER_CONNECTIONS
  return { ...sizes, listener, total: sizes.identity + sizes.plane + listener }
}

/**
 * Maximum of concurrent background transactions in the plane's pool. Requests have priority: background work gets a
 * quarter of the pool, except in the async plane, where all work is background work.
 */
export function backgroundShare(max: number, plane: Plane): number {
  return plane === 'async' ? max : Math.max(1, Math.floor(max / 4))
}

/** Maximum of connections per tenant in a pool. The rest is for other tenants. */
export function tenantConnections(max: number): number {
  return Math.max(1, max - Math.ceil(max / 4))
}

/**
 * The options of a connection. Time limits are set at its start, for all statements. A pooler refuses or drops them at
 * the start, so with unnamed statements each transaction sets them (tenancy.ts).
 */
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
    ...(settings.prepared_statements === 'unnamed'
      ? {}
      : startLimits(settings, statementTimeoutMs)),
    ...tlsOptions(url, settings.require_ssl),
  }
}

/** Zero is no limit, in pg and PostgreSQL. */
function startLimits(settings: PoolSettings, statementTimeoutMs: number) {
  return {
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: settings.idle_in_transaction_timeout_secs * 1000,
  }
}

/**
 * With `require_ssl` the certificate is verified, unless the URL has another sslmode. Unix sockets have no TLS.
 * @throws if `require_ssl` is true and the URL disables TLS.
 */
export function tlsOptions(url: string, required: boolean): Pick<PoolConfig, 'ssl'> {
  if (!required) return {}
  if (isUnixSocket(url)) return {}
  const mode = new URL(url).searchParams.get('sslmode')
  if (mode === null) return { ssl: true }
  if (turnsTlsOff(url)) {
    throw new Error(`database.require_ssl is true, but a database URL has sslmode=${mode}`)
  }
  return {}
}

/** The server's total of connections for roles that are not superusers. */
export async function serverConnectionLimit(database: {
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>
}): Promise<number> {
  const { rows } = await database.query(
    `select current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int as room`,
  )
  return rows[0]?.['room'] as number
}
