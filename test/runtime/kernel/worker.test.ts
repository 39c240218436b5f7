import test from 'ava'
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import { FAILING_MS_MAX } from '../../../runtime/kernel/loops.js'
import { heldClock } from '../../../runtime/kernel/clock.js'
import { createMetrics } from '../../../runtime/kernel/metrics/metrics.js'
import { inline, placement } from '../../../runtime/kernel/placement.js'
import { startSystem } from '../../../runtime/kernel/system.js'
import { wireActor } from '../../../runtime/kernel/wiring.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'

type Needs = { readonly work: (lifecycle: Lifecycle) => Promise<void> }

const nightWorker = defineWorker<Needs>({
  name: 'night',
  asks: {},
  run: ({ work }, lifecycle) => work(lifecycle),
})

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

function startNight(work: Needs['work'], closed: string[] = []) {
  const clock = heldClock(new Date(0))
  const metrics = createMetrics()
  const started = startSystem({
    placements: [placement(nightWorker, inline, 'async')],
    planes: ['async'],
    actorWirings: [
      wireActor(nightWorker, ({ onStop }) => {
        onStop(async () => void closed.push('closed'))
        return { work }
      }),
    ],
    clock,
    metrics,
  })
  return { clock, metrics, started }
}

test('a worker runs from the start of the system until the drain, then its resources close', async (t) => {
  const events: string[] = []
  const { started } = startNight(async ({ signal }) => {
    events.push('runs')
    await aborted(signal)
    events.push('ended')
  }, events)
  const system = await started
  await new Promise((resolve) => setImmediate(resolve))
  t.deepEqual(events, ['runs'])
  t.true(await system.drain(60_000))
  t.deepEqual(events, ['runs', 'ended', 'closed'])
})

for (const [what, error] of [
  ['a defect', new Error('a defect')],
  ['an unavailable dependency', new DependencyUnavailable('database')],
] as const)
  test(`a worker that ends by ${what} is restarted`, async (t) => {
    let runs = 0
    const again = new Promise<void>((resolve) => {
      const { started, metrics } = startNight(async ({ signal }) => {
        runs += 1
        if (runs === 1) throw error
        resolve()
        await aborted(signal)
      })
      void started.then((system) => t.teardown(() => system.stop()))
      t.context = metrics
    })
    await again
    t.is(runs, 2)
    const shown = await (t.context as ReturnType<typeof createMetrics>).exposition()
    t.regex(shown, /svc_actor_restarts_total\{actor="night"\} 1\n/)
  })

test('a worker that returns is finished and stays ready', async (t) => {
  let runs = 0
  const { started } = startNight(async () => {
    runs += 1
  })
  const system = await started
  t.teardown(() => system.stop())
  await new Promise((resolve) => setImmediate(resolve))
  t.is(runs, 1)
  t.deepEqual(system.readiness(), { ready: true, unready: [] })
})

test('a worker whose rounds fail for a minute is not ready', async (t) => {
  let fail = () => {}
  const { started, clock } = startNight(async ({ signal, loop }) => {
    const rounds = loop('rounds')
    fail = () => rounds.failed()
    await aborted(signal)
  })
  const system = await started
  t.teardown(() => system.stop())
  await new Promise((resolve) => setImmediate(resolve))
  fail()
  clock.advance(FAILING_MS_MAX)
  fail()
  t.deepEqual(system.readiness(), { ready: false, unready: ['night: rounds'] })
})
