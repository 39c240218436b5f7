/**
 * Opens the database and the kms for a command that manages keys, whether the service runs or not.
 */
import { runMigrations } from '../../migrations/main.js'
import { type OpenDatabase, openDatabase } from '../../storage/platform/database.js'
import { openKms } from '../../storage/platform/kms/client.js'
import type { Kms } from '../../storage/platform/kms/kms.js'
import { requireMigratedSchema } from '../../storage/platform/schema-version.js'
import { createSealer, type TenantSealer } from '../../storage/platform/sealing/seal.js'
import { type DatabaseUrls, databaseUrls } from '../../storage/platform/settings.js'
import type { Database } from '../../storage/platform/sql.js'
import { localKmsSettings, startLocalKms } from '../process/embedded-kms.js'
import { DataDirectoryInUse } from '../embedded/claim.js'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/postgres.js'
import { type Clock, systemClock } from '../kernel/clock.js'
import type { Environment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { silentLogger } from '../kernel/log.js'
import { type Random, systemRandom } from '../kernel/random.js'
import { DatabaseUnreachable } from '../../storage/platform/unavailable.js'
import { explainedBy } from '../process/which-database.js'
import { type LoadedSettings, loadSettings } from '../process/configuration/load-settings.js'

export interface KeyTools {
  readonly database: OpenDatabase
  readonly settings: LoadedSettings['settings']
  readonly kms: Kms
  readonly sealer: TenantSealer
  readonly clock: Clock
  readonly random: Random
  close(): Promise<void>
}

type KeyToolsInput = {
  readonly environment: Environment
  readonly cwd: string
  readonly uid?: number | undefined
  /** Why a command must not run with these settings. Undefined: it may. */
  readonly refuse?: ((settings: LoadedSettings['settings']) => string | undefined) | undefined
  /** Connects with `database.maintenance_url` and its time limit, for long statements. Default: as a service does. */
  readonly isMaintenance?: boolean | undefined
}

/**
 * @throws with a message for an operator when the configuration, the database or the kms is
 * unavailable.
 */
export async function openKeyTools(input: KeyToolsInput): Promise<KeyTools> {
  const loaded = loadSettings({ ...input, servesPlane: false })
  if (loaded.tag === 'refused') throw new Error(printedFailures(loaded.failures))
  const refused = input.refuse?.(loaded.settings)
  if (refused !== undefined) throw new Error(refused)
  const undo: (() => Promise<void>)[] = []
  const close = async () => {
    for (const step of undo.splice(0).toReversed()) await step()
  }
  try {
    const database = await databaseOf(loaded, undo, input.isMaintenance)
    const kms = await kmsOf(loaded, undo)
    const clock = systemClock
    const random = systemRandom(clock)
    const sealer = createSealer({ database, kms, random, clock })
    return { database, settings: loaded.settings, kms, sealer, clock, random, close }
  } catch (error) {
    await close()
    throw error instanceof DatabaseUnreachable ? new Error(explainedBy(loaded, error)) : error
  }
}

export interface DatabaseHouse {
  readonly database: Database
  readonly settings: LoadedSettings['settings']
  close(): Promise<void>
}

/** The database alone, for commands that need no keys. @throws as `openKeyTools`. */
export async function openDatabaseTools(input: KeyToolsInput): Promise<DatabaseHouse> {
  const loaded = loadSettings({ ...input, servesPlane: false })
  if (loaded.tag === 'refused') throw new Error(printedFailures(loaded.failures))
  const undo: Undo = []
  const close = async () => {
    for (const step of undo.splice(0).toReversed()) await step()
  }
  try {
    return { database: await databaseOf(loaded, undo), settings: loaded.settings, close }
  } catch (error) {
    await close()
    throw error instanceof DatabaseUnreachable ? new Error(explainedBy(loaded, error)) : error
  }
}

type Undo = (() => Promise<void>)[]

/**
 * The URLs of the configured database, or of the embedded one, which is started when no service runs.
 * @throws when the embedded database cannot be started.
 */
export async function databaseServer({
  settings,
  dataDir,
}: Pick<LoadedSettings, 'settings' | 'dataDir'>): Promise<{
  readonly urls: DatabaseUrls
  readonly stop: () => Promise<void>
}> {
  const configured = databaseUrls(settings.database)
  if (configured !== undefined) return { urls: configured, stop: async () => undefined }
  const { server, isGuest } = await embeddedServer(dataDir)
  const stop = () => server.stop()
  try {
    // As at a start of the service, which may not have happened yet.
    if (!isGuest) await runMigrations({ url: server.url, log: silentLogger })
    return { urls: databaseUrls(settings.database, server.url)!, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function databaseOf(loaded: LoadedSettings, undo: Undo, isMaintenance = false) {
  const { settings, plane } = loaded
  const { urls, stop } = await databaseServer(loaded)
  undo.push(stop)
  const database = await openDatabase({
    settings: {
      ...settings.database,
      min_connections: 0,
      ...(isMaintenance
        ? { statement_timeout_secs: settings.database.maintenance_statement_timeout_secs }
        : {}),
    },
    ...(isMaintenance
      ? { urls: { ...urls, runtime: urls.maintenance }, plane: 'all' }
      : { urls, plane }),
    log: silentLogger,
  })
  undo.push(() => database.close())
  await requireMigratedSchema({
    query: (text) => database.single({ name: `schema: ${text.slice(0, 50)}`, text }),
  })
  return database
}

/**
 * Uses the server of a running service and leaves it running. Otherwise it starts one for the
 * command.
 */
export async function embeddedServer(
  dataDir: string,
): Promise<{ readonly server: EmbeddedPostgres; readonly isGuest: boolean }> {
  const options = { dataDir, log: silentLogger }
  try {
    return { server: await startEmbeddedPostgres(options), isGuest: false }
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error
    return { server: await startEmbeddedPostgres({ ...options, claim: false }), isGuest: true }
  }
}

async function kmsOf({ settings, dataDir }: LoadedSettings, undo: Undo): Promise<Kms> {
  const configured = settings.kms
  if (configured !== undefined) return connect(configured, undo)
  const running = await connect(await localKmsSettings(dataDir), []).catch(() => undefined)
  if (running !== undefined && (await running.health()).state === 'up') {
    undo.push(() => running.close())
    return running
  }
  await running?.close()
  const isShared = databaseUrls(settings.database) !== undefined
  const local = await startLocalKms({ dataDir, log: silentLogger, isShared })
  undo.push(() => local.stop())
  return connect(local.settings, undo)
}

async function connect(settings: NonNullable<LoadedSettings['settings']['kms']>, undo: Undo) {
  const kms = await openKms({
    socketPath: settings.socket_path,
    serverPublicKeyPath: settings.server_public_key_path,
    clientPrivateKeyPath: settings.client_private_key_path,
    log: silentLogger,
    clock: systemClock,
  })
  undo.push(() => kms.close())
  return kms
}
