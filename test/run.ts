/**
 * `npm test`: brings the programs the tests speak to, starts one test PostgreSQL, checks lint and format, runs
 * every test, and says what failed, what was skipped and which files were slow. test/runner/options.ts lists the
 * options.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, constants } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Belongings, ownBelongings } from './runner/belongings.js'
import { commitOf, LONG_RUN_PAGE, thisMachine, withRun } from './runner/long-run.js'
import { readOptions, type TestOptions, UsageError } from './runner/options.js'
import {
  readRecords,
  screenOf,
  slowestTests,
  startedFor,
  startedLine,
  type TestRecord,
} from './runner/points.js'
import { type FileTime, openProgress, slowest } from './runner/progress.js'
import { repeat } from './runner/repeat.js'
import { ROOM_TITLE } from './runner/room-titles.js'
import { openRooms, roomsOf } from './runner/rooms.js'
import { keepTimes, knownSeconds } from './runner/times.js'
import { shortDetail, sourceOf, tapReader, type TestPoint } from './runner/tap.js'
import {
  keepResults,
  LONG_RUNS,
  passedBefore,
  readNotes,
  reasonNotThrough,
  reasonOf,
  type ThroughResult,
  turnOf,
} from './runner/through.js'
import { openMarket } from './support/commerce/market.js'
import { describedRoutes } from './support/contract.js'
import { openFleetPool, openServicePool } from './support/fleet/pool.js'
import { openPostOffice } from './support/fleet/post-office.js'
import { serverFolder, startTestPostgres } from './support/storage/postgres.js'
import { toolProgram } from './support/tools.js'

const DETAIL_LINES_MAX = 25
const SLOWEST = 10
/** The exit code of a process that a signal has ended is this and its number. */
const FATAL_SIGNAL = 128
/** Files in addition to one for each processor: many tests wait for a time limit or a child process. */
const WAITING_FILES = 1
/** How often the results of files that have ended are kept. */
const KEPT_EVERY_MS = 10_000
/** Fewer files have a process each, and the order in which they ran does not matter. */
const ROOMS_FILES_MIN = 10
/** In runs of few files, stack traces name lines of the sources (support/source-maps.ts). */
const MAPPED_FILES_MAX = 10
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const bin = (name: string) => join(root, 'node_modules', '.bin', name)

/** Flows that speak HTTP to the whole service: they also run over HTTP/2 and TLS, and in the long form on a hostile engine. */
const FLOWS = [
  'agents/agents',
  'oauth/tokens/oauth',
  'identity/organizations/control-plane',
  'agents/agent-management',
  'oauth/authorization/openid-client',
  'oauth/authorization/openid-client-people',
].map((name) => `dist/test/flows/${name}.test.js`)

type FileVerdict = { passed: number; readonly failed: string[]; readonly leftOut: string[] }
type Verdict = {
  passed: number
  failed: string[]
  skipped: string[]
  /** Tests that cannot run through a proxy, with the reason. */
  leftOut: string[]
  times: FileTime[]
  tests: TestRecord[]
  readonly files: Map<string, FileVerdict>
}

let belongings: Belongings

process.exitCode = await main()

async function main(): Promise<number> {
  const options = given()
  if (options === null) return 2
  if (options.files.length === 0) {
    say('the change can break no test')
    return 0
  }
  rmSync(join(root, 'coverage'), { recursive: true, force: true })
  bringPrograms()
  if (!bringTools()) return 1
  if (options.isWhole && options.through === undefined && !checks()) return 1
  // Processes pass it on to those that they start.
  if (options.flags.has('--coverage'))
    process.env['NODE_V8_COVERAGE'] = join(root, 'coverage', 'tmp')
  belongings = ownBelongings()
  try {
    const code = await run(options)
    const signal = belongings.interrupted()
    if (signal === undefined) return code
    say(`interrupted by ${signal}`)
    return FATAL_SIGNAL + constants.signals[signal]
  } finally {
    for (const command of await belongings.end()) say(`was still running: ${command}`)
  }
}

async function run(options: TestOptions): Promise<number> {
  const started = performance.now()
  const dataDir = join(belongings.folder, 'postgres')
  const ports = join(belongings.folder, 'ports')
  for (const made of [dataDir, ports]) mkdirSync(made)
  // The pool of services takes ports in this process too.
  process.env['TEST_PORTS'] = ports
  const described = join(dataDir, 'description.json')
  writeFileSync(described, describedRoutes())
  process.env['TEST_DESCRIPTION'] = described
  const postgres = await startTestPostgres(dataDir)
  process.env['TEST_POSTGRES_URL'] = postgres.env.TEST_POSTGRES_URL
  const services = await openServicePool(dataDir)
  const office = await openPostOffice()
  const market = await openMarket()
  try {
    const environment = {
      ...postgres.env,
      TEST_TIMES: join(dataDir, 'times'),
      TEST_SERVICES: services.socketPath,
      TEST_MAIL: JSON.stringify(office.places),
      TEST_MARKET: market.url,
      TEST_STARTED: join(dataDir, 'started'),
    }
    process.env['TEST_STARTED'] = environment.TEST_STARTED
    const verdict = noVerdict()
    const once = options.through === undefined ? runAva : runThrough
    if (options.repeat === 1 && !options.flags.has('--busy')) {
      add(verdict, await once(environment, options))
    } else {
      const how = { count: options.repeat, isBusy: options.flags.has('--busy') }
      const one = async (number: number) => {
        const times = join(dataDir, `times-${number}`)
        const found = await once({ ...environment, TEST_TIMES: times }, options)
        add(verdict, found, `run ${number}`)
        services.renew()
        return found.failed
      }
      await repeat(how, one, say)
    }
    const isLong = options.flags.has('--long') && options.through === undefined
    const isWholeLong = options.isWhole && options.match.length === 0 && isLong
    if (isWholeLong) {
      say('the flows once more, over HTTP/2 and TLS')
      const secured = await runAva(
        { ...environment, TEST_TIMES: join(dataDir, 'times-tls'), TEST_TRANSPORT: 'tls_h2_only' },
        { ...options, isWhole: false, files: FLOWS },
      )
      add(verdict, secured, 'tls_h2_only')
      say('the flows once more, on a hostile database engine')
      const hostile = await runAva(
        { ...environment, TEST_TIMES: join(dataDir, 'times-hostile'), TEST_ENGINE: 'hostile' },
        { ...options, isWhole: false, files: FLOWS },
      )
      add(verdict, hostile, 'hostile engine')
      for (const [nth, run] of LONG_RUNS.entries()) {
        const how = `${run.through} with ${run.coordination}`
        say(`a part of the flows once more, through ${how}`)
        const times = { TEST_TIMES: join(dataDir, `times-${run.through}-${run.coordination}`) }
        const files = turnOf(options.files, nth)
        add(
          verdict,
          await runThrough({ ...environment, ...times }, { ...options, ...run, files }),
          how,
        )
      }
    }
    verdict.failed.push(...(await services.end()))
    if (isWholeLong && belongings.interrupted() === undefined) recordRun(verdict, started)
    keepTimes(verdict.times, root, options.flags.has('--keep-times'))
    say(`${startedLine(environment.TEST_STARTED)} were started`)
    if (options.isWhole) say(`services for: ${startedFor(environment.TEST_STARTED).join(', ')}`)
    report(verdict, (performance.now() - started) / 1000)
    if (options.flags.has('--coverage')) showCoverage()
    const skipsFail = options.flags.has('--fail-on-skip') && verdict.skipped.length > 0
    return verdict.failed.length > 0 || verdict.passed === 0 || skipsFail ? 1 : 0
  } finally {
    await office.end()
    await market.end()
    await postgres.stop()
  }
}

function recordRun({ passed, failed, skipped }: Verdict, started: number): void {
  const path = join(root, LONG_RUN_PAGE)
  const page = withRun(readFileSync(path, 'utf8'), {
    date: new Date(),
    commit: commitOf(root),
    machine: thisMachine(),
    passed,
    failed: failed.length,
    skipped: skipped.length,
    seconds: (performance.now() - started) / 1000,
  })
  writeFileSync(path, page)
  say(`a row was added to ${LONG_RUN_PAGE}`)
}

function add(whole: Verdict, part: Verdict, how?: string): void {
  whole.passed += part.passed
  whole.leftOut.push(...part.leftOut)
  whole.failed.push(...part.failed.map((one) => (how === undefined ? one : `${one} (${how})`)))
  whole.skipped.push(...part.skipped)
  whole.times.push(...part.times)
  whole.tests.push(...part.tests)
}

/** Runs the flows that can against several processes behind a proxy, and names the others with the reason. */
async function runThrough(
  environment: { readonly TEST_TIMES: string; readonly TEST_POSTGRES_URL: string },
  options: TestOptions,
): Promise<Verdict> {
  const { through = 'nginx', coordination, resume } = options
  const before = resume === undefined ? undefined : passedBefore(resume, { through, coordination })
  const files = options.files.filter((file) => {
    const reason = reasonNotThrough(file)
    if (reason !== undefined && file.includes('/flows/')) {
      say(`not through ${through}: ${sourcePath(file)}: ${reason}`)
    }
    return reason === undefined && before?.has(file) !== true
  })
  say(`${files.length} files, through ${through} with ${coordination}`)
  const folder = mkdtempSync(join(serverFolder(), 'svc-fleets-'))
  const pool = await openFleetPool(folder, { through, coordination })
  const notesPath = `${environment.TEST_TIMES}-notes`
  const verdict = noVerdict()
  try {
    const more = {
      TEST_THROUGH: through,
      TEST_COORDINATION: coordination,
      TEST_FLEETS: pool.socketPath,
      TEST_THROUGH_NOTES: notesPath,
    }
    await runAva({ ...environment, ...more }, { ...options, isWhole: false, files }, verdict)
  } finally {
    verdict.failed.push(...(await pool.end()))
    rmSync(folder, { recursive: true, force: true })
  }
  say(`${pool.started()} fleets were started`)
  const withFleet = new Set(
    readNotes(notesPath)
      .filter(({ reason }) => reason === undefined)
      .map(({ file }) => relative(root, file)),
  )
  for (const file of files) {
    const { passed = 0 } = verdict.files.get(file) ?? {}
    if (passed > 0 && !withFleet.has(file)) {
      verdict.failed.push(`${sourcePath(file)} passes without a service behind ${through}`)
    }
  }
  return verdict
}

function noVerdict(): Verdict {
  return { passed: 0, failed: [], skipped: [], leftOut: [], times: [], tests: [], files: new Map() }
}

function given(): TestOptions | null {
  try {
    return readOptions(process.argv.slice(2), root)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`npm test: ${error.message}\n`)
    return null
  }
}

/** Where the machine does not allow it, the tests that need a program are skipped and say so. */
function bringPrograms(): void {
  const { status, stderr } = spawnSync(join(root, '.ci', 'install-programs'), { encoding: 'utf8' })
  if (status !== 0) say(`programs for some tests are missing: ${stderr.trim()}`)
}

function bringTools(): boolean {
  const path = join(root, 'test', 'tools', 'run.mjs')
  return spawnSync(process.execPath, [path], { stdio: 'inherit' }).status === 0
}

function checks(): boolean {
  const steps: [name: string, command: string, args: string[]][] = [
    ['lint', toolProgram('oxlint'), ['--quiet']],
    ['format', toolProgram('biome'), ['format', '--reporter=summary']],
  ]
  return steps.every(([name, command, args]) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
    say(`${status === 0 ? 'ok  ' : 'FAIL'} ${name}`)
    if (status !== 0) say(stdout + stderr)
    return status === 0
  })
}

async function runAva(
  environment: { readonly TEST_TIMES: string } & Readonly<Record<string, string>>,
  options: TestOptions,
  verdict = noVerdict(),
): Promise<Verdict> {
  if (belongings.interrupted() !== undefined) return verdict
  const { files, match, through } = options
  const isShared = files.length > ROOMS_FILES_MIN && match.length === 0 && through === undefined
  const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
  const { rooms, others } = isShared ? roomsOf(files, textOf) : { rooms: [], others: files }
  const opened = openRooms(rooms, root, knownSeconds(root))
  try {
    const processes = [...opened.files, ...others]
    return await runFiles(
      { ...environment, ...opened.environment },
      { ...options, processes },
      verdict,
    )
  } finally {
    opened.close()
  }
}

/** @param processes files of a process each: rooms, and test files. */
function runFiles(
  environment: { readonly TEST_TIMES: string } & Readonly<Record<string, string>>,
  {
    files,
    processes,
    isWhole,
    flags,
    match,
    through,
    coordination,
    resume,
  }: TestOptions & { readonly processes: readonly string[] },
  verdict: Verdict,
): Promise<Verdict> {
  const args = [
    '--tap',
    '--concurrency',
    String(availableParallelism() + WAITING_FILES),
    ...match.flatMap((title) => ['--match', title]),
    ...processes,
  ]
  const modes = {
    ...(flags.has('--long') ? { TEST_LONG: '1' } : {}),
    ...(files.length > MAPPED_FILES_MAX ? { TEST_SOURCE_MAPS: 'off' } : {}),
  }
  const child = spawn(bin('ava'), args, {
    cwd: root,
    env: {
      ...process.env,
      NODE_NO_WARNINGS: '1',
      ...environment,
      ...modes,
      ...belongings.environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    // It leads a session, by which the processes of tests are found.
    detached: true,
  })
  if (child.pid !== undefined) belongings.adopt(child.pid)
  const progress = openProgress(files.length, environment.TEST_TIMES)
  const testsPath = `${environment.TEST_TIMES}-tests`
  // A whole run has hundreds of them.
  const onLog = isWhole ? undefined : (line: string) => progress.say(`      ${line}`)
  const read = tapReader((point) => {
    const { title, result, detail } = point
    const source = sourceOf(title, processes)
    if (result === 'passed' && source?.title === ROOM_TITLE) return
    const own = fileVerdict(verdict, source?.file)
    const reason = result === 'failed' ? notThroughReason(point, source?.file, environment) : null
    if (result === 'skipped') verdict.skipped.push(title)
    else if (result === 'passed') {
      verdict.passed += 1
      own.passed += 1
      progress.passed()
    } else if (typeof reason === 'string') {
      const leftOut = `${source === undefined ? title : `${sourcePath(source.file)}: ${source.title}`}: ${reason}`
      verdict.leftOut.push(leftOut)
      own.leftOut.push(leftOut)
    } else {
      progress.failed()
      own.failed.push(source?.title ?? title)
      verdict.failed.push(source === undefined ? title : commandFor(source))
      progress.say(`\nFAIL  ${source?.title ?? title}`)
      if (source !== undefined) progress.say(`      ${sourcePath(source.file)}`)
      const failed = readRecords(testsPath).findLast((one) => isRecordOf(one, source))
      const screen = screenOf(failed?.asked ?? [], belongings.folder)
      const lines = [...shortDetail(detail, DETAIL_LINES_MAX), ...screen]
      for (const line of lines) progress.say(`      ${line}`)
      if (source !== undefined) progress.say(`      ${commandFor(source)}\n`)
    }
  }, onLog)
  createInterface({ input: child.stdout }).on('line', read)
  const kept = new Set<string>()
  let ended: readonly string[] = []
  const keep = (names: readonly string[]) => {
    if (through === undefined || resume === undefined) return
    const fresh = names.filter((file) => !kept.has(file))
    for (const file of fresh) kept.add(file)
    const results = fresh.map((file): ThroughResult => {
      const { passed, failed, leftOut } = fileVerdict(verdict, file)
      return { through, coordination, file, passed, failed, leftOut }
    })
    keepResults(resume, results)
  }
  // A file that had ended one turn ago has written all of its results.
  const keeping = setInterval(() => {
    keep(ended)
    ended = progress.fileTimes.map(({ file }) => relative(root, file))
  }, KEPT_EVERY_MS)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearInterval(keeping)
      progress.stop()
      // A file that was interrupted has no time, and runs again.
      const times = progress.fileTimes.map(({ file }) => relative(root, file))
      keep([...times, ...files.filter((file) => fileVerdict(verdict, file).failed.length > 0)])
      verdict.times.push(...progress.fileTimes)
      verdict.tests.push(...readRecords(testsPath))
      if (isWhole && code !== 0) verdict.failed.push(...lostFiles(verdict, files, times))
      // AVA counts a test that cannot run through a proxy as failed.
      const isKnown = verdict.failed.length > 0 || verdict.leftOut.length > 0
      if (code !== 0 && !isKnown) verdict.failed.push(`ava ended with ${code}`)
      resolve(endTests().then(() => verdict))
    })
  })
}

/** AVA can end before its files have. @param ended the files that have a time */
function lostFiles(
  verdict: Verdict,
  files: readonly string[],
  ended: readonly string[],
): readonly string[] {
  if (belongings.interrupted() !== undefined) return []
  return files
    .filter((file) => !ended.includes(file) && fileVerdict(verdict, file).failed.length === 0)
    .map((file) => `${sourcePath(file)} did not end`)
}

/** A test that starts a process ends it. */
async function endTests(): Promise<void> {
  for (const command of await belongings.endProcesses()) say(`was still running: ${command}`)
}

/** What is known of a file; of none for a crash of AVA itself. */
function fileVerdict({ files }: Verdict, file = ''): FileVerdict {
  const own = files.get(file) ?? { passed: 0, failed: [], leftOut: [] }
  files.set(file, own)
  return own
}

/** Why a test, or a file that could not start, does not run through a proxy. Null for a failure. */
function notThroughReason(
  point: TestPoint,
  file: string | undefined,
  { TEST_THROUGH_NOTES: notes }: Readonly<Record<string, string>>,
): string | null {
  if (notes === undefined) return null
  const reason = reasonOf(point)
  if (reason !== undefined) return reason
  if (file === undefined || !point.title.includes(file)) return null
  const noted = readNotes(notes).find((one) => one.reason && relative(root, one.file) === file)
  return noted?.reason ?? null
}

function sourcePath(file: string): string {
  return relative('dist', file).replace(/\.js$/, '.ts')
}

/** What runs one test alone. */
function commandFor({ file, title }: { readonly file: string; readonly title: string }): string {
  if (title.includes(file)) return `npm test -- ${file}`
  return `npm test -- ${file} --match '${title.replaceAll("'", `'\\''`)}'`
}

function isRecordOf(
  record: TestRecord,
  source: { readonly file: string; readonly title: string } | undefined,
): boolean {
  return record.title === source?.title && relative(root, record.file) === source.file
}

function report({ passed, failed, skipped, leftOut, times, tests }: Verdict, secs: number): void {
  if (times.length > 1) {
    say('the slowest files:')
    const named = times.map((time) => ({ ...time, file: sourcePath(relative(root, time.file)) }))
    for (const line of slowest(named, SLOWEST)) say(line)
    say('the slowest tests:')
    const name = (file: string) => sourcePath(relative(root, file))
    for (const line of slowestTests(tests, SLOWEST, name)) say(line)
  }
  say('')
  for (const title of skipped) say(`skipped: ${title}`)
  for (const title of leftOut) say(`left out: ${title}`)
  for (const failure of failed) say(`failed: ${failure}`)
  say(
    `${passed} passed, ${failed.length} failed, ${skipped.length} skipped in ${secs.toFixed(0)} s`,
  )
}

/** Counts every process that ended, the shared services too: each wrote what it ran into the folder (NODE_V8_COVERAGE). */
function showCoverage(): void {
  const options = [
    '--reporter=json-summary',
    '--reporter=lcovonly',
    '--exclude=dist/test/**',
    '--exclude=dist/bench/**',
    // More than a thousand processes are measured: all their reports together do not fit in memory.
    '--merge-async',
    '--src=.',
  ]
  execFileSync(toolProgram('c8'), ['report', ...options], { cwd: root, stdio: 'inherit' })
  const text = readFileSync(join(root, 'coverage', 'coverage-summary.json'), 'utf8')
  const { total } = JSON.parse(text) as { total: Record<string, { pct: number }> }
  say(`coverage: ${total['lines']?.pct} % of lines, ${total['branches']?.pct} % of branches`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
