/**
 * What an idle service needs: `svc serve` with its defaults and its kms as processes, as an installation starts them.
 * Time from the command to ready, and resident memory a while after it, PostgreSQL apart. Pages that both processes map
 * count once. Needs /proc (Linux).
 *
 *     node dist/bench/runtime/idle.js
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort, spentBy } from '../foreign-program.js'
import { compare, publish } from '../harness.js'

const MAIN = fileURLToPath(new URL('../../runtime/main.js', import.meta.url))
const THREAD_POOL = fileURLToPath(new URL('../../../runtime/thread-pool.cjs', import.meta.url))
/** Without requests. V8 returns what the start needed to the system within this time. */
const IDLE_MS = 40_000
const READY_WITHIN_MS = 60_000
const POLL_MS = 10
const MIB = 1024 * 1024

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-idle-'))

let starts = 0

async function measured() {
  // The first start creates the database.
  const idleMs = starts === 0 ? 0 : IDLE_MS
  starts += 1
  const port = await freePort()
  const from = performance.now()
  const child = spawn(process.execPath, ['-r', THREAD_POOL, MAIN, 'serve'], {
    cwd: folder,
    stdio: 'ignore',
    env: {
      ...process.env,
      SVC_DATA_DIR: folder,
      SVC_SERVER__PORT: String(port),
      SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
    },
  })
  try {
    await ready(child, port)
    const readyMs = performance.now() - from
    await sleep(idleMs)
    const service = spentBy(child.pid!).rssBytes
    const others = startedBy(child.pid!).reduce((sum, pid) => sum + privateBytes(pid), 0)
    const figures = { readyMs, residentMib: (service + others) / MIB, serviceMib: service / MIB }
    return { operations: 1, figures }
  } finally {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  const deadlineMs = performance.now() + READY_WITHIN_MS
  while (performance.now() < deadlineMs) {
    if (child.exitCode !== null) throw new Error(`svc serve ended with exit code ${child.exitCode}`)
    const answer = await fetch(`http://localhost:${port}/health/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    await sleep(POLL_MS)
  }
  throw new Error('svc serve is not ready')
}

/** The Node processes that it started: the kms. */
function startedBy(root: number): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return Number(fields[1]) === root && readlinkSync(`/proc/${pid}/exe`) === process.execPath
    } catch {
      // The process has ended.
      return false
    }
  })
}

/** Resident pages that no other process maps. The program file is mapped by the service too. */
function privateBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const found = rollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm)
  return [...found].reduce((sum, [, kib]) => sum + Number(kib) * 1024, 0)
}

try {
  await publish(
    await compare({
      name: 'An idle service, started again on its embedded PostgreSQL',
      rounds: 3,
      contenders: [{ name: 'service and kms', run: measured }],
    }),
  )
} finally {
  await rm(folder, { recursive: true, force: true })
}
