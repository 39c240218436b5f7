/** How long a receiver keeps its place, and when it has to rest. */
import test from 'ava'
import { EventOrder } from '../../../../actors/webhooks/delivery/due-queue.js'
import { DeliveryLane, type LaneHost } from '../../../../actors/webhooks/delivery/delivery-lane.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import type { DueDelivery } from '../../../../storage/webhooks/deliveries.js'

const TARGET = { url: 'https://receiver.example/', secret: 'x', previousSecret: null }
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
    sender: {
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
      keysOf: () => {
        throw new Error('not used')
      },
      close: async () => undefined,
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
  const lane = new DeliveryLane(host, CLAIMED, async () => TARGET, [])
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

test('created deliveries are sent without a read, and their target is read again twice a second', async (t) => {
  const order = new EventOrder()
  const { host, sent, wasRead } = receiver(order)
  const lane = new DeliveryLane(host, CLAIMED, async () => TARGET, [delivery('a')])
  lane.add([delivery('b'), delivery('c'), delivery('d')], order.next())
  await lane.run()
  t.deepEqual(sent, ['a', 'b', 'c', 'd'])
  // One read while the last attempts run, and one after them, which ends the turn.
  t.deepEqual(wasRead, ['target', 'due', 'due'])
})

test('a delivery that was created a second after the last read waits for another read', async (t) => {
  const order = new EventOrder()
  const { host, sent, wasRead, pass } = receiver(order)
  const lane = new DeliveryLane(host, CLAIMED, async () => TARGET, [delivery('a')])
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
    sender: {
      ...host.sender,
      async send(outgoing, signal) {
        sent.push(outgoing.deliveryId)
        if (sent.length === 1) nowMs += 550
        return host.sender.send(outgoing, signal)
      },
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
