/**
 * Background loops: when failing rounds make an actor not ready. The clock stands still, so the
 * tests do not wait.
 */
import test from 'ava'
import { type Lifecycle, defineActor } from '../../../runtime/kernel/actor.js'
import { type HeldClock, heldClock } from '../../support/held-clock.js'
import { wireActor } from '../../../runtime/kernel/wiring.js'
import { FAILING_MS_MAX, type Loop, Loops } from '../../../runtime/kernel/loops.js'
import { createMetrics, unreadyOf } from '../../../runtime/kernel/metrics/metrics.js'
import { inline, placement } from '../../../runtime/kernel/placement.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import { startSystem } from '../../../runtime/kernel/system.js'

const START = new Date('2026-01-01T00:00:00Z')

function failFor(loop: Loop, clock: HeldClock, ms: number): void {
  loop.failed()
  clock.advance(ms)
  loop.failed()
}

test('a loop fails once its rounds have failed for a minute, and not before', (t) => {
  const clock = heldClock(START)
  const loops = new Loops(clock)
  const [sweeps, keys] = [loops.open('sweeps'), loops.open('keys')]
  t.deepEqual(loops.failing(), [])
  failFor(sweeps, clock, FAILING_MS_MAX - 1)
  keys.succeeded()
  t.deepEqual(loops.failing(), [])
  clock.advance(1)
  t.deepEqual(loops.failing(), ['sweeps'])
  sweeps.succeeded()
  t.deepEqual(loops.failing(), [])
  // The next failure starts a new minute.
  failFor(sweeps, clock, FAILING_MS_MAX - 1)
  t.deepEqual(loops.failing(), [])
})

test('one failure is not a series, however long the loop pauses', (t) => {
  const clock = heldClock(START)
  const loops = new Loops(clock)
  const loop = loops.open('slow')
  loop.failed()
  clock.advance(10 * FAILING_MS_MAX)
  t.deepEqual(loops.failing(), [])
  loop.failed()
  t.deepEqual(loops.failing(), ['slow'])
})

test('a reopened loop keeps its state: a restart does not excuse failures', (t) => {
  const clock = heldClock(START)
  const loops = new Loops(clock)
  failFor(loops.open('rounds'), clock, FAILING_MS_MAX)
  loops.open('rounds').failed()
  t.deepEqual(loops.stats(), [{ loop: 'rounds', failures: 3, failing: true }])
})

type TickerProtocol = { tick: Ask<null, { tag: 'ticked' }> }
const ticker = address<TickerProtocol>('ticker', [])

test('a failing loop makes its actor not ready, with its name, and is in the metrics', async (t) => {
  const clock = heldClock(START)
  const metrics = createMetrics()
  let lifecycle: Lifecycle | undefined
  const tickerActor = defineActor<TickerProtocol, Record<string, never>>({
    address: ticker,
    asks: {},
    mailbox: { capacity: 4, inflightMax: 1 },
    create: (_needs, given) => {
      lifecycle = given
      return { tick: async () => ({ tag: 'ticked' }) }
    },
  })
  const system = await startSystem({
    placements: [placement(tickerActor, inline, 'async')],
    planes: ['async'],
    actorWirings: [wireActor(tickerActor, () => ({}))],
    clock,
    metrics,
  })
  t.teardown(() => system.stop())
  const loop = lifecycle!.loop('rounds')
  t.deepEqual(system.readiness(), { ready: true, unready: [] })
  failFor(loop, clock, FAILING_MS_MAX)
  t.deepEqual(system.readiness(), { ready: false, unready: ['ticker: rounds'] })
  const shown = await metrics.exposition()
  t.regex(shown, /svc_loop_failing\{actor="ticker",loop="rounds"\} 1\n/)
  t.regex(shown, /svc_loop_failed_rounds_total\{actor="ticker",loop="rounds"\} 2\n/)
  t.regex(shown, /svc_actor_ready\{actor="ticker"\} 0\n/)
  // The actor still answers.
  t.deepEqual(await system.ref(ticker).tick(null), { tag: 'ticked' })
  loop.succeeded()
  t.deepEqual(system.readiness(), { ready: true, unready: [] })
  t.regex(await metrics.exposition(), /svc_loop_failing\{actor="ticker",loop="rounds"\} 0\n/)
  t.deepEqual(unreadyOf({ ...system.stats()[0]!, ready: false }), ['ticker'])
})
