/**
 * Files with secrets of their user: readable only by the owner (0600, in a folder 0700), and refused otherwise. They are
 * always written as a whole.
 */
import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { holdingLock } from './file-lock.js'
import { replaceFile } from './replace-file.js'

const FOLDER_MODE = 0o700
const OTHERS = 0o077
const OTHERS_WRITE = 0o022
const STICKY = 0o1000

/**
 * The text of a file. Undefined when it does not exist.
 * @param content what the file contains, for the message. @throws when others may read the file or replace it.
 */
export async function readOwnFile(path: string, content: string): Promise<string | undefined> {
  await judgeFolder(dirname(path))
  let file: Awaited<ReturnType<typeof open>>
  try {
    // No symbolic links: another user may have created one.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    if (codeOf(error) === 'ELOOP') {
      throw new Error(`${path} is a symbolic link: name the file itself`, { cause: error })
    }
    throw error
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error(`${path} is not a file`)
    judgeOwner(path, stats)
    if ((stats.mode & OTHERS) !== 0) {
      throw new Error(
        `${path} contains ${content} and other users can read it: run chmod 600 ${path}`,
      )
    }
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** Replaces the file in one step, so that no reader and no crash sees a partial file. */
export async function writeOwnFile(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE })
  await judgeFolder(folder)
  await replaceFile(path, text)
}

/**
 * Runs work on the file while no other process does: two renewals with one refresh token look like
 * theft. A lock whose holder has died is taken over.
 * @throws when the lock stays held for a minute.
 */
export async function holdingOwnFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
  return holdingLock(`${path}.lock`, work)
}

/** Other users must not be able to replace the file. */
async function judgeFolder(folder: string): Promise<void> {
  let stats: Stats
  try {
    stats = await lstat(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  if (!stats.isDirectory()) throw new Error(`${folder} is not a folder`)
  judgeOwner(folder, stats)
  if ((stats.mode & OTHERS_WRITE) !== 0 && (stats.mode & STICKY) === 0) {
    throw new Error(`other users can write to ${folder}: run chmod 700 ${folder}`)
  }
}

function judgeOwner(path: string, { uid }: Stats): void {
  const own = process.getuid?.()
  if (own === undefined || uid === own || uid === 0) return
  throw new Error(`${path} belongs to another user`)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
