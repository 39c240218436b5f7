/** The command line of `npm test`: which files run, and how. */
import { existsSync, readdirSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { COORDINATIONS, type CoordinationName } from '../support/fleet/coordination.js'
import { PROXIES, type ProxyName } from '../support/fleet/proxy.js'
import { changedPaths, changedTests, treeOf } from './changed.js'
import { ROOMS } from './room-titles.js'

/** The areas of the product; a folder of any layer with this name belongs to it. */
const AREAS = ['identity', 'oauth', 'agents', 'vault', 'commerce', 'webhooks', 'operations']
const FLAGS = [
  '--fail-on-skip',
  '--long',
  '--coverage',
  '--keep-times',
  '--busy',
  '--changed',
] as const
const COMPILED = join('dist', 'test')
/** Files that only `--long` runs, or their name. */
const LONG_FILE = /\.long\.test\.js$/

export type TestFlag = (typeof FLAGS)[number]
export type TestOptions = {
  /** Compiled test files, from the root. */
  readonly files: readonly string[]
  /** No file and no area is named: every check runs. */
  readonly isWhole: boolean
  readonly flags: ReadonlySet<TestFlag>
  /** Only tests with these titles; `*` stands for any text. */
  readonly match: readonly string[]
  /** The flows run against several processes behind this proxy. */
  readonly through: ProxyName | undefined
  readonly coordination: CoordinationName
  /** A file of results: what passed through this proxy before is left out, and the results of this run are added. */
  readonly resume: string | undefined
  /** How often the files run. */
  readonly repeat: number
}

/** Something on the command line does not exist. The message lists what does. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** @throws {UsageError} */
export function readOptions(words: readonly string[], root: string): TestOptions {
  const flags = new Set<TestFlag>()
  const areas: string[] = []
  const match: string[] = []
  const named: string[] = []
  let through: ProxyName | undefined
  let coordination: CoordinationName = 'postgres'
  let resume: string | undefined
  let repeat = 1
  let base: string | undefined
  const rest = words.values()
  for (const word of rest) {
    if (word === '--area') areas.push(valueOf(word, rest.next().value))
    else if (word === '--match') match.push(valueOf(word, rest.next().value))
    else if (word === '--through') through = oneOf(PROXIES, word, rest.next().value)
    else if (word === '--coordination') {
      coordination = oneOf(COORDINATIONS, word, rest.next().value)
    } else if (word === '--resume') resume = valueOf(word, rest.next().value)
    else if (word === '--base') base = valueOf(word, rest.next().value)
    else if (word === '--repeat') repeat = countOf(word, rest.next().value)
    else if (isFlag(word)) flags.add(word)
    else if (word.startsWith('-')) throw new UsageError(`unknown option ${word}\n\n${usage(root)}`)
    else named.push(compiledFile(word, root))
  }
  const isLong = flags.has('--long')
  const all = testFiles(root).filter((file) => isLong || !LONG_FILE.test(file))
  const known = areasOf(all)
  for (const area of areas) {
    if (!known.includes(area)) {
      throw new UsageError(`unknown area ${area}: one of ${known.join(', ')}`)
    }
  }
  const inAreas = all.filter((file) => areas.some((area) => file.split('/').includes(area)))
  const isChanged = flags.has('--changed')
  if (base !== undefined && !isChanged) throw new UsageError('--base needs --changed')
  const isAll = areas.length === 0 && named.length === 0
  const isWhole = isAll && !isChanged
  if (repeat > 1 && isWhole) throw new UsageError('--repeat needs files or an area')
  const chosen = isAll ? all : [...new Set([...named, ...inAreas])]
  const files = isChanged ? changedOf(chosen, root, base) : chosen
  return { files, isWhole, flags, match, through, coordination, resume, repeat }
}

export function usage(root: string): string {
  return `usage: npm test [-- OPTIONS] [FILES]

  FILES             compiled test files, such as dist/test/tidy.test.js, or their sources
  --area NAME       the tests of one area: ${areasOf(testFiles(root)).join(', ')}
  --changed         only tests that a change can break, by imports and, past the service, by area
  --base REF        the change since REF; default: since main, on main since the commit before; with the working tree
  --match TITLE     only tests with this title; * stands for any text
  --fail-on-skip    a skipped test is a failure
  --long            also the files called *.long.test.js, and the long forms of the crash and property tests
  --coverage        measures which lines the tests reach
  --keep-times      writes how long the files took to test/runner/seconds.json, for the order of a fresh clone
  --through NAME    the flows against several processes behind a proxy: ${PROXIES.join(', ')}
  --coordination NAME  of these processes: ${COORDINATIONS.join(', ')}
  --repeat N        runs the files N times, and says how many runs failed
  --busy            while two processes take the processors
  --resume FILE     with --through: leaves out what has passed, and adds the results to the file`
}

function valueOf(flag: string, value: string | undefined): string {
  if (value === undefined) throw new UsageError(`${flag} needs a value`)
  return value
}

function changedOf(files: readonly string[], root: string, base: string | undefined): string[] {
  try {
    return changedTests(files, changedPaths(root, base), treeOf(root, AREAS))
  } catch (error) {
    throw new UsageError(`--changed needs git and a base that it knows: ${String(error)}`)
  }
}

function countOf(flag: string, value: string | undefined): number {
  const count = Number(valueOf(flag, value))
  if (!Number.isInteger(count) || count < 1) throw new UsageError(`${flag} needs a count`)
  return count
}

function oneOf<const Name extends string>(
  names: readonly Name[],
  flag: string,
  value: string | undefined,
): Name {
  const found = names.find((name) => name === valueOf(flag, value))
  if (found === undefined) throw new UsageError(`${flag} is one of ${names.join(', ')}`)
  return found
}

function isFlag(word: string): word is TestFlag {
  return (FLAGS as readonly string[]).includes(word)
}

/** The areas, and the folders right below test/ that hold tests of one layer. */
function areasOf(files: readonly string[]): string[] {
  const layers = files.map((file) => file.split('/')).filter((parts) => parts.length > 3)
  return [...new Set([...AREAS, ...layers.map((parts) => parts[2]!)])]
}

function testFiles(root: string): string[] {
  return readdirSync(join(root, COMPILED), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join(COMPILED, name))
    .filter((file) => !file.startsWith(ROOMS))
    .sort()
}

function compiledFile(word: string, root: string): string {
  const path = normalize(word)
  const file = path.endsWith('.ts') ? join('dist', path.replace(/\.ts$/, '.js')) : path
  if (!file.endsWith('.test.js') || !existsSync(join(root, file))) {
    throw new UsageError(`no test file ${word}\n\n${usage(root)}`)
  }
  return file
}
