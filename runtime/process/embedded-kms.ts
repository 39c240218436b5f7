/**
 * The kms of a run without [kms]: a child process whose keys are stored in the data directory.
 *
 *  It ends with this process, however this one ends: its standard input is a pipe from here, and it
 * stops when the pipe closes. A service killed with kill -9 therefore leaves no kms to adopt. A kms that still holds
 * the socket is about to end, and is replaced. With the embedded database the data directory is claimed and the socket
 * has one name. Processes with separate databases may share a data directory: each has its own kms with the same keys.
 * The kms has its own process group, so that Ctrl-C reaches only this process and sealing works until the end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmod, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { generateKeyDirectory } from '../../storage/platform/kms/key-directory.js'
import { keyPaths } from '../../storage/platform/kms/key-files.js'
import type { KmsSettings } from '../../storage/platform/kms/settings.js'
import { isAlive } from '../embedded/claim.js'
import { systemClock } from '../kernel/clock.js'
import type { Logger } from '../kernel/log.js'
import { systemRandom } from '../kernel/random.js'

const READY_WITHIN_MS = 20_000
const STOP_WITHIN_MS = 3_000
const RESTART_FIRST_MS = 200
const RESTART_MAX_MS = 5_000
const SOCKET = 'kms.sock'
/** The limit of a unix socket path, minus the name that the server appends for its draft. */
const SOCKET_PATH_BYTES_MAX = 90

export interface LocalKms {
  /** The settings as if [kms] had been configured. */
  readonly settings: NonNullable<KmsSettings>
  /** The pid of the running child. Undefined between a crash and its restart. */
  readonly pid: () => number | undefined
  /** Ends the child. */
  stop(): Promise<void>
}

type StartLocalKms = {
  readonly dataDir: string
  readonly log: Logger
  /**
   * The data directory is not claimed: other processes may use the same keys. The socket is then
   * named after this process, not by the name that commands look for.
   */
  readonly isShared?: boolean | undefined
}

/** Starts the kms, creates its keys at the first start, and restarts it when it ends. */
export async function startLocalKms(options: StartLocalKms): Promise<LocalKms> {
  const { dataDir, log, isShared = false } = options
  const { folder, keysDirectory } = placesIn(dataDir)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  await generateKeyDirectory(keysDirectory, systemRandom(systemClock)).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
  if (isShared) await removeDeadSockets(folder)
  const settings = await localKmsSettings(dataDir, isShared ? `kms-${process.pid}.sock` : SOCKET)
  const keeper = new ChildKeeper(settings.socket_path, keysDirectory, log)
  await keeper.start()
  return {
    settings,
    pid: () => keeper.pid,
    async stop() {
      await keeper.stop()
      if (isShared) await rm(settings.socket_path, { force: true })
    },
  }
}

/** The kms of a running service, for commands that run at the same time. */
export async function localKmsSettings(
  dataDir: string,
  socket = SOCKET,
): Promise<LocalKms['settings']> {
  const { folder, keysDirectory } = placesIn(dataDir)
  const paths = keyPaths(keysDirectory)
  return {
    socket_path: await socketPathIn(folder, socket),
    server_public_key_path: paths.serverPublic,
    client_private_key_path: paths.clientPrivate,
  }
}

/** The key folder of a deployment without [kms]. */
export function localKeysFolder(dataDir: string): string {
  return placesIn(dataDir).keysDirectory
}

function placesIn(dataDir: string) {
  const folder = join(resolve(dataDir), 'kms')
  return { folder, keysDirectory: join(folder, 'keys') }
}

/** Removes the sockets of killed processes. */
async function removeDeadSockets(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = /^kms-(\d+)\.sock$/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(folder, name), { force: true })
  }
}

class ChildKeeper {
  readonly #socketPath: string
  readonly #keysDirectory: string
  readonly #log: Logger
  #child: ChildProcess | undefined
  #restarts = 0
  #restarting: Promise<void> = Promise.resolve()
  readonly #stopping = new AbortController()

  constructor(socketPath: string, keysDirectory: string, log: Logger) {
    this.#socketPath = socketPath
    this.#keysDirectory = keysDirectory
    this.#log = log
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    const child = this.#spawn()
    try {
      await serving(child)
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
    this.#child = child
    child.once('exit', (code, signal) => this.#ended(code, signal))
    // It may have ended after its first line.
    if (child.exitCode !== null || child.signalCode !== null) this.#ended(null, null)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#restarting
    const child = this.#child
    this.#child = undefined
    if (child !== undefined) await end(child)
  }

  #spawn(): ChildProcess {
    const entry = fileURLToPath(new URL('../cli/kms-process.js', import.meta.url))
    const words = ['kms', 'serve', '--socket', this.#socketPath, '--keys', this.#keysDirectory]
    const conduct = ['--replace', '--exit-with-stdin', '--log-level', this.#log.level]
    return spawn(process.execPath, [entry, ...words, ...conduct], {
      cwd: '/',
      detached: true,
      env: {},
      stdio: ['pipe', 'pipe', 'inherit'],
    })
  }

  #ended(code: number | null, signal: string | null): void {
    if (this.#child === undefined || this.#stopping.signal.aborted) return
    this.#child = undefined
    this.#log.error({ exitCode: code, signal }, 'the local kms exited: restarting it')
    this.#restarting = this.#startAgain()
  }

  async #startAgain(): Promise<void> {
    const { signal } = this.#stopping
    for (;;) {
      const delayMs = Math.min(RESTART_FIRST_MS * 2 ** this.#restarts, RESTART_MAX_MS)
      this.#restarts += 1
      try {
        await sleep(delayMs, undefined, { signal })
        await this.start()
      } catch (error) {
        if (signal.aborted) return
        this.#log.error({ err: error }, 'the local kms does not start, trying again')
        continue
      }
      return
    }
  }
}

/** Waits for the line that reports that it serves. */
async function serving(child: ChildProcess): Promise<void> {
  const { stdout } = child
  if (stdout === null) throw new Error('the local kms has no standard output')
  const ready = once(stdout, 'data').then(() => undefined)
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`the local kms exited at its start (${code ?? signal})`)
  })
  const given = new AbortController()
  const late = sleep(READY_WITHIN_MS, undefined, { signal: given.signal }).then(() => {
    throw new Error('the local kms did not start in time')
  })
  try {
    await Promise.race([ready, ended, late])
  } finally {
    given.abort()
    for (const loser of [ready, ended, late]) loser.catch(() => undefined)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.stdin?.end()
  const given = new AbortController()
  const late = sleep(STOP_WITHIN_MS, 'late', { signal: given.signal }).catch(() => undefined)
  const first = await Promise.race([exited, late])
  given.abort()
  if (first === 'late') {
    child.kill('SIGKILL')
    await exited
  }
}

/**
 * In the folder. Where that path is too long for a socket: in a private folder with a short name.
 */
async function socketPathIn(folder: string, socket: string): Promise<string> {
  const path = join(folder, socket)
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return path
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  const short = join(tmpdir(), `svc-kms-${process.getuid?.() ?? 0}-${digest}`)
  await mkdir(short, { recursive: true, mode: 0o700 })
  const { mode, uid } = await lstat(short)
  // In a world-writable folder another user may have created this path first.
  if (uid !== (process.getuid?.() ?? uid) || (mode & 0o170077) !== 0o040000) {
    throw new Error(`${short} is not a private folder of svc: remove it`)
  }
  return join(short, socket)
}
