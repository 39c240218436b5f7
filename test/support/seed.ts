/**
 * Each test process loads this first (ava.config.js). It sets one seed for the properties of every test file, so
 * that two runs do the same, and few runs of each. The long form draws a new seed: what it finds becomes a case. It also writes
 * down how long the file and each test took and what a failed test had asked, for the runner.
 */
import { appendFileSync } from 'node:fs'
import { configureGlobal } from 'fast-check'
import { keepExchanges, linesOf, watchExchanges } from './service/exchanges.js'
import { IS_LONG } from './runs.js'
import { currentFile, isRoom } from './room.js'
import { ROOM_TITLE } from '../runner/room-titles.js'

let isEnding = false

if (!IS_LONG) configureGlobal({ seed: 20_261_123, numRuns: 25 })

/** For what support code says of the file. */
process.env['TEST_FILE'] = currentFile()

const times = process.env['TEST_TIMES']
if (times !== undefined) {
  // Processes that the test starts are not test files.
  delete process.env['TEST_TIMES']
  process.once('exit', () => {
    const { user, system } = process.cpuUsage()
    const seconds = performance.now() / 1000
    const time = { file: currentFile(), seconds, cpuSeconds: (user + system) / 1e6 }
    // A room writes the seed of each member.
    if (!isRoom) appendFileSync(times, `${JSON.stringify(time)}\n`)
  })
  await watchTests(`${times}-tests`)
}

type AvaTest = {
  readonly title: string
  readonly metadata: { readonly type: string }
  run(): Promise<{ readonly passed: boolean; readonly duration: number }>
}

/** What a failed test or hook left open would keep the process, and the run would wait for it. */
async function endsWithItsTests(): Promise<void> {
  if (isEnding) return
  isEnding = true
  const { registerCompletionHandler } = await import('ava')
  registerCompletionHandler(() => process.exit())
}

/** AVA says neither how long a test took nor which of several concurrent tests made a request: its own class of tests knows. */
async function watchTests(path: string): Promise<void> {
  keepExchanges()
  const module = new URL('../lib/test.js', import.meta.resolve('ava')).href
  const { default: Test } = (await import(module)) as { default: { prototype: AvaTest } }
  const { run } = Test.prototype
  Test.prototype.run = async function watched(this: AvaTest) {
    if (this.title === ROOM_TITLE) return run.call(this)
    const { result, exchanges } = await watchExchanges(() => run.call(this))
    if (!result.passed) await endsWithItsTests()
    const seconds = result.duration / 1000
    const asked = exchanges.map((exchange) => ({
      ...exchange,
      log: exchange.requestId === undefined ? [] : linesOf(exchange.requestId),
    }))
    const time = {
      file: currentFile(),
      title: this.title,
      seconds,
      ...(result.passed ? {} : { asked }),
    }
    appendFileSync(path, `${JSON.stringify(time)}\n`)
    return result
  }
}
