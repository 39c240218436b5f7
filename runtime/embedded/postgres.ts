/**
 * A real PostgreSQL for whoever has none: started with the service, stopped with it, kept in its
 * data directory. It listens on a unix socket only.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Client } from 'pg'
import type { Logger } from '../kernel/log.js'
import { serverAccount, SYSTEM_HOME } from './account.js'
import { findPrograms, type Programs } from './binaries.js'
import { claimDataDirectory, isAlive } from './claim.js'
import { type Cluster, createCluster, locateCluster } from './cluster.js'
import { findPostmaster, type Postmaster, startPostmaster, stopPostmaster } from './postmaster.js'

const CONNECTIONS_MAX = 100
const WATCH_MS = 1_000
/** Restarts of a server that died under us; more of them within the window and we give up. */
const RESTARTS_MAX = 5
const RESTART_WINDOW_MS = 60_000

export interface EmbeddedOptions {
  /** SVC_DATA_DIR. Claimed for this process until `stop`. */
  readonly dataDir: string
  readonly log: Logger
  /** Default true. False trades safety against loss of power for speed: tests only. */
  readonly durable?: boolean | undefined
  readonly connectionsMax?: number | undefined
  /**
   * Default true. False comes as a guest: a server that runs is used, and neither kept alive nor stopped,
   * because it is another process's.
   */
  readonly claim?: boolean | undefined
}

export interface EmbeddedPostgres {
  /** Of the role `svc`, which owns the database `svc` and is bound by row-level security. */
  readonly url: string
  /** Of the superuser, to create test databases. The service has no use for it. */
  readonly superuserUrl: string
  readonly pid: number
  /** Where the cluster lies: in the data directory, or where its user can reach it. */
  readonly folder: string
  /** True when a server of an earlier, killed process was taken over. */
  readonly adopted: boolean
  stop(): Promise<void>
}

/**
 * Starts the server of the data directory, or takes over the one a killed process has left.
 * @throws DataDirectoryInUse when another living svc holds the directory.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log, durable = true, connectionsMax = CONNECTIONS_MAX } = options
  const given = resolve(options.dataDir)
  const claim = options.claim === false ? undefined : await claimDataDirectory(given)
  try {
    await mkdir(given, { recursive: true })
    const dataDir = await realpath(given)
    const account = await serverAccount()
    const cluster = await locateCluster(dataDir, account)
    const programs = await findPrograms({
      folder: account ? SYSTEM_HOME : dataDir,
      always: account !== undefined,
    })
    const created = await createCluster(programs, cluster, durable)
    if (created) log.info({ folder: cluster.folder }, 'created the embedded database')
    const server = await runServer({
      programs,
      cluster,
      logFile: join(dataDir, 'postgres.log'),
      tuning: { durable, connectionsMax },
      isGuest: claim === undefined,
      log,
    })
    const superuserUrl = urlOf(
      server.socketFolder,
      'postgres',
      cluster.passwords.superuser,
      'postgres',
    )
    try {
      await ensureService(superuserUrl, cluster.passwords.service)
    } catch (error) {
      await server.stop()
      throw error
    }
    return {
      url: urlOf(server.socketFolder, 'svc', cluster.passwords.service, 'svc'),
      superuserUrl,
      pid: server.pid,
      folder: cluster.folder,
      adopted: server.adopted,
      async stop() {
        await server.stop()
        await claim?.release()
      },
    }
  } catch (error) {
    await claim?.release()
    throw error
  }
}

interface ServerPlan {
  readonly programs: Programs
  readonly cluster: Cluster
  readonly logFile: string
  readonly tuning: { readonly durable: boolean; readonly connectionsMax: number }
  readonly isGuest: boolean
  readonly log: Logger
}

/** Keeps one server alive: finds or starts it, starts it again when it dies, stops it once. */
async function runServer({ programs, cluster, logFile, tuning, isGuest, log }: ServerPlan) {
  const start = () => startPostmaster(programs, cluster, logFile, tuning)
  const found = await findPostmaster(cluster)
  if (found && isGuest) return { ...found, adopted: true, stop: async () => undefined }
  if (found) log.warn({ pid: found.pid }, 'took over the database server of a killed process')
  let current: Postmaster = found ?? (await start())
  let stopping: Promise<void> | undefined
  let deaths: number[] = []

  async function revive(): Promise<void> {
    const now = performance.now()
    deaths = [...deaths.filter((at) => now - at < RESTART_WINDOW_MS), now]
    if (deaths.length > RESTARTS_MAX) {
      log.fatal({ logFile }, 'the embedded database keeps dying: it stays down')
      return
    }
    log.error({ pid: current.pid, logFile }, 'the embedded database died: starting it again')
    try {
      current = (await findPostmaster(cluster)) ?? (await start())
      if (stopping) await stopPostmaster(current.pid)
      else watch(current)
    } catch (error) {
      log.fatal({ err: error, logFile }, 'the embedded database does not start again')
    }
  }

  let timer: NodeJS.Timeout | undefined
  let reviving: Promise<void> | undefined
  function watch({ pid, child }: Postmaster): void {
    const died = () => {
      clearInterval(timer)
      if (!stopping) reviving = revive()
    }
    if (child && child.exitCode === null && child.signalCode === null) child.once('exit', died)
    else if (child) died()
    // Not our child: nobody tells us of its end, so look.
    else timer = setInterval(() => isAlive(pid) || died(), WATCH_MS).unref()
  }
  watch(current)

  return {
    pid: current.pid,
    socketFolder: current.socketFolder,
    adopted: found !== undefined,
    stop() {
      stopping ??= (async () => {
        clearInterval(timer)
        await reviving
        await stopPostmaster(current.pid)
      })()
      return stopping
    },
  }
}

/** Makes the role and the database of the service; a kill may have left one without the other. */
async function ensureService(superuserUrl: string, password: string): Promise<void> {
  const client = new Client({ connectionString: superuserUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ role: boolean; database: boolean }>(
      `select exists (select from pg_roles where rolname = 'svc') as role,
              exists (select from pg_database where datname = 'svc') as database`,
    )
    if (!rows[0]?.role) {
      await client.query(
        `create role svc login nosuperuser nocreaterole nocreatedb nobypassrls
         password ${client.escapeLiteral(password)}`,
      )
    }
    if (!rows[0]?.database) await client.query('create database svc owner svc')
  } finally {
    await client.end()
  }
}

/**
 * libpq and pg both let the parameter `host` win over the host that a URL must have. Without `sslmode` pg would ask
 * PGSSLMODE, which speaks of another server.
 */
function urlOf(socketFolder: string, user: string, password: string, database: string): string {
  const host = encodeURIComponent(socketFolder)
  return `postgresql://${user}:${password}@localhost:5432/${database}?host=${host}&sslmode=disable`
}
