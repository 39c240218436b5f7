/**
 * Measures the rows of the table in docs/reference/performance.md and writes them to a file.
 *
 *     npm run bench -- all [--quick] [--only ID,...] [--note WORDS] [--json FILE]
 *
 * `--quick` takes two short rounds of each row, within ten minutes in total. `--only` measures some rows. `--note`
 * says what else runs on the machine, for the table. A row that cannot be measured keeps its last value and gets the
 * reason.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Report } from '../harness.js'
import { readResults, resultOf, withReason, withResult, writtenResults } from './results.js'
import { ROWS, type RowDefinition } from './rows.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Rounds of a second are long enough for wrk, which counts whole seconds. */
const QUICK = ['--ms', '1000', '--warm-up-ms', '1000', '--rounds']
const QUICK_ROUNDS = 2
const MINUTE_MS = 60_000
const BENCH_MS_MAX = 20 * MINUTE_MS
const QUICK_BENCH_MS_MAX = 4 * MINUTE_MS
const ERROR_CHARS_MAX = 200

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    note: { type: 'string', default: '' },
    json: { type: 'string', default: join(ROOT, 'bench/results.json') },
  },
})
const only = values.only?.split(',')
const unknown = only?.filter((id) => !ROWS.some((row) => row.id === id)) ?? []
if (unknown.length > 0) {
  console.error(
    `there is no row ${unknown.join(', ')}; rows: ${ROWS.map(({ id }) => id).join(' ')}`,
  )
  process.exit(1)
}
const notes = [values.note, values.quick ? 'short rounds' : ''].filter((word) => word !== '')
const folder = mkdtempSync(join(tmpdir(), 'svc-bench-all-'))
let results = readResults(values.json)

try {
  const runs = byRun(ROWS.filter(({ id }) => only?.includes(id) ?? true))
  for (const [at, rows] of runs.entries()) {
    const title = `${rows[0]!.bench} ${rows[0]!.part ?? ''}`.trim()
    const started = performance.now()
    console.log(`${at + 1} of ${runs.length}: ${title} ...`)
    const isPossible = rows.some((row) => missingPrograms(row) === undefined)
    const reports = isPossible ? await reportsOf(rows[0]!) : ''
    for (const row of rows) keep(row, missingPrograms(row) ?? reports)
    console.log(`  ${Math.round((performance.now() - started) / 1000)} s`)
    // After each bench, so that an interrupted run keeps what it has measured.
    writeFileSync(values.json, writtenResults(results))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Rows of one run of a bench. */
function byRun(rows: readonly RowDefinition[]): readonly (readonly RowDefinition[])[] {
  const runs = new Map<string, RowDefinition[]>()
  for (const row of rows) {
    const key = `${row.bench} ${row.part ?? ''}`
    runs.set(key, [...(runs.get(key) ?? []), row])
  }
  return [...runs.values()]
}

/** The reports of a bench, or the reason why it has none. */
async function reportsOf({
  bench,
  part,
  quickRounds = QUICK_ROUNDS,
}: RowDefinition): Promise<readonly Report[] | string> {
  const json = join(folder, 'reports.json')
  rmSync(json, { force: true })
  const script = join(ROOT, 'dist/bench', `${bench}.js`)
  const options = [...(values.quick ? [...QUICK, String(quickRounds)] : []), '--json', json]
  const child = spawn(
    process.execPath,
    [script, ...(part === undefined ? [] : [part]), ...options],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: values.quick ? QUICK_BENCH_MS_MAX : BENCH_MS_MAX,
    },
  )
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  try {
    return JSON.parse(readFileSync(json, 'utf8')) as readonly Report[]
  } catch {
    const last = errors
      .trim()
      .split('\n')
      .find((line) => /\berror\b|not/i.test(line))
    return (last ?? `ended with ${signal ?? `exit code ${code}`}`).trim().slice(0, ERROR_CHARS_MAX)
  }
}

function keep(row: RowDefinition, reports: readonly Report[] | string): void {
  try {
    if (typeof reports === 'string') throw new Error(reports)
    const result = resultOf(row, reports, versionsOf(row), notes.join(', '))
    results = withResult(results, result)
    console.log(`  ${row.id}: ${result.ratio?.toFixed(2) ?? result.ours.value}`)
  } catch (error) {
    const { message } = error as Error
    results = withReason(results, row.id, message)
    console.log(`  ${row.id}: not measured: ${message}`)
  }
}

function missingPrograms({ needs = [] }: RowDefinition): string | undefined {
  const missing = needs.filter((program) => !isOnPath(program))
  return missing.length === 0 ? undefined : `${missing.join(' and ')} not installed`
}

function isOnPath(program: string): boolean {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program]).status === 0
}

function versionsOf({ version }: RowDefinition): { reference: string; ours: string } {
  const ours = `svc ${packageVersion('.')} (${commit()})`
  if (version === undefined) return { reference: `Node ${process.versions.node}`, ours }
  if ('package' in version) {
    const found = packageVersion(join('node_modules', version.package))
    return { reference: `${version.package} ${found}`, ours }
  }
  const [program = '', ...args] = version.program
  // Some print their version to one, some to the other.
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  const [line = program] = `${stdout}${stderr}`.trim().split('\n')
  return { reference: line.split(',')[0]!, ours }
}

function packageVersion(path: string): string {
  const text = readFileSync(join(ROOT, path, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

function commit(): string {
  const { stdout } = spawnSync('git', ['rev-parse', '--short=8', 'HEAD'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return stdout.trim() || 'no commit'
}
