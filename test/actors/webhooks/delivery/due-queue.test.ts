/** A delivery that this worker created is queued once, however reads and its creation overlap. */
import test from 'ava'
import { DueQueue, EventOrder } from '../../../../actors/webhooks/delivery/due-queue.js'
import type { DueDelivery } from '../../../../storage/webhooks/deliveries.js'

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

test('created deliveries follow those of the read', (t) => {
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
