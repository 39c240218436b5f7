/** What each test process has written of its tests (test/support/seed.ts): how long they took, and what failed ones had asked. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Exchange } from '../support/service/exchanges.js'
import { STARTED_KINDS } from '../support/service/started.js'

const ANSWER_LINES_MAX = 12
const LOG_LINES_MAX = 12
const LINE_CHARACTERS_MAX = 300
/** The run, its pools, their fleets. */
const LOG_DEPTH_MAX = 2
/** Headers that every request has. */
const COMMON_HEADERS = /^(?:accept|host|user-agent|content-length|connection)\b/i

type Asked = Exchange & { readonly log: readonly string[] }
export type TestRecord = {
  /** The whole path of the compiled file. */
  readonly file: string
  readonly title: string
  readonly seconds: number
  /** The last requests of a failed test. */
  readonly asked?: readonly Asked[]
}

export function readRecords(path: string): readonly TestRecord[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  // A process that was killed can leave half a line.
  return lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as TestRecord] : []))
}

/** The slowest first, as lines. @param nameOf what to call a file. */
export function slowestTests(
  records: readonly TestRecord[],
  count: number,
  nameOf: (file: string) => string,
): string[] {
  return records
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ file, title, seconds }) => {
      return `${seconds.toFixed(1).padStart(7)} s  ${nameOf(file)}: ${title}`
    })
}

/** Such as `12 services, 30 databases, 1 browser`. @param path the lines of countStart. */
export function startedLine(path: string): string {
  const kinds = startsIn(path).map(({ kind }) => kind)
  return STARTED_KINDS.map((kind) => {
    const count = kinds.filter((one) => one === kind).length
    return `${count} ${kind}${count === 1 ? '' : 's'}`
  }).join(', ')
}

/** The profiles and test files that services were started for, those with the most first. */
export function startedFor(path: string): readonly string[] {
  const counts = new Map<string, number>()
  for (const { kind, by } of startsIn(path)) {
    if (kind === 'service') counts.set(by, (counts.get(by) ?? 0) + 1)
  }
  return [...counts]
    .toSorted(([one, many], [other, more]) => more - many || one.localeCompare(other))
    .map(([by, count]) => `${count} ${by}`)
}

function startsIn(path: string): readonly { readonly kind: string; readonly by: string }[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [kind = '', ...by] = line.split(' ')
      return { kind, by: by.join(' ').replace(/^.*\/dist\/(.*)\.js$/, '$1.ts') }
    })
}

/**
 * One screen: the requests before the last one in a line each, the last one with its answer, and what the service logged of it.
 * @param logFolder where services in other processes write their logs.
 */
export function screenOf(asked: readonly Asked[], logFolder: string): string[] {
  const last = asked.at(-1)
  if (last === undefined) return []
  const before = asked.slice(0, -1).map((one) => `before: ${answered(one)}`)
  const headers = last.headers.split('\n').filter((line) => !COMMON_HEADERS.test(line))
  const log = last.log.length > 0 ? last.log : loggedOf(logFolder, last.requestId)
  return [
    ...before,
    `asked:  ${last.method} ${last.url}`,
    ...[...headers, ...bodyLines(last.body)].map((line) => `  ${line}`),
    `came:   ${last.status ?? 'nothing'}`,
    ...bodyLines(last.answer).map((line) => `  ${line}`),
    ...(log.length > 0 ? ['the log of this request:'] : []),
    ...log.slice(-LOG_LINES_MAX).map((line) => `  ${line}`),
  ].map((line) => line.slice(0, LINE_CHARACTERS_MAX))
}

function answered({ method, url, status }: Exchange): string {
  return `${method} ${url}: ${status ?? 'no answer'}`
}

function bodyLines(body: string): string[] {
  const lines = readable(body).split('\n')
  return lines.filter((line) => line.trim() !== '').slice(0, ANSWER_LINES_MAX)
}

function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 1)
  } catch {
    return body
  }
}

function loggedOf(folder: string, requestId: string | undefined): string[] {
  if (requestId === undefined) return []
  return logsIn(folder, LOG_DEPTH_MAX)
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) => line.includes(requestId))
}

/** Not deeper: the databases of a server are folders with thousands of files, which come and go. */
function logsIn(folder: string, depth: number): string[] {
  if (depth < 0 || !existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return logsIn(path, depth - 1)
    return entry.name.endsWith('.log') ? [path] : []
  })
}
