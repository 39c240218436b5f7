/**
 * Each test process loads this first (ava.config.js). It sets one seed for the properties of every test file, so
 * that two runs do the same. The long form draws a seed of its own: what it finds becomes a case. It also writes
 * down how long the file took, for the runner.
 */
import { appendFileSync } from 'node:fs'
import test from 'ava'
import { configureGlobal } from 'fast-check'

if (process.env['TEST_LONG'] !== '1') configureGlobal({ seed: 20_261_123 })

/** For what support code says of the file. */
const file = new URL(test.meta.file).pathname
process.env['TEST_FILE'] = file

const times = process.env['TEST_TIMES']
if (times !== undefined) {
  // Processes that the test starts are not test files.
  delete process.env['TEST_TIMES']
  process.once('exit', () => {
    const { user, system } = process.cpuUsage()
    const time = { file, seconds: performance.now() / 1000, cpuSeconds: (user + system) / 1e6 }
    appendFileSync(times, `${JSON.stringify(time)}\n`)
  })
}
