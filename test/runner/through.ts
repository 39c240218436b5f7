/** Which flows run through a proxy, why the others do not, and the results of long runs. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { CoordinationName } from '../support/fleet/coordination.js'
import type { ProxyName } from '../support/fleet/proxy.js'
import type { ThroughNote } from '../support/fleet/through.js'
import type { TestPoint } from './tap.js'

/** Flows without a part that several processes could serve. docs/guides/operations/several-processes.md lists them. */
export const NOT_THROUGH: Readonly<Record<string, string>> = {
  'agents/agent-client': 'its client in the process of the test trusts no certificate of a test',
  'agents/chain-events': 'it starts its own processes',
  'agents/removed-scopes': 'it asserts immediately what other processes know within a second',
  'commerce/x402-page': 'its commands trust no certificate of a test',
  'identity/gallery-chromium.long': 'it takes the pictures of the documentation',
  'oauth/tokens/oauth': 'it has a gateway in its own process',
  'operations/commands/init': 'the printed commands trust no certificate of a test',
  'operations/dev-mail': 'it asserts what one process has in memory',
  'operations/gateway-threads.long': 'it asserts the threads of one process',
  'operations/noisy-neighbour': 'it measures one process',
  'operations/older-build': 'it changes the schema of its database',
  'operations/planes': 'it starts a process of each plane',
  'operations/production/production.long': 'it starts its own processes',
  'operations/production/proxies.long': 'it starts its own proxy',
  'operations/seed': 'it runs a command on the database',
  'operations/start': 'it starts its own processes',
  'vault/egress-blocks': 'it reads the metrics of one process',
}

/** Undefined where a flow runs through a proxy. @param file compiled, below dist/test. */
export function reasonNotThrough(file: string): string | undefined {
  const [, name] = /dist\/test\/flows\/(.+)\.test\.js$/.exec(file) ?? []
  return name === undefined ? 'it is not a flow over HTTP' : NOT_THROUGH[name]
}

/**
 * The runs of `npm run test:long`: each proxy, and each coordination backend. A flow takes part in one of them, because all
 * flows in all of them take longer than anybody waits. `--through` runs all flows in one.
 */
export const LONG_RUNS: readonly Pick<ThroughResult, 'through' | 'coordination'>[] = [
  { through: 'nginx', coordination: 'postgres' },
  { through: 'haproxy', coordination: 'redis' },
  { through: 'nginx', coordination: 'redis-cluster' },
  { through: 'haproxy', coordination: 'redis-sentinel' },
  { through: 'nginx', coordination: 'memcached' },
]

/** The files of one of these runs, by turns. @param files all test files @param nth of LONG_RUNS */
export function turnOf(files: readonly string[], nth: number): readonly string[] {
  const flows = files.filter((file) => reasonNotThrough(file) === undefined).toSorted()
  return flows.filter((_, at) => at % LONG_RUNS.length === nth)
}

/** Why a failed test could not run through a proxy (NotThroughError). Undefined for a failure. */
export function reasonOf({ detail }: TestPoint): string | undefined {
  // YAML folds long lines. The next member begins with its name.
  const text = detail.map((line) => line.trim()).join(' ')
  return /not through a proxy: ([\w ]+?)(?: \w+:|[^\w ]|$)/.exec(text)?.[1]?.trim()
}

/** What support code has noted of a file: whether it had a fleet, and why a part of it had none. */
export function readNotes(path: string): readonly ThroughNote[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as ThroughNote)
}

/** The results of one file through one proxy with one coordination backend. */
export type ThroughResult = {
  readonly through: ProxyName
  readonly coordination: CoordinationName
  readonly file: string
  readonly passed: number
  readonly failed: readonly string[]
  /** Tests, or the file where it could not start, with the reason. */
  readonly leftOut: readonly string[]
}

/** The files that passed before. */
export function passedBefore(
  path: string,
  { through, coordination }: Pick<ThroughResult, 'through' | 'coordination'>,
): ReadonlySet<string> {
  if (!existsSync(path)) return new Set()
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  const results = lines.map((line) => JSON.parse(line) as ThroughResult)
  const passed = results.filter(
    (one) =>
      one.through === through &&
      one.coordination === coordination &&
      one.failed.length === 0 &&
      // A file that ended before its first test has not passed.
      one.passed + one.leftOut.length > 0,
  )
  return new Set(passed.map(({ file }) => file))
}

export function keepResults(path: string, results: readonly ThroughResult[]): void {
  for (const result of results) appendFileSync(path, `${JSON.stringify(result)}\n`)
}
