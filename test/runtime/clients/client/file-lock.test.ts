/**
 * The lock of an identity file: one process at a time, also when all of them find its holder dead.
 */
import { fork, type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { holdingIdentity } from '../../../../runtime/clients/client/identity-file.js'
import { IS_LONG } from '../../../support/runs.js'

const HOLDER = fileURLToPath(new URL('./lock-holder.js', import.meta.url))
/** Three kinds of locks, three times. */
const [PROCESSES, ROUNDS] = IS_LONG ? [6, 40] : [3, 9]
/** The id of an ended process. */
const { pid: dead } = spawnSync(process.execPath, ['--version'])
const token = (digit: string) => digit.repeat(24)

function folder(t: ExecutionContext): string {
  const at = mkdtempSync(join(tmpdir(), 'svc-lock-'))
  t.teardown(() => rmSync(at, { recursive: true }))
  return at
}

/** How many of the processes had the lock alone, when all want it at the same time. */
async function allWant(processes: readonly ChildProcess[]): Promise<number> {
  const answers = processes.map((one) => once(one, 'message'))
  for (const one of processes) one.send('go')
  return (await Promise.all(answers)).filter(([alone]) => alone === true).length
}

test('of many processes that find a dead holder, one at a time succeeds it', async (t) => {
  t.timeout(120_000)
  const path = join(folder(t), 'agent.json')
  const processes = Array.from({ length: PROCESSES }, () => fork(HOLDER, [path], { execArgv: [] }))
  t.teardown(() => {
    for (const one of processes) one.kill('SIGKILL')
  })
  for (let round = 0; round < ROUNDS; round += 1) {
    const digit = String(round % 10)
    // In its earlier format, in its present one, and with a process that died while it succeeded
    // another one.
    if (round % 3 === 0) writeFileSync(`${path}.lock`, String(dead))
    else writeFileSync(`${path}.lock`, `${dead} ${token(digit)}`)
    if (round % 3 === 2)
      writeFileSync(`${path}.lock.${dead}-${token(digit)}`, `${dead} ${token('a')}`)
    t.is(await allWant(processes), PROCESSES, `round ${round}`)
    t.deepEqual(readdirSync(join(path, '..')), [], 'nothing is left behind')
  }
})

test('a lock names its holder, and is removed with it', async (t) => {
  const path = join(folder(t), 'agent.json')
  const named = await holdingIdentity(path, async () => readFileSync(`${path}.lock`, 'utf8'))
  t.is(named.split(' ')[0], String(process.pid))
  await t.throwsAsync(
    holdingIdentity(path, () => Promise.reject(new Error('the work failed'))),
    { message: 'the work failed' },
  )
  t.deepEqual(readdirSync(join(path, '..')), [])
})

test('a file that replaced the lock is left in place', async (t) => {
  const path = join(folder(t), 'agent.json')
  const other = `${process.ppid} ${token('b')}`
  await holdingIdentity(path, async () => writeFileSync(`${path}.lock`, other))
  t.is(readFileSync(`${path}.lock`, 'utf8'), other)
})
