import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import test from 'ava'
import { until } from '../support/service/watch.js'
import { repeat } from './repeat.js'

/** The processes that one has started. */
function childrenOf(pid: number): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, 'utf8')
        return status.includes(`\nPPid:\t${pid}\n`) && !/^State:\tZ/m.test(status)
      } catch {
        return false
      }
    })
}

test.serial(
  'the runs that failed are counted, and beside each run are two busy processes',
  async (t) => {
    const lines: string[] = []
    const seen: number[] = []
    const before = childrenOf(process.pid).length
    const run = async (number: number) => {
      seen.push(childrenOf(process.pid).length - before)
      return number === 2 ? ['a test', 'another'] : []
    }
    t.is(await repeat({ count: 3, isBusy: true }, run, (line) => lines.push(line)), 1)
    t.deepEqual(seen, [2, 2, 2])
    t.deepEqual(lines, [
      'run 1 of 3: passed',
      'run 2 of 3: failed',
      'run 3 of 3: passed',
      '1 of 3 runs failed, beside 2 busy processes',
    ])
    t.is(childrenOf(process.pid).length, before)
  },
)

test.serial('the busy processes of a runner that is killed end', async (t) => {
  const module = new URL('./repeat.js', import.meta.url).href
  const code = `
    const { repeat } = await import(${JSON.stringify(module)})
    setInterval(() => {}, 1000)
    await repeat({ count: 1, isBusy: true }, () => new Promise(() => process.stdout.write('runs\\n')), () => {})`
  const runner = spawn(process.execPath, ['--input-type=module', '-e', code])
  await once(createInterface({ input: runner.stdout }), 'line')
  const busy = childrenOf(runner.pid!)
  t.is(busy.length, 2)
  runner.kill('SIGKILL')
  await until('their end', () => !busy.some(isThere))
  t.deepEqual(busy.filter(isThere), [])
})

function isThere(pid: string): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
