import test from 'ava'
import * as fc from 'fast-check'
import { FairQueue, QueueItem } from '../../../../runtime/kernel/fairness/fair-queue.js'

class Item extends QueueItem {
  readonly name: string
  constructor(share: string, name: string) {
    super()
    this.share = share
    this.name = name
  }
}

const items = (share: string, count: number) =>
  Array.from({ length: count }, (_, index) => new Item(share, `${share}${index}`))

function drain(queue: FairQueue<Item>): string[] {
  const names: string[] = []
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) names.push(item.name)
  return names
}

test('keys take turns, and each keeps its order', (t) => {
  const queue = new FairQueue<Item>({ capacity: 10 })
  for (const item of [...items('a', 4), ...items('b', 2), ...items('c', 1)]) queue.push(item)
  t.is(queue.size, 7)
  t.is(queue.keys, 3)
  t.deepEqual(drain(queue), ['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3'])
  t.is(queue.size, 0)
})

test('a key of weight two sends two in its turn', (t) => {
  const queue = new FairQueue<Item>({ capacity: 10, weightOf: (key) => (key === 'a' ? 2 : 1) })
  for (const item of [...items('a', 4), ...items('b', 2)]) queue.push(item)
  t.deepEqual(drain(queue), ['a0', 'a1', 'b0', 'a2', 'a3', 'b1'])
})

test('a key at its bound is refused, the empty key has none', (t) => {
  const queue = new FairQueue<Item>({ capacity: 10, perKeyMax: 2 })
  t.deepEqual(
    items('a', 3).map((item) => queue.push(item)),
    ['queued', 'queued', 'key_full'],
  )
  t.deepEqual(
    items('', 3).map((item) => queue.push(item)),
    ['queued', 'queued', 'queued'],
  )
})

test('a full queue takes from the largest key for a smaller one, never the other way', (t) => {
  const queue = new FairQueue<Item>({ capacity: 4 })
  const [first, ...others] = items('a', 5)
  t.is(queue.push(first!), 'queued')
  t.deepEqual(
    others.map((item) => queue.push(item)),
    ['queued', 'queued', 'queued', 'full'],
  )
  const displaced = queue.push(new Item('b', 'b0'))
  t.true(typeof displaced === 'object' && displaced.item.name === 'a3')
  t.true(typeof queue.push(new Item('b', 'b1')) === 'object')
  t.is(queue.push(new Item('b', 'b2')), 'full')
  t.deepEqual(drain(queue), ['a0', 'b0', 'a1', 'b1'])
})

test('a removed item is not returned, and its key keeps its place', (t) => {
  const queue = new FairQueue<Item>({ capacity: 10 })
  const [a0, a1] = items('a', 2)
  const [b0] = items('b', 1)
  for (const item of [a0!, a1!, b0!]) queue.push(item)
  t.true(queue.remove(a0!))
  t.false(queue.remove(a0!))
  t.false(queue.remove(new Item('a', 'never')))
  t.deepEqual([...queue].map(({ name }) => name).toSorted(), ['a1', 'b0'])
  t.deepEqual(drain(queue), ['a1', 'b0'])
})

test('any sequence of operations keeps the order within a key and turns between keys', (t) => {
  const step = fc.oneof(
    fc.record({ act: fc.constant('push' as const), key: fc.constantFrom('a', 'b', 'c', 'd') }),
    fc.record({ act: fc.constant('shift' as const), key: fc.constant('') }),
    fc.record({ act: fc.constant('remove' as const), key: fc.constantFrom('a', 'b', 'c', 'd') }),
  )
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200 }),
      fc.integer({ min: 1, max: 12 }),
      (steps, capacity) => {
        const queue = new FairQueue<Item>({ capacity })
        const model = new Map<string, Item[]>()
        const held = () => [...model.values()].reduce((sum, list) => sum + list.length, 0)
        let made = 0
        for (const { act, key } of steps) {
          if (act === 'push') {
            const item = new Item(key, `${key}${(made += 1)}`)
            const before = held()
            const pushed = queue.push(item)
            if (pushed === 'full') {
              const largest = Math.max(...[...model.values()].map((list) => list.length))
              t.true(before === capacity && (model.get(key)?.length ?? 0) + 1 >= largest)
              continue
            }
            if (typeof pushed === 'object') {
              const list = model.get(pushed.item.share)!
              t.is(list.pop(), pushed.item)
            }
            model.set(key, [...(model.get(key) ?? []), item])
          } else if (act === 'shift') {
            const item = queue.shift()
            t.is(item === undefined, held() === 0)
            if (item !== undefined) t.is(model.get(item.share)!.shift(), item)
          } else {
            const item = model.get(key)?.pop()
            if (item !== undefined) t.true(queue.remove(item))
          }
          t.is(queue.size, held())
        }
        // While every key has items, no key gets two turns before every key had one.
        const keys = [...model].filter(([, list]) => list.length > 0).map(([key]) => key)
        const round = keys.map(() => queue.shift()!.share)
        t.deepEqual(round.toSorted(), keys.toSorted())
      },
    ),
    { seed: 42, numRuns: 300 },
  )
})
