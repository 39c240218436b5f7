/**
 * `npm test`: brings the programs the tests speak to, starts one test PostgreSQL, checks lint and
 * format, runs every test, and says what was skipped and why.
 *
 *   npm test [-- --fail-on-skip] [--long] [--coverage] [FILES of dist/test ...]
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startTestPostgres } from './support/storage/postgres.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const bin = (name: string) => join(root, 'node_modules', '.bin', name)
const flags = process.argv.slice(2).filter((word) => word.startsWith('--'))
const files = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const wanted = (flag: string) => flags.includes(flag)

/** What speaks HTTP to the whole service, whichever the transport. */
const FLOWS = [
  'agents/agents',
  'oauth/tokens/oauth',
  'identity/organizations/control-plane',
  'agents/agent-management',
  'oauth/authorization/openid-client',
  'oauth/authorization/openid-client-people',
].map((name) => `dist/test/flows/${name}.test.js`)

type Verdict = { passed: number; failed: string[]; skipped: string[] }

process.exitCode = await main()

async function main(): Promise<number> {
  const started = performance.now()
  rmSync(join(root, 'coverage'), { recursive: true, force: true })
  bringPrograms()
  if (files.length === 0 && !checks()) return 1

  const dataDir = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const postgres = await startTestPostgres(dataDir)
  try {
    const verdict = await runAva(postgres.env, files)
    if (files.length === 0) {
      say('the flows once more, over HTTP/2 and TLS')
      const over = await runAva({ ...postgres.env, TEST_TRANSPORT: 'tls_h2_only' }, FLOWS)
      verdict.passed += over.passed
      verdict.failed.push(...over.failed.map((title) => `${title} (tls_h2_only)`))
      verdict.skipped.push(...over.skipped)
    }
    report(verdict, (performance.now() - started) / 1000)
    if (wanted('--coverage')) showCoverage()
    const skipsFail = wanted('--fail-on-skip') && verdict.skipped.length > 0
    return verdict.failed.length > 0 || verdict.passed === 0 || skipsFail ? 1 : 0
  } finally {
    await postgres.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Where the machine allows it; where not, the tests that need them say so and are skipped. */
function bringPrograms(): void {
  const { status, stderr } = spawnSync(join(root, '.ci', 'install-programs'), { encoding: 'utf8' })
  if (status !== 0) say(`programs for some tests are missing: ${stderr.trim()}`)
}

function checks(): boolean {
  const steps: [name: string, command: string, args: string[]][] = [
    ['lint', bin('oxlint'), ['--quiet']],
    ['format', bin('biome'), ['format', '--reporter=summary']],
  ]
  return steps.every(([name, command, args]) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
    say(`${status === 0 ? 'ok  ' : 'FAIL'} ${name}`)
    if (status !== 0) say(stdout + stderr)
    return status === 0
  })
}

function runAva(environment: Record<string, string>, only: readonly string[]): Promise<Verdict> {
  const ava = [bin('ava'), '--tap', '--concurrency', String(availableParallelism()), ...only]
  const coverage = [
    bin('c8'),
    '--reporter=json-summary',
    '--reporter=lcovonly',
    '--exclude=dist/test/**',
    '--exclude=dist/bench/**',
    '--clean=false',
    // More than a thousand processes are measured: all their reports at once do not fit in memory.
    '--merge-async',
    '--src=.',
  ]
  const [command = '', ...args] = wanted('--coverage') ? [...coverage, ...ava] : ava
  const long: Record<string, string> = wanted('--long') ? { TEST_LONG: '1' } : {}
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, NODE_NO_WARNINGS: '1', ...environment, ...long },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => child.kill(signal))
  const verdict: Verdict = { passed: 0, failed: [], skipped: [] }
  let detail = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    const point = /^(not )?ok \d+ - (.*?)(?: # (SKIP|TODO).*)?$/.exec(line)
    if (!point) {
      if (detail) say(line)
      return
    }
    const [, not, title = '', directive] = point
    detail = not !== undefined && directive === undefined
    if (directive) verdict.skipped.push(title)
    else if (not) verdict.failed.push(title)
    else verdict.passed += 1
    if (detail) say(`FAIL ${title}`)
  })
  return new Promise((resolve) => {
    child.on('close', (code) => {
      if (code !== 0 && verdict.failed.length === 0) verdict.failed.push(`ava ended with ${code}`)
      resolve(verdict)
    })
  })
}

function report({ passed, failed, skipped }: Verdict, secs: number): void {
  say('')
  for (const title of skipped) say(`skipped: ${title}`)
  for (const title of failed) say(`failed: ${title}`)
  say(
    `${passed} passed, ${failed.length} failed, ${skipped.length} skipped in ${secs.toFixed(0)} s`,
  )
}

function showCoverage(): void {
  const text = readFileSync(join(root, 'coverage', 'coverage-summary.json'), 'utf8')
  const { total } = JSON.parse(text) as { total: Record<string, { pct: number }> }
  say(`coverage: ${total['lines']?.pct} % of lines, ${total['branches']?.pct} % of branches`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
