/**
 * A lock between processes, in a file that names its holder. When the holder has died, exactly one
 * process succeeds it, however many notice at the same time: the one that creates the file named
 * after the dead holder's token. The token is new for every attempt, so no process removes a lock
 * that another one has just created.
 */
import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const FILE_MODE = 0o600
const LOCK_POLL_MS = 50
const LOCK_WAIT_MS = 60_000
/** A pid and the token of an attempt. Earlier versions wrote only the pid. */
const HOLDER = /^([0-9]{1,10})(?: [0-9a-f]{24})?$/

/**
 * Runs the work while no other process does so under the same name.
 * @throws when the lock stays held for a minute.
 */
export async function holdingLock<T>(lock: string, work: () => Promise<T>): Promise<T> {
  const own = `${process.pid} ${randomBytes(12).toString('hex')}`
  for (let waitedMs = 0; ; ) {
    if (await made(lock, own)) break
    const died = await deadHolders(lock)
    if (died.length > 0) {
      if (await succeeded(lock, died, own)) break
      continue
    }
    if (waitedMs >= LOCK_WAIT_MS) {
      throw new Error(`${lock} is locked: remove it if no process uses it`)
    }
    await sleep(LOCK_POLL_MS)
    waitedMs += LOCK_POLL_MS
  }
  try {
    return await work()
  } finally {
    if ((await textOf(lock)) === own) await rm(lock, { force: true })
  }
}

/**
 * The dead holder and the processes that died while they succeeded it, in this order. Empty when
 * one of them lives, or when the lock has become free.
 */
async function deadHolders(lock: string): Promise<readonly string[]> {
  const died: string[] = []
  for (let at = lock; ; at = claimOn(lock, died.at(-1)!)) {
    const holder = await textOf(at)
    // No process has started to succeed the last one.
    if (holder === undefined) return died
    if (!isDead(holder)) return []
    died.push(holder)
  }
}

/** Takes the lock of the dead ones for this process. False when another process does. */
async function succeeded(lock: string, died: readonly string[], own: string): Promise<boolean> {
  const claim = claimOn(lock, died.at(-1)!)
  if (!(await made(claim, own))) return false
  // The claim may be outdated: the lock may have changed hands since it was read.
  const stands = (await textOf(lock)) === died[0] && (await isChain(lock, died))
  if (stands) {
    const draft = `${lock}.${own.replace(' ', '-')}.new`
    await writeFile(draft, own, { flag: 'wx', mode: FILE_MODE })
    await rename(draft, lock)
  }
  // Only now: a second claim would have been valid while the lock named the dead process.
  for (const one of stands ? died : died.slice(-1)) await rm(claimOn(lock, one), { force: true })
  return stands
}

async function isChain(lock: string, died: readonly string[]): Promise<boolean> {
  for (const [index, next] of died.slice(1).entries()) {
    if ((await textOf(claimOn(lock, died[index]!))) !== next) return false
  }
  return true
}

function claimOn(lock: string, holder: string): string {
  return `${lock}.${holder.replace(' ', '-')}`
}

/** False when the file exists already. */
async function made(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: FILE_MODE })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function isDead(holder: string): boolean {
  const pid = HOLDER.exec(holder)?.[1]
  // The file exists, but does not name its holder yet.
  if (pid === undefined) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return codeOf(error) === 'ESRCH'
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
