/**
 * One service per data directory: a lock file that names the process which holds it, and is valid
 * only as long as that process lives.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const LOCK_FILE = 'svc.lock'
const ATTEMPTS_MAX = 5

export class DataDirectoryInUse extends Error {
  constructor(dataDir: string, pid: number) {
    super(
      `the data directory ${dataDir} is in use by another svc (process ${pid}): ` +
        'stop it first, or give this one its own directory with SVC_DATA_DIR',
    )
    this.name = 'DataDirectoryInUse'
  }
}

interface Claim {
  release(): Promise<void>
}

/**
 * Claims the data directory for this process. A lock whose process is dead is replaced.
 * @throws DataDirectoryInUse while another living process holds it.
 */
export async function claimDataDirectory(dataDir: string): Promise<Claim> {
  await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
  const path = join(dataDir, LOCK_FILE)
  const holder = `${JSON.stringify({ pid: process.pid, born: birthOf(process.pid) })}\n`
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, holder, { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      // link(2) creates the lock with its content in one step, so no process reads a partial lock.
      const taken = await link(draft, path).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false
          throw error
        },
      )
      if (taken) return { release: () => rm(path, { force: true }) }
      await removeIfDead(dataDir, path)
    }
    throw new Error(`the lock ${path} could not be taken`)
  } finally {
    await rm(draft, { force: true })
  }
}

async function removeIfDead(dataDir: string, path: string): Promise<void> {
  const seen = await readFile(path, 'utf8').catch(() => undefined)
  if (seen === undefined) return
  const pid = livingHolder(seen)
  if (pid !== undefined) throw new DataDirectoryInUse(dataDir, pid)
  // A third process may have put its own lock here between the read and the removal. The lock is
  // therefore moved aside, read again, and put back when it is not the dead one.
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  const moved = await rename(path, aside).then(
    () => true,
    () => false,
  )
  if (!moved) return
  if ((await readFile(aside, 'utf8')) !== seen) await link(aside, path).catch(() => undefined)
  await rm(aside, { force: true })
}

function livingHolder(text: string): number | undefined {
  try {
    const { pid, born } = JSON.parse(text) as { pid: number; born: string | undefined }
    return isAlive(pid) && birthOf(pid) === born ? pid : undefined
  } catch {
    return undefined
  }
}

/** Whether the process runs. A zombie does not: its parent has not reaped it yet. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return process.platform !== 'linux' || statOf(pid)?.[0] !== 'Z'
}

/** When the process was started, in the system's own format: distinguishes a reused pid. */
function birthOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') {
      // Field 22 of stat is the start time in ticks since boot.
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      return `${boot}:${statOf(pid)?.[19]}`
    }
    return execFileSync('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
    }).trim()
  } catch {
    return undefined
  }
}

/**
 * The fields of /proc/<pid>/stat from the third one on. The name in the second field may contain
 * spaces.
 */
function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
