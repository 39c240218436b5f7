/** How long the files took, for the order of the next run (ava.config.js). */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { FileTime } from './progress.js'

/** The times of this tree. The compiler leaves the file. */
const LAST = join('dist', '.build', 'test-times.json')
/** For a fresh clone. */
const COMMITTED = join('test', 'runner', 'seconds.json')

/** @returns how long a file took, as far as it is known. */
export function knownSeconds(root: string): (file: string) => number {
  const seconds = { ...read(join(root, COMMITTED)), ...read(join(root, LAST)) }
  return (file) => seconds[file] ?? 0
}

/** @param isKept also in the file that is committed. There only files that exist stay. */
export function keepTimes(times: readonly FileTime[], root: string, isKept: boolean): void {
  const now = Object.fromEntries(
    times.map(({ file, seconds }) => [relative(root, file), Math.round(seconds * 10) / 10]),
  )
  write(join(root, LAST), { ...read(join(root, LAST)), ...now })
  if (!isKept) return
  const all = Object.entries({ ...read(join(root, COMMITTED)), ...now })
  const living = all.filter(([file]) => existsSync(join(root, file)))
  write(join(root, COMMITTED), Object.fromEntries(living.toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

function read(path: string): Record<string, number> {
  if (!existsSync(path)) return {}
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>
}

function write(path: string, seconds: Record<string, number>): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(seconds, null, 1)}\n`)
}
