import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { until } from '../support/service/watch.js'

const ROOT = new URL('../../../', import.meta.url).pathname
const WITHIN_MS = 120_000
const INTERRUPTED = 128

/** A test that starts one process of each kind, makes a folder and a database, and waits for ever. */
const WAITS = (report: string) => `
import { spawn } from 'node:child_process'
import { mkdtempSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { testService } from "../../support/service.js"

test('it waits', async (t) => {
  t.timeout(600_000)
  const { db, baseUrl } = await testService()
  const start = (options) => spawn('sleep', ['3600'], { stdio: 'ignore', ...options }).pid
  const folder = mkdtempSync(join(tmpdir(), 'svc-interrupt-'))
  const pids = [process.pid, start({}), start({ detached: true }), start({ env: { PATH: process.env.PATH } })]
  // It is in the session of none, and has none of the variables.
  pids.push(start({ detached: true, cwd: folder, env: { PATH: process.env.PATH } }))
  const kept = { pids, folder, servers: process.env.TEST_SERVER_FOLDER, database: db.superuserUrl, baseUrl }
  writeFileSync(${JSON.stringify(`${report}.part`)}, JSON.stringify(kept))
  renameSync(${JSON.stringify(`${report}.part`)}, ${JSON.stringify(report)})
  await new Promise((resolve) => setTimeout(resolve, 3_600_000))
})
`

type Kept = {
  readonly pids: readonly number[]
  readonly folder: string
  readonly servers: string
  readonly database: string
  readonly baseUrl: string
}

/** A run of that test alone, when everything is there. */
async function waitingRun(t: ExecutionContext): Promise<{ runner: ChildProcess; kept: Kept }> {
  const folder = mkdtempSync(join(ROOT, 'dist/test/runner/interrupted-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'waits.test.js')
  const report = join(folder, 'report.json')
  writeFileSync(file, WAITS(report))
  const runner = spawn(process.execPath, ['dist/test/run.js', relative(ROOT, file)], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  runner.stdout.on('data', (text) => (output += String(text)))
  await until('the start of the test', () => {
    if (runner.exitCode !== null) throw new Error(`the run ended:\n${output}`)
    return existsSync(report)
  })
  return { runner, kept: JSON.parse(readFileSync(report, 'utf8')) as Kept }
}

function isRunning(pid: number): boolean {
  try {
    // A zombie has ended, and waits for a parent that asks for its exit code.
    const state = /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return state !== 'Z'
  } catch {
    return false
  }
}

for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const) {
  test.serial(`a run that ${signal} interrupts leaves nothing behind`, async (t) => {
    t.timeout(2 * WITHIN_MS)
    const { runner, kept } = await waitingRun(t)
    t.deepEqual(kept.pids.map(isRunning), [true, true, true, true, true])
    runner.kill(signal)
    const [code] = (await once(runner, 'exit')) as [number]
    t.is(code, INTERRUPTED + number)
    t.deepEqual(kept.pids.filter(isRunning), [])
    t.false(existsSync(kept.folder))
    t.false(existsSync(kept.servers))
    const client = new Client({ connectionString: kept.database })
    await t.throwsAsync(client.connect(), { message: /ECONNREFUSED|ENOENT/ })
    await t.throwsAsync(fetch(`${kept.baseUrl}/health/live`))
  })
}
