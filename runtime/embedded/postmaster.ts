/** The server process: finds, starts, watches and stops it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Programs } from './binaries.js'
import { isAlive } from './claim.js'
import { type Cluster, processOptions } from './cluster.js'

const READY_WITHIN_MS = 60_000
const POLL_MS = 10
const STOP_FAST_MS = 15_000
const STOP_IMMEDIATE_MS = 5_000
const LOG_BYTES_MAX = 10 * 1024 * 1024
const LOG_TAIL_BYTES = 2_000
const SOCKET_LOCK = '.s.PGSQL.5432.lock'
/** How long the sessions of a killed server may take to notice its end. */
const ORPHANS_WITHIN_MS = 10_000
const ORPHANS_STEP_MS = 100

export interface Tuning {
  /** False leaves writes to the operating system, for databases that may be lost. */
  readonly durable: boolean
  readonly connectionsMax: number
  /** Variables of its process besides its own. */
  readonly environment?: Readonly<Record<string, string>> | undefined
}

export interface Postmaster {
  readonly pid: number
  readonly socketFolder: string
  /** Undefined for a server that an earlier process started. */
  readonly child: ChildProcess | undefined
}

/** The living server of this cluster, ready for connections, or undefined. */
export async function findPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const record = await readRecord(cluster.folder)
  if (record === undefined) return undefined
  if (!isAlive(record.pid) || !isServerOf(record.pid, cluster.folder)) {
    // The server refuses to start while the pid in its file belongs to any process, including a
    // zombie.
    await rm(join(cluster.folder, 'postmaster.pid'), { force: true })
    await rm(join(cluster.socketFolder, SOCKET_LOCK), { force: true })
    return undefined
  }
  const ready = await awaitReady(cluster, record.pid, () => isAlive(record.pid))
  return ready && { ...ready, child: undefined }
}

interface PidRecord {
  readonly pid: number
  readonly socketFolder: string
  readonly ready: boolean
}

/** postmaster.pid: pid, data directory, start time, port, socket folder, address, key, status. */
async function readRecord(folder: string): Promise<PidRecord | undefined> {
  const text = await readFile(join(folder, 'postmaster.pid'), 'utf8').catch(() => undefined)
  const lines = text?.split('\n')
  const pid = Number(lines?.[0])
  if (lines === undefined || !Number.isInteger(pid) || pid <= 0) return undefined
  return { pid, socketFolder: lines[4]?.trim() ?? '', ready: lines[7]?.trim() === 'ready' }
}

/** A pid is reused after its process ended. The server's working directory is its cluster. */
function isServerOf(pid: number, folder: string): boolean {
  if (process.platform !== 'linux') return true
  try {
    const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
    return name === 'postgres' && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(folder)
  } catch {
    return false
  }
}

/** Starts the server and waits until it accepts connections. */
export async function startPostmaster(
  programs: Programs,
  cluster: Cluster,
  logFile: string,
  tuning: Tuning,
): Promise<Postmaster> {
  for (let waited = 0; ; waited += ORPHANS_STEP_MS) {
    const attempt = await tryStart(programs, cluster, logFile, tuning)
    if ('pid' in attempt) return attempt
    const orphans = /pre-existing shared memory block/.test(attempt.tail)
    if (!orphans || waited >= ORPHANS_WITHIN_MS) {
      throw new Error(`the embedded PostgreSQL did not start (${attempt.ended}):\n${attempt.tail}`)
    }
    await sleep(ORPHANS_STEP_MS)
  }
}

async function tryStart(
  programs: Programs,
  cluster: Cluster,
  logFile: string,
  tuning: Tuning,
): Promise<Postmaster | { ended: string; tail: string }> {
  const output = await openLog(logFile)
  const from = (await output.stat()).size
  const options = processOptions(cluster.account)
  const child = spawn(programs.postgres, serverArguments(cluster, tuning), {
    ...options,
    env: { ...options.env, ...tuning.environment },
    stdio: ['ignore', output.fd, output.fd],
  })
  // Registered before anything is awaited, so that an immediate failure is noticed.
  let ended: string | undefined
  child.once('error', (error) => (ended = error.message))
  child.once('exit', (code, signal) => (ended = `exit code ${code ?? signal}`))
  await output.close()
  child.unref()
  const ready = await awaitReady(cluster, child.pid, () => ended === undefined)
  if (ready) return { ...ready, child }
  if (ended === undefined) child.kill('SIGQUIT')
  const written = await readFile(logFile).catch(() => Buffer.alloc(0))
  const tail = written.subarray(from).toString('utf8').slice(-LOG_TAIL_BYTES)
  return { ended: ended ?? 'no answer', tail }
}

async function awaitReady(
  cluster: Cluster,
  pid: number | undefined,
  lives: () => boolean,
): Promise<Omit<Postmaster, 'child'> | undefined> {
  for (let waited = 0; waited < READY_WITHIN_MS && lives(); waited += POLL_MS) {
    const record = await readRecord(cluster.folder)
    if (record?.pid === pid && record?.ready) {
      return { pid: record.pid, socketFolder: record.socketFolder || cluster.socketFolder }
    }
    await sleep(POLL_MS)
  }
  return undefined
}

function serverArguments(cluster: Cluster, tuning: Tuning): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '',
    unix_socket_directories: cluster.socketFolder,
    unix_socket_permissions: '0700',
    max_connections: String(tuning.connectionsMax),
    // Little memory and few processes: one machine, one service, short statements.
    shared_buffers: '64MB',
    work_mem: '4MB',
    maintenance_work_mem: '32MB',
    io_method: 'sync',
    jit: 'off',
    max_parallel_workers_per_gather: '0',
    max_parallel_maintenance_workers: '0',
    max_worker_processes: '2',
    max_logical_replication_workers: '0',
    wal_level: 'minimal',
    max_wal_senders: '0',
    max_wal_size: '256MB',
    // A new database grows within seconds, and its statistics must follow. A server of tests has dozens of databases.
    autovacuum_naptime: tuning.durable ? '5s' : '60s',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_min_messages: 'warning',
    log_line_prefix: '%m [%p] ',
    ...(tuning.durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  return [
    '-D',
    cluster.folder,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

async function openLog(path: string) {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  )
  if (size > LOG_BYTES_MAX) await rename(path, `${path}.old`)
  return open(path, 'a', 0o600)
}

/** Stops in three steps: end the sessions (fast), drop everything (immediate), kill. */
export async function stopPostmaster(pid: number): Promise<void> {
  for (const [signal, patienceMs] of [
    ['SIGINT', STOP_FAST_MS],
    ['SIGQUIT', STOP_IMMEDIATE_MS],
    ['SIGKILL', STOP_IMMEDIATE_MS],
  ] as const) {
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    for (let waited = 0; waited < patienceMs; waited += POLL_MS) {
      if (!isAlive(pid)) return
      await sleep(POLL_MS)
    }
  }
}
