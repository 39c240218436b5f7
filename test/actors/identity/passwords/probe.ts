/**
 * A separate process that hashes at its limit and reports memory and latency: memory is per process, and the test
 * runner's process is shared. Prints one JSON object.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { passwordPool, passwordsActor } from '../../../../actors/identity/passwords/actor.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { openPool } from '../../../../runtime/kernel/threads/pool.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'

export type ProbeReport = {
  readonly baseMib: number
  readonly peakMib: number
  readonly medianDelayMs: number
  readonly hashed: number
  readonly busy: number
  /** Refusals that came before the first hash. */
  readonly busyFirst: number
  /** Scheduling priority of every thread of the process; null if the system does not report it. */
  readonly nice: readonly number[] | null
}

const THREADS = 2
const ASKED = 60
const settings = {
  argon2_memory_kib: 65_536,
  argon2_iterations: 1,
  argon2_parallelism: 1,
  argon2_max_concurrent: THREADS,
  argon2_waiting_per_tenant_max: 8,
}

const compute = openPool<typeof import('../../../../actors/identity/passwords/compute.js')>({
  ...passwordPool(settings, THREADS),
  threadsMin: THREADS,
  queueMax: 4,
})
const random = systemRandom(systemClock)
const { ref } = spawnInline(passwordsActor, {
  settings,
  compute,
  random,
  places: 1024,
  groups: { of: () => [] },
  breaches: null,
})
// Both threads load their engine before memory is measured.
await Promise.all([1, 2, 3, 4].map(() => compute.run('smoke', undefined)))

const mib = () => process.memoryUsage.rss() / 2 ** 20
const baseMib = mib()
let peakMib = baseMib
const watch = setInterval(() => {
  peakMib = Math.max(peakMib, mib())
}, 5)
const loop = monitorEventLoopDelay({ resolution: 1 })
loop.enable()

let hashed = 0
let busy = 0
let busyFirst = 0
const ask = async (at: number) => {
  const { tag } = await ref.hash({ password: `password ${at}` })
  if (tag === 'busy') {
    busy += 1
    if (hashed === 0) busyFirst += 1
  } else hashed += 1
}
await Promise.all(Array.from({ length: ASKED }, (_, at) => ask(at)))
loop.disable()
clearInterval(watch)

const report: ProbeReport = {
  baseMib,
  peakMib,
  medianDelayMs: loop.percentile(50) / 1e6,
  hashed,
  busy,
  busyFirst,
  nice: niceOfThreads(),
}
await compute.close()
process.stdout.write(JSON.stringify(report))

function niceOfThreads(): number[] | null {
  if (process.platform !== 'linux') return null
  return readdirSync('/proc/self/task').map((thread) => {
    // proc(5): the fields after the command, which is in brackets; nice is the 19th of all.
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
  })
}
