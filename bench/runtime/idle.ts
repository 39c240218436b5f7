/**
 * What an idle service needs: `svc serve` with its defaults and its kms as processes, as an installation starts them.
 * Time from the command to ready, and resident memory a while after it, PostgreSQL apart. Needs /proc (Linux).
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
/** Without requests. Background loops have run, and the first garbage is collected. */
const IDLE_MS = 10_000
const READY_WITHIN_MS = 60_000
const POLL_MS = 10
const MIB = 1024 * 1024

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-idle-'))

async function measured() {
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
    await sleep(IDLE_MS)
    const processes = nodeProcesses(child.pid!)
    const bytes = processes.map((pid) => spentBy(pid).rssBytes)
    const resident = bytes.reduce((sum, each) => sum + each, 0)
    return {
      operations: 1,
      figures: {
        readyMs,
        residentMib: resident / MIB,
        serviceMib: spentBy(child.pid!).rssBytes / MIB,
      },
    }
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

/** The service and the Node processes that it started: the kms. */
function nodeProcesses(root: number): readonly number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')
      parents.set(Number(name), Number(fields[1]))
    } catch {
      // The process has ended.
    }
  }
  const isNode = (pid: number) => readlinkSync(`/proc/${pid}/exe`) === process.execPath
  const children = [...parents].filter(([, parent]) => parent === root).map(([pid]) => pid)
  return [root, ...children.filter(isNode)]
}

try {
  await publish(
    await compare({
      name: 'An idle service, started again on its embedded PostgreSQL',
      rounds: 3,
      // The first start creates the database.
      contenders: [{ name: 'service and kms', run: measured }],
    }),
  )
} finally {
  await rm(folder, { recursive: true, force: true })
}
