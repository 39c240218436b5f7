/** When and in which order deliveries are tried, and how long a receiver keeps its place. */
import test from 'ava'
import * as fc from 'fast-check'
import { DueQueue, EventOrder } from '../../../../actors/webhooks/delivery/due-queue.js'
import { DeliveryLane, type LaneHost } from '../../../../actors/webhooks/delivery/delivery-lane.js'
import { ActorUnavailable } from '../../../../runtime/kernel/actor.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import type { DueDelivery } from '../../../../storage/webhooks/deliveries.js'
import type { AttemptResult } from '../../../../actors/webhooks/delivery/protocol.js'
import {
  CIRCUIT_FAILURES,
  isAlive,
  judgeAttempt,
  readRetryAfter,
  restSecs,
  slowRestSecs,
} from '../../../../actors/webhooks/delivery/retry-schedule.js'

const TARGET = {
  url: 'https://receiver.example/',
  secret: new Uint8Array(1),
  previousSecret: null,
}
const CLAIMED = {
  tenantId: 't',
  webhookId: 'w',
  failures: 0,
  failingSince: null,
  sandbox: false,
  network: null,
}

/**
 * A receiver with always more due deliveries, which takes `answerMs` of the test's clock for a
 * response.
 */
function endless(answerMs: number, limit = Number.POSITIVE_INFINITY) {
  let nowMs = 0
  let made = 0
  const due = (): DueDelivery => {
    made += 1
    return {
      id: `d${made}`,
      tenantId: 't',
      webhookId: 'w',
      eventType: 'x',
      attemptCount: 0,
      maxAttempts: 10,
      attemptsBefore: 0,
      body: '{}',
    }
  }
  let sent = 0
  const host: LaneHost = {
    async send() {
      sent += 1
      await new Promise((resolve) => setImmediate(resolve))
      nowMs += answerMs
      return {
        attemptedAt: new Date(0),
        durationMs: answerMs,
        responseStatus: 200,
        error: null,
        retryAfterSecs: null,
      }
    },
    schedule: [0],
    outcomes: { count: () => undefined },
    log: silentLogger,
    stopping: () => false,
    nowMs: () => nowMs,
    chance: () => 0.5,
    record: async () => undefined,
    refill: async () => ({
      target: TARGET,
      due: made < limit ? [due(), due(), due()] : [],
      isFull: false,
    }),
    retarget: async () => TARGET,
    order: new EventOrder(),
    deactivate: async () => undefined,
    cancel: async () => undefined,
  }
  const lane = new DeliveryLane(host, CLAIMED, TARGET, [])
  return { lane, host, sent: () => sent }
}

test('a turn ends after ten seconds, whatever is due', async (t) => {
  const { lane, sent } = endless(1_000)
  const release = await lane.run()
  t.is(release.heldSecs, 0)
  t.true(sent() >= 10 && sent() <= 14, String(sent()))
})

test('a turn of a quick receiver ends after a thousand attempts', async (t) => {
  const { lane, sent } = endless(0)
  const release = await lane.run()
  t.is(release.heldSecs, 0)
  t.is(sent(), 1_000)
})

test('a slow receiver rests, for a minute at most', async (t) => {
  const slow = endless(6_000)
  const rest = await slow.lane.run()
  t.true(slow.sent() <= 8)
  t.true(rest.heldSecs >= 20 && rest.heldSecs <= 60, String(rest.heldSecs))
  // Even without further deliveries, so that the next event finds it resting.
  const once = endless(14_000, 1)
  t.is((await once.lane.run()).heldSecs, 60)
})

test('a delivery that cannot be signed is not an attempt, and stays due', async (t) => {
  const { host } = endless(0)
  const recorded: unknown[] = []
  const lane = new DeliveryLane(
    {
      ...host,
      send: () =>
        Promise.reject(new ActorUnavailable('webhook-signer', 'signDelivery', 'dependency')),
      record: async (attempt) => void recorded.push(attempt),
    },
    CLAIMED,
    TARGET,
    [delivery('a')],
  )
  const { heldSecs, failures } = await lane.run()
  t.deepEqual(recorded, [])
  t.is(failures, 0)
  t.is(heldSecs, 5)
})

test('created deliveries are sent without a read, and their target is read again twice a second', async (t) => {
  const order = new EventOrder()
  const { host, sent, wasRead } = receiver(order)
  const lane = new DeliveryLane(host, CLAIMED, TARGET, [delivery('a')])
  lane.add([delivery('b'), delivery('c'), delivery('d')], order.next())
  await lane.run()
  t.deepEqual(sent, ['a', 'b', 'c', 'd'])
  // One read while the last attempts run, and one after them, which ends the turn.
  t.deepEqual(wasRead, ['target', 'due', 'due'])
})

test('a delivery that was created a second after the last read waits for another read', async (t) => {
  const order = new EventOrder()
  const { host, sent, wasRead, pass } = receiver(order)
  const lane = new DeliveryLane(host, CLAIMED, TARGET, [delivery('a')])
  pass(1_001)
  lane.add([delivery('b')], order.next())
  host.refill = async () => {
    wasRead.push(`due after ${sent.length}`)
    return {
      target: TARGET,
      due: sent.length < 2 ? [delivery('retry'), delivery('b')] : [],
      isFull: false,
    }
  }
  await lane.run()
  t.deepEqual(sent, ['a', 'retry', 'b'])
  t.is(wasRead[1], 'due after 1')
})

function delivery(id: string): DueDelivery {
  const progress = { attemptCount: 0, maxAttempts: 10, attemptsBefore: 0 }
  return { id, tenantId: 't', webhookId: 'w', eventType: 'x', body: '{}', ...progress }
}

/** A receiver that takes 550 ms of the test's clock for the first response, and none for the others. */
function receiver(order: EventOrder) {
  let nowMs = 0
  const sent: string[] = []
  const wasRead: string[] = []
  const { host } = endless(0)
  const counted: { -readonly [Member in keyof LaneHost]: LaneHost[Member] } = {
    ...host,
    order,
    nowMs: () => nowMs,
    async send(outgoing, signal) {
      sent.push(outgoing.deliveryId)
      if (sent.length === 1) nowMs += 550
      return host.send(outgoing, signal)
    },
    refill: async () => {
      wasRead.push('due')
      return { target: TARGET, due: [], isFull: false }
    },
    retarget: async () => {
      wasRead.push('target')
      return TARGET
    },
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { host: counted, sent, wasRead, pass }
}

const NONE = new Set<string>()

function due(id: string): DueDelivery {
  const progress = { attemptCount: 0, maxAttempts: 3, attemptsBefore: 0 }
  return { id, tenantId: 't', webhookId: 'w', eventType: 'x', body: '{}', ...progress }
}

function taken(queue: DueQueue): string[] {
  const ids: string[] = []
  for (let one = queue.shift(); one !== undefined; one = queue.shift()) ids.push(one.id)
  return ids
}

function opened(ids: string[] = [], isFull = false) {
  const order = new EventOrder()
  return { order, queue: new DueQueue(order, ids.map(due), isFull, 0) }
}

test('created deliveries follow the deliveries that were read', (t) => {
  const { order, queue } = opened(['a'])
  queue.add([due('b'), due('c')], order.next(), 0)
  t.is(queue.size, 3)
  t.deepEqual(taken(queue), ['a', 'b', 'c'])
})

test('a read that ends during a creation may return the delivery, which is then queued once', (t) => {
  const { order, queue } = opened()
  const begunAt = order.next()
  queue.beginRead()
  queue.endRead([due('a')], false, NONE, 0)
  t.deepEqual(taken(queue), ['a'])
  // Sent and forgotten by the lane before the commit is known here.
  queue.add([due('a'), due('b')], begunAt, 0)
  t.deepEqual(taken(queue), ['b'])
})

test('a delivery that is created during a read is queued once', (t) => {
  const { order, queue } = opened()
  const begunAt = order.next()
  queue.beginRead()
  queue.add([due('a'), due('b')], begunAt, 0)
  t.is(queue.size, 0)
  queue.endRead([due('a')], false, NONE, 0)
  t.deepEqual(taken(queue), ['a', 'b'])
})

test('an attempt under way when a read began is not queued again', (t) => {
  const { order, queue } = opened(['a', 'b'])
  t.is(queue.shift()?.id, 'a')
  const begunAt = order.next()
  queue.beginRead()
  queue.endRead([due('a'), due('b')], false, new Set(['a']), 0)
  queue.add([due('a')], begunAt, 0)
  t.deepEqual(taken(queue), ['b'])
})

test('after a full read nothing is queued until a read is not full', (t) => {
  const { order, queue } = opened(['a'], true)
  queue.add([due('b')], order.next(), 0)
  t.deepEqual(taken(queue), ['a'])
  queue.beginRead()
  queue.endRead([due('b')], false, NONE, 0)
  queue.add([due('c')], order.next(), 0)
  t.deepEqual(taken(queue), ['b', 'c'])
})

test('what does not fit is left to the next read', (t) => {
  const { order, queue } = opened()
  const many = Array.from({ length: 257 }, (_, at) => due(`d${at}`))
  queue.add(many, order.next(), 0)
  queue.add([due('later')], order.next(), 0)
  t.is(queue.size, 0)
})

test('a creation that began before the lane, or before reads that are forgotten, is left to the next read', (t) => {
  const order = new EventOrder()
  const early = order.next()
  const queue = new DueQueue(order, [], false, 0)
  queue.add([due('a')], early, 0)
  t.is(queue.size, 0)
  const begunAt = order.next()
  for (let read = 0; read < 5; read += 1) {
    queue.beginRead()
    queue.endRead([], false, NONE, 0)
  }
  queue.add([due('b')], begunAt, 0)
  t.is(queue.size, 0)
  queue.add([due('c')], order.next(), 0)
  t.deepEqual(taken(queue), ['c'])
})

test('the age of the first delivery counts from its read or its creation', (t) => {
  const { order, queue } = opened(['a'])
  queue.add([due('b')], order.next(), 700)
  t.is(queue.firstQueuedMs, 0)
  queue.shift()
  t.is(queue.firstQueuedMs, 700)
  queue.beginRead()
  t.is(queue.firstQueuedMs, undefined)
  queue.endRead([due('b')], false, NONE, 900)
  t.is(queue.firstQueuedMs, 900)
})

const SCHEDULE = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
const result = (change: Partial<AttemptResult> = {}): AttemptResult => ({
  attemptedAt: new Date(0),
  durationMs: 1,
  responseStatus: 500,
  error: 'unexpected_status',
  retryAfterSecs: null,
  ...change,
})

for (const [status, verdict] of [
  [200, 'succeeded'],
  [204, 'succeeded'],
  [299, 'succeeded'],
  [301, 'retrying'],
  [304, 'retrying'],
  [400, 'failed'],
  [401, 'failed'],
  [404, 'failed'],
  [408, 'retrying'],
  [409, 'failed'],
  [410, 'failed'],
  [425, 'retrying'],
  [429, 'retrying'],
  [499, 'failed'],
  [500, 'retrying'],
  [503, 'retrying'],
  [599, 'retrying'],
  [null, 'retrying'],
] as const) {
  test(`after an answer ${status} a first attempt has ${verdict}`, (t) => {
    t.is(judgeAttempt(result({ responseStatus: status }), 1, SCHEDULE, 0.5).status, verdict)
  })
}

test('the schedule defines the number of attempts and their waits', (t) => {
  const waits = SCHEDULE.map((_, at) => judgeAttempt(result(), at + 1, SCHEDULE, 0.5).waitSecs)
  t.deepEqual(waits, [...SCHEDULE.slice(1), null])
})

test('jitter stays within a tenth, and no wait is shorter than Retry-After up to a day', (t) => {
  const chances = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(chances, fc.nat(8), fc.nat(200_000), (chance, at, retryAfterSecs) => {
      const plain = judgeAttempt(result(), at + 1, SCHEDULE, chance).waitSecs!
      const planned = SCHEDULE[at + 1]!
      t.true(plain >= planned * 0.9 - 1e-9 && plain <= planned * 1.1 + 1e-9)
      const wished = judgeAttempt(result({ retryAfterSecs }), at + 1, SCHEDULE, chance).waitSecs!
      t.true(wished >= Math.min(retryAfterSecs, 86_400))
      t.true(wished >= plain)
    }),
  )
})

const NOW = new Date('2026-01-01T00:00:00.500Z')
for (const [value, secs] of [
  [undefined, null],
  ['0', 0],
  ['120', 120],
  [' 7 ', 7],
  ['Thu, 01 Jan 2026 00:01:00 GMT', 60],
  ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
  ['-1', null],
  ['1.5', null],
  ['soon', null],
  ['', null],
  ['2026', 2026],
  ['99999999999', null],
] as const) {
  test(`Retry-After ${JSON.stringify(value)} asks for ${secs} seconds`, (t) => {
    t.is(readRetryAfter(value, NOW), secs)
  })
}

test('a receiver that responds is alive unless it reports that it is not', (t) => {
  const alive = [200, 302, 404, 410, 499].map((responseStatus) =>
    isAlive(result({ responseStatus })),
  )
  t.deepEqual(alive, [true, true, true, true, true])
  const not = [429, 500, 503, null].map((responseStatus) => isAlive(result({ responseStatus })))
  t.deepEqual(not, [false, false, false, false])
})

test('the rest of a receiver grows and never exceeds a minute', (t) => {
  t.is(restSecs(CIRCUIT_FAILURES - 1), 0)
  const rests = Array.from({ length: 6 }, (_, at) => restSecs(CIRCUIT_FAILURES + at))
  t.deepEqual(rests, [5, 10, 20, 40, 60, 60])
  t.is(restSecs(1_000_000), 60)
})

for (const [durationsMs, turnMs, rest] of [
  [[], 0, 0],
  [[10, 20, 30], 10_000, 0],
  // One slow response does not make a slow receiver.
  [[10, 10, 14_000], 14_000, 0],
  [[4_999, 4_999], 10_000, 0],
  [[5_000], 5_000, 10],
  [[6_000, 7_000, 10], 12_000, 24],
  [[14_000, 14_000], 28_000, 56],
  [[15_000], 300_000, 60],
] as const) {
  test(`the rest after answers of ${durationsMs.join(', ')} ms in ${turnMs} ms is ${rest} s`, (t) => {
    t.is(slowRestSecs(durationsMs, turnMs), rest)
  })
}
