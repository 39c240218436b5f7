/**
 * The embedded PostgreSQL server, for a deployment without a database: started and stopped with the
 * service, stored in its data directory. It listens on a unix socket only.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import type { Logger } from '../kernel/log.js'
import { serverAccount, SYSTEM_HOME } from './account.js'
import { findPrograms, type Programs } from './binaries.js'
import { claimDataDirectory, isAlive } from './claim.js'
import { type Cluster, createCluster, locateCluster } from './cluster.js'
import {
  findPostmaster,
  type Postmaster,
  startPostmaster,
  stopPostmaster,
  type Tuning,
} from './postmaster.js'

const CONNECTIONS_MAX = 100
const WATCH_MS = 1_000
/** The first restarts of a crashed server follow immediately. More of them within the window wait. */
const RESTARTS_AT_ONCE_MAX = 3
const RESTART_WINDOW_MS = 60_000
const RESTART_PAUSE_MS = 3_000

interface EmbeddedOptions {
  /** SVC_DATA_DIR. Claimed for this process until `stop`. */
  readonly dataDir: string
  readonly log: Logger
  /** Default true. False trades safety against power loss for speed, for tests only. */
  readonly durable?: boolean | undefined
  readonly connectionsMax?: number | undefined
  /**
   * Default true. False uses a server that another process runs, and neither keeps it alive nor
   * stops it.
   */
  readonly claim?: boolean | undefined
  /** Variables of the server's process besides its own, such as a clock that a test steps. */
  readonly environment?: Readonly<Record<string, string>> | undefined
}

export interface EmbeddedPostgres {
  /** For the role `svc`, which owns the database `svc` and is subject to row-level security. */
  readonly url: string
  /** For the superuser, to create test databases. The service does not use it. */
  readonly superuserUrl: string
  readonly pid: number
  /** The cluster's folder: in the data directory, or where the server's user can reach it. */
  readonly folder: string
  /** True when the server of an earlier, killed process was adopted. */
  readonly adopted: boolean
  stop(): Promise<void>
}

/**
 * Starts the server of the data directory, or adopts the one that a killed process left.
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
      tuning: { durable, connectionsMax, environment: options.environment },
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
  readonly tuning: Tuning
  readonly isGuest: boolean
  readonly log: Logger
}

/** Keeps one server alive: finds or starts it, restarts it when it dies, and stops it once. */
async function runServer({ programs, cluster, logFile, tuning, isGuest, log }: ServerPlan) {
  const start = () => startPostmaster(programs, cluster, logFile, tuning)
  const found = await findPostmaster(cluster)
  if (found && isGuest) return { ...found, adopted: true, stop: async () => undefined }
  if (found) log.warn({ pid: found.pid }, 'adopted the database server of a killed process')
  let current: Postmaster = found ?? (await start())
  let stopping: Promise<void> | undefined
  const ending = new AbortController()
  /** When the server was restarted within the window. */
  let attempts: number[] = []

  /** Tries until it succeeds: a server does not start while its disk is full. */
  async function revive(): Promise<void> {
    log.error({ pid: current.pid, logFile }, 'the embedded database exited: restarting it')
    while (!ending.signal.aborted) {
      const now = performance.now()
      attempts = [...attempts.filter((at) => now - at < RESTART_WINDOW_MS), now]
      if (attempts.length > RESTARTS_AT_ONCE_MAX) {
        const pause = sleep(RESTART_PAUSE_MS, undefined, { signal: ending.signal, ref: false })
        await pause.catch(() => undefined)
        if (ending.signal.aborted) return
      }
      try {
        current = (await findPostmaster(cluster)) ?? (await start())
        if (stopping) await stopPostmaster(current.pid)
        else watch(current)
        return
      } catch (error) {
        log.error({ err: error, logFile }, 'the embedded database does not start: trying again')
      }
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
    // Not a child process, so there is no exit event: poll.
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
        ending.abort()
        await reviving
        await stopPostmaster(current.pid)
      })()
      return stopping
    },
  }
}

/** Creates the role and the database of the service. A kill may have left one without the other. */
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
 * In libpq and pg the parameter `host` overrides the host that a URL must have. Without `sslmode`
 * pg would read PGSSLMODE, which is meant for another server.
 */
function urlOf(socketFolder: string, user: string, password: string, database: string): string {
  const host = encodeURIComponent(socketFolder)
  return `postgresql://${user}:${password}@localhost:5432/${database}?host=${host}&sslmode=disable`
}
