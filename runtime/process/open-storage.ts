/** The first steps of a start: database, schema, kms, coordination backend. */
import { runMigrations } from '../../migrations/main.js'
import { openCoordination } from '../../storage/platform/coordination/open.js'
import { openDatabase } from '../../storage/platform/database.js'
import { requireFittingKms } from '../../storage/platform/sealing/key-custody.js'
import { openKms } from '../../storage/platform/kms/client.js'
import {
  connectionBudget,
  dividePools,
  planPools,
  serverConnectionLimit,
} from '../../storage/platform/pool-plan.js'
import { droppedTimeLimits, TIME_LIMITS_FIX } from '../../storage/platform/portable/time-limits.js'
import { requireMigratedSchema, rowSecurityBinds } from '../../storage/platform/schema-version.js'
import { databaseUrls } from '../../storage/platform/settings.js'
import { databaseAddress } from '../../storage/platform/unavailable.js'
import { startLocalKms } from './embedded-kms.js'
import { startEmbeddedPostgres } from '../embedded/postgres.js'
import type { Logger } from '../kernel/log.js'
import type { LoadedSettings } from './configuration/load-settings.js'
import {
  type KmsAccess,
  type StartContext,
  StartRefused,
  THREAD_POOL_CONNECTIONS,
  type Undo,
} from './start-context.js'

/**
 * The URLs of the settings, or of the embedded server, which is started and migrated here.
 */
export async function provideDatabase(context: StartContext): Promise<Undo | void> {
  const { loaded, log } = context
  const { database } = loaded.settings
  const configured = databaseUrls(database)
  if (configured !== undefined) {
    context.urls = configured
    return
  }
  const server = await startEmbeddedPostgres({ dataDir: loaded.dataDir, log })
  context.urls = databaseUrls(database, server.url)!
  context.embedded = true
  try {
    await runMigrations({ url: server.url, log })
  } catch (error) {
    await server.stop()
    throw error
  }
  return () => server.stop()
}

export async function openPools(context: StartContext): Promise<Undo> {
  const { loaded, log, metrics } = context
  const database = await openDatabase({
    settings: dividePools(loaded.settings.database, loaded.plane, context.threads).main,
    urls: context.urls!,
    plane: loaded.plane,
    log,
    registry: metrics.registry,
  })
  context.database = database
  return () => database.close()
}

export async function requireSchema(context: StartContext): Promise<void> {
  const { database, loaded, log, threads } = context
  const queryable = {
    query: (text: string) => database!.single({ name: `schema: ${text.slice(0, 50)}`, text }),
  }
  const newer = await requireMigratedSchema(queryable)
  if (newer.length > 0) log.warn({ newer }, 'the schema is newer than this build, and permits it')
  await requireTimeLimits(context)
  await requireRoom(queryable, loaded, threads, log)
  if (await rowSecurityBinds(queryable)) return
  const message =
    'the database role is a superuser or has BYPASSRLS: row-level security does not bind it; ' +
    'use a role without either'
  if (loaded.settings.security.production) throw new StartRefused(message)
  log.warn(message)
}

/** A pooler must not drop the time limits of statements silently. */
async function requireTimeLimits({ database, loaded, urls }: StartContext): Promise<void> {
  const { settings, plane } = loaded
  const checked = new Set<string>()
  for (const { name: pool, url, statementTimeoutMs } of planPools(
    settings.database,
    urls!,
    plane,
  )) {
    if (checked.has(url)) continue
    checked.add(url)
    const queryable = {
      query: (text: string) => database!.single({ name: 'time_limits', text }, { pool }),
    }
    const dropped = await droppedTimeLimits(queryable, settings.database, statementTimeoutMs)
    if (dropped.length === 0) continue
    throw new StartRefused(
      `${dropped.join(' and ')} have no effect on connections to ${databaseAddress(url)}, as behind a pooler: ${TIME_LIMITS_FIX}`,
    )
  }
}

/** The webhook delivery thread has its own pool and one listening connection. */
const THREAD_CONNECTIONS = THREAD_POOL_CONNECTIONS + 1
/** The egress thread has its own pool and one connection that watches for revocations. */
const EGRESS_CONNECTIONS = THREAD_POOL_CONNECTIONS + 1

function servesAsync(plane: LoadedSettings['plane']): boolean {
  return plane === 'all' || plane === 'async'
}

/** Compares the connections that this process may open with those that the server accepts. */
async function requireRoom(
  queryable: Parameters<typeof serverConnectionLimit>[0],
  { settings, plane }: LoadedSettings,
  threads: number,
  log: Logger,
): Promise<void> {
  const deliveries = settings.deployment.background_tasks_enabled && servesAsync(plane)
  // Gateway threads share the pools, and each has a listening connection.
  const pools = connectionBudget(settings.database, plane).total + threads - 1
  const egress = plane === 'all' || plane === 'auth'
  const total = pools + (deliveries ? THREAD_CONNECTIONS : 0) + (egress ? EGRESS_CONNECTIONS : 0)
  const room = await serverConnectionLimit(queryable)
  if (total <= room) return
  log.warn(
    { total, room },
    'the connection pools may exceed the connections of the database server: lower database.*max_connections or raise max_connections',
  )
}

/**
 * The configured [kms]. Outside production, without one, a local kms whose keys are stored in the
 * data directory, for any database. Keys are never kept in memory only: sealed data would be lost
 * with the process.
 */
export async function openKeyManagement(context: StartContext): Promise<Undo> {
  const { loaded, log, clock } = context
  const local = loaded.settings.kms === undefined ? await startOwnKms(context) : undefined
  const { settings } = local ?? { settings: loaded.settings.kms! }
  const access: KmsAccess = {
    socketPath: settings.socket_path,
    serverPublicKeyPath: settings.server_public_key_path,
    clientPrivateKeyPath: settings.client_private_key_path,
  }
  const kms = await openKms({ ...access, log, clock, registry: context.metrics.registry })
  const close = async () => {
    await kms.close()
    await local?.stop()
  }
  try {
    await requireFittingKms(context.database!, kms)
  } catch (error) {
    await close()
    throw error
  }
  context.kms = kms
  context.kmsAccess = access
  return close
}

async function startOwnKms(context: StartContext) {
  const { loaded, log } = context
  const { dataDir } = loaded
  const local = await startLocalKms({ dataDir, log, isShared: context.embedded !== true })
  context.hasLocalKeys = true
  log.info({ dataDir }, 'no [kms] is configured: master keys are kept in the data directory')
  return local
}

export async function openBackend(context: StartContext): Promise<Undo> {
  const { deployment, redis, memcached } = context.loaded.settings
  const coordination = await openCoordination({
    backend: deployment.coordination_backend,
    redis,
    memcached,
    database: context.database!,
    log: context.log,
  })
  context.coordination = coordination
  return () => coordination.close()
}
