/** Small parts of the runtime. They share a process. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { Counter } from 'prom-client'
import * as fc from 'fast-check'
import { defineActor, type AnyDefinition, type Lifecycle } from '../../../runtime/kernel/actor.js'
import { NotPlainData, copyMessage, discardMessage } from '../../../runtime/kernel/envelope.js'
import { createLogger, silentLogger } from '../../../runtime/kernel/log.js'
import { FAILING_MS_MAX, Loops, type Loop } from '../../../runtime/kernel/loops.js'
import {
  ActorMeter,
  createMetrics,
  mergeFamilies,
  mergeStats,
  unreadyOf,
} from '../../../runtime/kernel/metrics/metrics.js'
import {
  askCycles,
  inOrderOfAsks,
  inline,
  placement,
  placementsOf,
  pool,
  strandedAsks,
  thread,
} from '../../../runtime/kernel/placement.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { bytePipe } from '../../../runtime/kernel/stream.js'
import { SUPERVISION_DEFAULT, Supervisor } from '../../../runtime/kernel/supervisor.js'
import { startSystem } from '../../../runtime/kernel/system.js'
import { flatString } from '../../../runtime/kernel/text/flat-string.js'
import { isoTime } from '../../../runtime/kernel/text/iso-time.js'
import { quoted } from '../../../runtime/kernel/text/json-text.js'
import { SharedText } from '../../../runtime/kernel/text/shared-text.js'
import { wireActor } from '../../../runtime/kernel/wiring.js'
import { heldClock, type HeldClock } from '../../support/held-clock.js'
import { runs } from '../../support/runs.js'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const clock = heldClock(new Date('2030-01-01T00:00:00.123Z'))
const random = systemRandom(clock)

test('a UUID has version 7, begins with the time, and is unique', (t) => {
  const ids = Array.from({ length: 2000 }, () => random.uuid())
  t.is(new Set(ids).size, ids.length)
  for (const id of ids) t.regex(id, UUID_V7)
  const ms = Number.parseInt(ids[0]!.slice(0, 13).replace('-', ''), 16)
  t.is(ms, clock.now().getTime())
})

test('UUIDs of later milliseconds sort later', (t) => {
  const before = random.uuid()
  clock.advance(1)
  t.true(before < random.uuid())
})

test('a token has the requested length and no padding', (t) => {
  t.regex(random.token(32), /^[A-Za-z0-9_-]{43}$/)
  t.is(random.bytes(17).byteLength, 17)
  t.not(random.token(16), random.token(16))
})

/** Hand-written timestamps and strings equal the results of the built-in functions. */
const NUM_RUNS = runs(2_000)

test('isoTime returns the same text as toISOString, in any order of times', (t) => {
  const anywhere = fc.date({ noInvalidDate: true })
  const close = fc.integer({ min: -3_000, max: 3_000 }).map((ms) => new Date(ms))
  fc.assert(
    fc.property(fc.array(fc.oneof(anywhere, close), { minLength: 1, maxLength: 8 }), (dates) => {
      for (const date of dates) t.is(isoTime(date), date.toISOString())
    }),
    { numRuns: NUM_RUNS },
  )
})

test('an invalid date throws, and does not affect the next one', (t) => {
  const date = new Date('2026-02-28T23:59:59.007Z')
  t.is(isoTime(date), '2026-02-28T23:59:59.007Z')
  t.throws(() => isoTime(new Date(Number.NaN)), { instanceOf: RangeError })
  t.is(isoTime(date), '2026-02-28T23:59:59.007Z')
})

test('quoted returns the same text as JSON.stringify', (t) => {
  const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.constant('"\\\n\u2028\x7f'))
  fc.assert(
    fc.property(fc.option(texts), (text) => {
      t.is(quoted(text), JSON.stringify(text))
    }),
    { numRuns: NUM_RUNS },
  )
})

function logged(write: (log: ReturnType<typeof createLogger>) => void): Record<string, never> {
  let line = ''
  write(createLogger({ level: 'info', destination: { write: (text) => void (line += text) } }))
  return JSON.parse(line)
}

test('an error is logged with type, message, code and causes, and no other members', (t) => {
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  const error = Object.assign(new TypeError('lost', { cause }), {
    client: { password: 'canary' },
    parameters: ['canary'],
  })
  const line = logged((log) => log.error({ err: error }, 'failed'))
  t.like(line, {
    err: {
      type: 'TypeError',
      message: 'lost',
      cause: { type: 'Error', message: 'refused', error_code: 'ECONNREFUSED' },
    },
  })
  t.notRegex(JSON.stringify(line), /canary/)
})

test('a cyclic chain of causes ends', (t) => {
  const error = new Error('round')
  error.cause = error
  t.regex(JSON.stringify(logged((log) => log.error({ err: error }))), /round/)
})

test('members with secrets are removed down to the third level', (t) => {
  const secret = { access_token: 'canary', deeper: { client_secret: 'canary' } }
  const line = logged((log) => log.info({ password: 'canary', body: secret }))
  t.notRegex(JSON.stringify(line), /canary/)
})

/**
 * Background loops: when failing rounds make an actor not ready. The clock stands still, so the
 * tests do not wait.
 */
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
const ticker = address<TickerProtocol>('ticker')

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

class Money {
  readonly cents = 1
}
const circle: { self?: unknown } = {}
circle.self = circle

for (const [what, value, complaint] of [
  ['a function', { on: () => {} }, 'message.on is a function'],
  ['a symbol', [Symbol('s')], 'message[0] is a symbol'],
  ['a class instance', { price: new Money() }, 'message.price is a Money'],
  ['a Map', { m: new Map() }, 'message.m is a Map'],
  ['an error', { e: new Error('no') }, 'message.e is a Error'],
  [
    'a member named __proto__',
    JSON.parse('{"__proto__":{}}'),
    'message has a member named __proto__',
  ],
] as const) {
  test(`${what} is not plain data`, (t) => {
    t.throws(() => copyMessage(value), { instanceOf: NotPlainData, message: complaint })
  })
}

test('a cycle is detected', (t) => {
  t.throws(() => copyMessage(circle), { message: /nested too deeply or in a cycle$/ })
})

test('a shared text keeps its identity in a copy', (t) => {
  const shared = new SharedText('text')
  t.is(copyMessage({ shared }).shared, shared)
})

test('a copy shares nothing with the original, except for streams', (t) => {
  const { stream } = bytePipe()
  const message = { bytes: Uint8Array.of(1), when: new Date(5), list: [{ a: 1 }], stream }
  const copy = copyMessage(message)
  t.is(copy.stream, stream)
  t.deepEqual({ ...copy, stream: 0 }, { ...message, stream: 0 })
  t.not(copy.bytes, message.bytes)
  t.not(copy.when, message.when)
  t.not(copy.list[0], message.list[0])
})

test('the streams of a discarded message are cancelled', (t) => {
  const { stream, writer } = bytePipe()
  discardMessage({ tag: 'ok', deep: [{ stream }], bytes: new Uint8Array(10) })
  t.false(writer.open)
})

const WHOLE_CHARS = 100_000
const KEPT = 200

test('flatString returns the same text', (t) => {
  for (const text of ['', 'short', 'client_id=00000000-0000', 'ünïcode \u{1f600} and more of it']) {
    t.is(flatString(text), text)
  }
})

test('flatString keeps no reference to the original text', (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const kept: string[] = []
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < KEPT; at += 1) {
    const whole = `${'x'.repeat(WHOLE_CHARS)}${at}`
    kept.push(flatString(whole.slice(20, 60)))
  }
  collect()
  const grown = process.memoryUsage().heapUsed - before
  t.is(kept.length, KEPT)
  t.true(grown < (KEPT * WHOLE_CHARS) / 4, `${grown} bytes more`)
})

function supervise(policy: Partial<typeof SUPERVISION_DEFAULT> = {}) {
  const clock = heldClock(new Date(0))
  const changes: boolean[] = []
  const supervisor = new Supervisor({
    policy: { ...SUPERVISION_DEFAULT, restartsMax: 3, windowMs: 1000, ...policy },
    clock,
    log: silentLogger,
    onReadiness: (ready) => changes.push(ready),
  })
  return { clock, changes, supervisor }
}

test('the first restart is immediate, the next ones wait longer and longer, up to a limit', (t) => {
  const { supervisor } = supervise({ backoffMs: 10, backoffMsMax: 50 })
  const waits = Array.from({ length: 6 }, () => supervisor.failed())
  t.deepEqual(
    waits.map((verdict) => (verdict.tag === 'restart' ? verdict.afterMs : -1)),
    [0, 10, 20, 40, 50, 50],
  )
})

test('one failure too many ends readiness, and a window without failures restores it', (t) => {
  const { supervisor, clock, changes } = supervise()
  for (let failure = 0; failure < 3; failure += 1) supervisor.failed()
  t.true(supervisor.ready)
  clock.advance(500)
  supervisor.failed()
  t.false(supervisor.ready)
  clock.advance(999)
  t.false(supervisor.ready, 'the last failure is still within the window')
  clock.advance(1)
  t.true(supervisor.ready)
  t.deepEqual(changes, [false, true])
})

test('failures that are far enough apart are normal', (t) => {
  const { supervisor, clock } = supervise()
  for (let failure = 0; failure < 50; failure += 1) {
    supervisor.failed()
    clock.advance(400)
    t.true(supervisor.ready)
  }
})

test('an actor may keep its instance after failures, which still count', (t) => {
  const { supervisor } = supervise({ onFailure: 'resume' })
  for (let failure = 0; failure < 4; failure += 1) t.is(supervisor.failed().tag, 'resume')
  t.false(supervisor.ready)
})

test('actors, own counters and other threads share one exposition', async (t) => {
  const metrics = createMetrics()
  const meter = new ActorMeter('tokens', () => ({ waiting: 3, inflight: 2 }))
  metrics.watch(meter)
  meter.accepted = 7
  meter.count('mailbox_full')
  meter.waited(0.02)
  meter.served(70)
  const registers = [metrics.registry]
  new Counter({ name: 'svc_test_total', help: 'A test.', labelNames: ['way'], registers }).inc({
    way: 'a "quoted" one',
  })
  const remove = metrics.include(async () => [
    {
      name: 'svc_test_total',
      help: 'A test.',
      type: 'counter',
      values: [
        { labels: { way: 'a "quoted" one' }, value: 4 },
        { labels: { way: 'another' }, value: 1 },
      ],
    },
  ])
  const text = await metrics.exposition()
  for (const line of [
    'svc_actor_waiting{actor="tokens"} 3',
    'svc_actor_inflight{actor="tokens"} 2',
    'svc_actor_accepted_total{actor="tokens"} 7',
    'svc_actor_unavailable_total{actor="tokens",reason="mailbox_full"} 1',
    'svc_actor_wait_seconds_bucket{actor="tokens",le="0.00005"} 1',
    'svc_actor_service_seconds_bucket{actor="tokens",le="0.05"} 0',
    'svc_actor_service_seconds_bucket{actor="tokens",le="0.1"} 1',
    'svc_actor_service_seconds_bucket{actor="tokens",le="+Inf"} 1',
    'svc_actor_service_seconds_sum{actor="tokens"} 0.07',
    'svc_test_total{way="a \\"quoted\\" one"} 5',
    'svc_test_total{way="another"} 1',
    '# TYPE svc_actor_wait_seconds histogram',
  ]) {
    t.true(text.includes(`${line}\n`), line)
  }
  remove()
  t.false((await metrics.exposition()).includes('another'))
})

test('instances of an actor on several threads are one in the stats', (t) => {
  const of = (actor: string, count: number, ready = true) => {
    const meter = new ActorMeter(actor, () => ({ waiting: count, inflight: 1 }))
    meter.accepted = 10 * count
    meter.answered = count
    meter.restarts = count
    meter.count('failed')
    meter.readiness = () => ready
    return meter.stats()
  }
  const merged = mergeStats([of('tokens', 1), of('users', 1), of('tokens', 2, false)])
  t.deepEqual(
    merged.map(({ actor, ready }) => [actor, ready]),
    [
      ['tokens', false],
      ['users', true],
    ],
  )
  t.like(merged[0], { waiting: 3, inflight: 2, accepted: 30, answered: 3, restarts: 3 })
  t.is(merged[0]!.unavailable.failed, 2)
})

test('a family names how samples of several threads become one', (t) => {
  for (const [aggregator, expected] of [
    ['sum', 4],
    ['min', 1],
    ['max', 3],
    [undefined, 4],
  ] as const) {
    const family = (value: number) => ({
      name: 'x',
      help: 'h',
      type: 'gauge',
      values: [{ labels: {}, value }],
      ...(aggregator === undefined ? {} : { aggregator }),
    })
    const [merged] = mergeFamilies([[family(3)], [family(1)]])
    t.is(merged!.values[0]!.value, expected, aggregator)
  }
})

test('merging keeps families and adds up samples with the same labels', (t) => {
  const family = (value: number, labels: Record<string, string>) => ({
    name: 'x',
    help: 'h',
    type: 'gauge',
    values: [{ labels, value }],
  })
  const [merged] = mergeFamilies([
    [family(1, { a: '1', b: '2' })],
    [family(2, { b: '2', a: '1' })],
    [family(4, { a: '2' })],
  ])
  t.deepEqual(
    merged!.values.map(({ value }) => value),
    [3, 4],
  )
})

const actor = (name: string, ...asks: string[]): AnyDefinition => ({
  address: address(name),
  asks: Object.fromEntries(asks.map((asked) => [asked, address(asked)])),
  mailbox: { capacity: 1, inflightMax: 1 },
})
const names = (placements: readonly { definition: AnyDefinition }[]) =>
  placements.map(({ definition }) => definition.address.name)

test('an ask is stranded when its target runs only in another plane', (t) => {
  const placements = [
    placement(actor('tokens'), inline, 'auth'),
    placement(actor('delegation', 'tokens'), inline, 'auth', 'control'),
    placement(actor('upkeep', 'absent'), thread('night'), 'async'),
  ]
  t.deepEqual(strandedAsks(placements), [
    'control: delegation asks tokens',
    'async: upkeep asks absent',
  ])
})

test('asks that meet in every plane are not stranded', (t) => {
  const placements = [
    placement(actor('delegation', 'tokens'), inline, 'auth'),
    placement(actor('tokens'), pool('sums', { threadsMax: 2 }), 'auth', 'control'),
  ]
  t.deepEqual(strandedAsks(placements), [])
})

test('a cycle of asks is found and named, a diamond is not a cycle', (t) => {
  const diamond = [
    placement(actor('top', 'left', 'right'), inline, 'p'),
    placement(actor('left', 'bottom'), inline, 'p'),
    placement(actor('right', 'bottom'), inline, 'p'),
    placement(actor('bottom'), inline, 'p'),
  ]
  t.deepEqual(askCycles(diamond), [])
  const circle = [...diamond.slice(0, 3), placement(actor('bottom', 'top'), inline, 'p')]
  t.deepEqual(askCycles(circle)[0], ['top', 'left', 'bottom', 'top'])
  t.deepEqual(askCycles([placement(actor('self', 'self'), inline, 'p')]), [['self', 'self']])
})

test('an asked actor precedes its asker', (t) => {
  const placements = [
    placement(actor('a', 'b', 'c'), inline, 'p'),
    placement(actor('b', 'c'), inline, 'p'),
    placement(actor('c'), inline, 'p'),
    placement(actor('d', 'a'), inline, 'p'),
  ]
  t.deepEqual(names(inOrderOfAsks(placements)), ['c', 'b', 'a', 'd'])
})

test('a process has the placements of its planes', (t) => {
  const placements = [
    placement(actor('x'), inline, 'auth', 'control'),
    placement(actor('y'), inline, 'async'),
    placement(actor('z'), inline, 'control'),
  ]
  t.deepEqual(names(placementsOf(placements, ['control'])), ['x', 'z'])
  t.deepEqual(names(placementsOf(placements, ['auth', 'async'])), ['x', 'y'])
})
