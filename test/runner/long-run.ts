/** The record of `npm run test:long` in docs/reference/long-run.md: when it last ran as a whole, on what, and how it ended. */
import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'

export const LONG_RUN_PAGE = 'docs/reference/long-run.md'
const ROWS_MAX = 20
const HEAD = /^\| date \|.*\n\| --- \|.*\n/m
const GIB = 1024 ** 3

export type LongRun = {
  readonly date: Date
  readonly commit: string
  readonly machine: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
}

/** The page with one more row, the newest first. @throws where its table is not found. */
export function withRun(page: string, run: LongRun): string {
  const head = HEAD.exec(page)
  if (head === null) throw new Error(`${LONG_RUN_PAGE} has no table of runs`)
  const start = head.index + head[0].length
  const rest = page.slice(start).split('\n')
  const end = rest.findIndex((line) => !line.startsWith('|'))
  const rows = [rowOf(run), ...rest.slice(0, end)].slice(0, ROWS_MAX)
  return page.slice(0, start) + [...rows, ...rest.slice(end)].join('\n')
}

function rowOf({ date, commit, machine, passed, failed, skipped, seconds }: LongRun): string {
  const result = failed === 0 && passed > 0 ? 'passed' : 'failed'
  const hours = (seconds / 3600).toFixed(1)
  const cells = [date.toISOString().slice(0, 10), result, commit, machine, passed, failed, skipped]
  return `| ${[...cells, `${hours} h`].join(' | ')} |`
}

/** What git has checked out. Changes that are not committed are said. */
export function commitOf(root: string): string {
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  try {
    const isChanged = git('status', '--porcelain').trim() !== ''
    return `${git('rev-parse', '--short', 'HEAD').trim()}${isChanged ? ' and changes' : ''}`
  } catch {
    return 'no checkout of git'
  }
}

export function thisMachine(): string {
  const processors = cpus()
  const memory = Math.round(totalmem() / GIB)
  const model = processors[0]?.model.trim().replaceAll('|', '/')
  return `${processors.length} × ${model}, ${memory} GiB, Node ${process.versions.node}`
}
