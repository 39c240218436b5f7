import test from 'ava'
import { Counter } from 'prom-client'
import {
  ActorMeter,
  createMetrics,
  mergeFamilies,
  mergeStats,
} from '../../../runtime/kernel/metrics/metrics.js'

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
