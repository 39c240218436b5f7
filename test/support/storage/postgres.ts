/**
 * One PostgreSQL for all running test files. The runner of the whole suite starts one and sets TEST_POSTGRES_URL. A file that
 * runs alone starts one and shares it with concurrent files, and the last one stops it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { claimDataDirectory, DataDirectoryInUse, isAlive } from '../../../runtime/embedded/claim.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { silentLogger } from '../../../runtime/kernel/log.js'

/** A fleet of six processes holds up to a hundred, and those that tests share wait for a minute. */
const CONNECTIONS_MAX = 800
const LOCK_STEP_MS = 25
const LOCK_STEPS_MAX = 4_000
const MEMORY_FOLDER = '/dev/shm'
/** `f_type` of tmpfs in statfs(2). */
const TMPFS = 0x01021994
const MEMORY_FREE_BYTES_MIN = 4 * 1024 ** 3

/** URL of a superuser, which creates the test databases and their role. */
let shared: Promise<string> | undefined

/** The URL of a superuser of the shared server. */
export function testPostgres(): Promise<string> {
  const given = process.env['TEST_POSTGRES_URL']
  if (given) return Promise.resolve(given)
  shared ??= joinServer()
  return shared
}

/**
 * The folder for the data directories of test servers. A test database is about 1,000 files, and ext4 skips each recently
 * deleted inode when it creates a file. A copy takes 40 ms in memory and up to 900 ms on such a disk.
 */
export function serverFolder(): string {
  const given = process.env['TEST_SERVER_FOLDER']
  if (given) return given
  try {
    const { type, bsize, bavail } = statfsSync(MEMORY_FOLDER)
    if (type === TMPFS && bsize * bavail >= MEMORY_FREE_BYTES_MIN) return MEMORY_FOLDER
  } catch {
    // Not every system has it.
  }
  return tmpdir()
}

/** Starts a temporary server for the runner of the suite. @param dataDir a folder in `serverFolder()`. */
export async function startTestPostgres(dataDir: string) {
  // The server's user must enter it. The files in it are closed.
  chmodSync(dataDir, 0o711)
  const server = await startEmbeddedPostgres({
    dataDir,
    log: silentLogger,
    durable: false,
    connectionsMax: CONNECTIONS_MAX,
  })
  return {
    env: { TEST_POSTGRES_URL: server.superuserUrl },
    async stop() {
      await server.stop()
      // It can be outside of the folder, which the runner removes.
      await rm(server.folder, { recursive: true, force: true })
    },
  }
}

async function joinServer(): Promise<string> {
  // Checkouts share the server if they use the same program versions.
  const version = createHash('sha256').update(process.version).digest('hex').slice(0, 6)
  const folder = join(serverFolder(), `svc-test-${process.getuid?.() ?? 0}-${version}`)
  const users = join(folder, 'users')
  mkdirSync(users, { recursive: true })
  const me = join(users, `${process.pid}-${randomBytes(6).toString('hex')}`)
  return locked(folder, async () => {
    writeFileSync(me, '')
    const server = await startEmbeddedPostgres({
      dataDir: join(folder, 'data'),
      log: silentLogger,
      durable: false,
      connectionsMax: CONNECTIONS_MAX,
      claim: false,
    })
    // Exit handlers of worker threads can only run synchronous code.
    process.once('exit', () => {
      rmSync(me, { force: true })
      if (livingUsers(users) > 0) return
      try {
        process.kill(server.pid, 'SIGINT')
      } catch {
        // Another process was the last user at the same time.
      }
    })
    return server.superuserUrl
  })
}

function livingUsers(folder: string): number {
  return readdirSync(folder).filter((name) => {
    const lives = isAlive(Number(name.split('-')[0]))
    if (!lives) rmSync(join(folder, name), { force: true })
    return lives
  }).length
}

async function locked<T>(folder: string, work: () => Promise<T>): Promise<T> {
  for (let step = 0; step < LOCK_STEPS_MAX; step += 1) {
    const claim = await claimDataDirectory(folder).catch((error: unknown) => {
      if (error instanceof DataDirectoryInUse) return undefined
      throw error
    })
    if (claim === undefined) {
      await sleep(LOCK_STEP_MS)
      continue
    }
    try {
      return await work()
    } finally {
      await claim.release()
    }
  }
  throw new Error(`the shared test server in ${folder} stays locked`)
}
