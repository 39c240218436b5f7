/**
 * A small disk, which a test fills: a tmpfs. Mounting needs the right of root that a separate network needs too
 * (production.long.test.ts).
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CHUNK_BYTES = 64 * 1024
/** The last pages are filled one by one. */
const PAGE_BYTES = 4 * 1024

export interface SmallDisk {
  readonly folder: string
  /** Writes a ballast file until the disk has no free page. */
  fill(): void
  /** Removes the ballast. */
  free(): void
  /** Unmounts it. Its files are lost. */
  end(): void
}

/** True where mounting is permitted. */
export function mayMount(): boolean {
  try {
    smallDisk(1).end()
    return true
  } catch {
    return false
  }
}

/** @throws where mounting is not permitted. */
export function smallDisk(mebibytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'))
  const mount = ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=711`, 'svc-test', folder]
  try {
    execFileSync('mount', mount, { stdio: 'ignore' })
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'a')
      try {
        for (const bytes of [CHUNK_BYTES, PAGE_BYTES]) writeUntilFull(file, Buffer.alloc(bytes, 1))
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast, { force: true }),
    end() {
      // Files of processes that are about to end stay usable for them.
      execFileSync('umount', ['--lazy', folder])
      rmdirSync(folder)
    },
  }
}

function writeUntilFull(file: number, chunk: Buffer): void {
  for (;;) {
    try {
      if (writeSync(file, chunk) < chunk.length) return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return
      throw error
    }
  }
}
