import test from 'ava'
import {
  FairShare,
  isRefused,
  type Release,
  ShareCounts,
} from '../../../../runtime/kernel/fairness/fair-share.js'

const levels = [
  { name: 'tenant', max: 4 },
  { name: 'agent', max: 2 },
]

function held(answer: unknown): Release {
  if (typeof answer !== 'function') throw new Error(`refused: ${JSON.stringify(answer)}`)
  return answer as Release
}

test('the bounds of an agent, its tenant and the total all hold', (t) => {
  const counts = new ShareCounts()
  const share = new FairShare({ resource: 'calls', total: 6, levels, counts })
  const releases = [0, 1].map(() => held(share.tryAcquire(['t1', 'a1'])))
  t.deepEqual(share.tryAcquire(['t1', 'a1']), { refused: 'agent' })
  for (const agent of ['a2', 'a3']) held(share.tryAcquire(['t1', agent]))
  t.deepEqual(share.tryAcquire(['t1', 'a4']), { refused: 'tenant' })
  held(share.tryAcquire(['t2', 'b1'], 2))
  t.deepEqual(share.tryAcquire(['t3', 'c1']), { refused: 'total' })
  t.is(share.inUse, 6)
  t.is(counts.refusedOf('calls'), 3)
  const [refusals] = counts.families
  t.deepEqual(refusals?.read(), [{ labels: { resource: 'calls' }, value: 3 }])
  releases[0]!()
  releases[0]!()
  t.is(share.inUse, 5)
  t.is(share.usedBy(1, 'a1'), 1)
  held(share.tryAcquire(['t3', 'c1']))
})

test('units are taken all or none, and never beyond a bound', async (t) => {
  const share = new FairShare({
    resource: 'bytes',
    total: 10,
    levels: [{ name: 'tenant', max: 8 }],
  })
  t.deepEqual(await share.acquire(['t1'], 9), { refused: 'tenant' })
  const release = held(await share.acquire(['t1'], 8))
  t.deepEqual(share.tryAcquire(['t2'], 3), { refused: 'total' })
  release()
  t.is(share.inUse, 0)
  t.is(share.usedBy(0, 't1'), 0)
})

test('waiting keys take turns; a key at its bound delays no other', async (t) => {
  const share = new FairShare({
    resource: 'connections',
    total: 3,
    levels: [{ name: 'tenant', max: 2 }],
    waitingPerKeyMax: 10,
  })
  const order: string[] = []
  const running = new Map<string, Release[]>()
  const ask = async (key: string) => {
    const release = held(await share.acquire([key]))
    order.push(key)
    running.set(key, [...(running.get(key) ?? []), release])
  }
  const settled = () => new Promise(setImmediate)
  for (const key of 'hhhhhhvv') void ask(key)
  await settled()
  t.deepEqual(order, ['h', 'h', 'v'])
  t.is(share.waiting, 5)
  for (let freed = 0; freed < 2; freed += 1) {
    running.get('h')!.shift()!()
    await settled()
  }
  t.deepEqual(order.slice(3), ['h', 'v'], 'five wait, and yet each key has the next turn')
  while (order.length < 8) {
    const next = [...running.values()].find((list) => list.length > 0)
    next!.shift()!()
    await settled()
  }
  t.is(order.filter((key) => key === 'h').length, 6)
})

test('a waiter that gives up leaves, and too many under one key are refused', async (t) => {
  const share = new FairShare({
    resource: 'hashes',
    total: 1,
    levels: [{ name: 'tenant', max: 1 }],
    waitingPerKeyMax: 1,
  })
  const release = held(share.tryAcquire(['t1']))
  const leaving = new AbortController()
  const left = share.acquire(['t1'], 1, leaving.signal)
  t.deepEqual(await share.acquire(['t1']), { refused: 'tenant' })
  leaving.abort(new Error('left'))
  await t.throwsAsync(left, { message: 'left' })
  t.is(share.waiting, 0)
  await t.throwsAsync(share.acquire(['t1'], 1, leaving.signal), { message: 'left' })
  const next = share.acquire(['t1'])
  release()
  const got = await next
  t.false(isRefused(got))
})

const SMALL = [{ name: 'small', part: 1 / 2 }]
const oneLevel = [{ name: 'tenant', max: 8 }]

test('keys of a group hold at most their part of the total together', (t) => {
  const share = new FairShare({ resource: 'calls', total: 8, levels: oneLevel })
  const releases = ['s1', 's2', 's3', 's4'].map((key) =>
    held(share.tryAcquire([key], 1, { groups: SMALL })),
  )
  t.deepEqual(share.tryAcquire(['s5'], 1, { groups: SMALL }), { refused: 'small' })
  for (const key of ['p1', 'p2', 'p3', 'p4']) held(share.tryAcquire([key]))
  t.deepEqual(share.tryAcquire(['p5']), { refused: 'total' })
  releases[0]!()
  releases[0]!()
  held(share.tryAcquire(['s5'], 1, { groups: SMALL }))
})

test('a key takes back the oldest unit that can end of the largest key', (t) => {
  const share = new FairShare({ resource: 'calls', total: 6, levels: oneLevel })
  const ended: string[] = []
  const take = (key: string, name: string, canEnd = true) =>
    share.tryAcquire([key], 1, {
      groups: SMALL.filter(() => key.startsWith('s')),
      giveUp: () => canEnd && ended.push(name) > 0,
    })
  held(take('p1', 'p1-a', false))
  const [, second] = ['p1-b', 'p1-c'].map((name) => held(take('p1', name)))
  for (const name of ['s1-a', 's1-b']) held(take('s1', name))
  held(take('s2', 's2-a'))
  t.deepEqual(take('s2', 's2-b'), { refused: 'small' }, 'the largest does not hold twice as much')
  held(take('s3', 's3-a'))
  t.deepEqual(ended, ['s1-a'], 'of its group, which is full')
  held(take('p2', 'p2-a'))
  t.deepEqual(ended, ['s1-a', 'p1-b'])
  held(take('p3', 'p3-a'))
  t.deepEqual(ended, ['s1-a', 'p1-b', 'p1-c'])
  t.deepEqual(take('p4', 'p4-a'), { refused: 'total' }, 'no key holds more than one')
  second!()
  t.is(share.inUse, 6, 'what was taken back is released once')
})

test('metrics show what all keys and each kind of group hold', (t) => {
  const counts = new ShareCounts()
  const share = new FairShare({ resource: 'calls', total: 8, levels: oneLevel, counts })
  const network = (name: string) => [{ name: `network ${name}`, part: 1 / 8 }]
  held(share.tryAcquire(['t1']))
  held(share.tryAcquire(['t2'], 1, { groups: network('a') }))
  t.deepEqual(share.tryAcquire(['t3'], 1, { groups: network('a') }), { refused: 'network a' })
  held(share.tryAcquire(['t3'], 1, { groups: network('b') }))()
  const [, inUse] = counts.families
  t.deepEqual(inUse?.read(), [
    { labels: { resource: 'calls', group: 'all' }, value: 2 },
    { labels: { resource: 'calls', group: 'network' }, value: 1 },
  ])
})

test('a waiting key that holds nothing gets the next unit', async (t) => {
  const share = new FairShare({
    resource: 'look-ups',
    total: 3,
    levels: oneLevel,
    waitingPerKeyMax: 8,
  })
  const order: string[] = []
  const releases = ['h', 'h', 'v'].map((key) => held(share.tryAcquire([key])))
  const waiters = ['h', 'h', 'v', 'n'].map(async (key) => {
    const release = held(await share.acquire([key], 1))
    order.push(key)
    return release
  })
  releases[0]!()
  await waiters[3]
  t.deepEqual(order, ['n'])
})

test('waiting keys of a group that is full leave their turn to others', async (t) => {
  const share = new FairShare({
    resource: 'look-ups',
    total: 4,
    levels: oneLevel,
    waitingPerKeyMax: 8,
  })
  const small = { groups: SMALL }
  const first = held(share.tryAcquire(['s1'], 1, small))
  held(share.tryAcquire(['s2'], 1, small))
  let isServed = false
  const third = share.acquire(['s3'], 1, undefined, small).then((answer) => {
    isServed = true
    return answer
  })
  held(await share.acquire(['p1']))
  t.false(isServed)
  first()
  held(await third)
  t.is(share.usedByGroup('small'), 2)
})

test('a key takes back units while the largest holds twice as much, and not one more', (t) => {
  const share = new FairShare({ resource: 'calls', total: 16, levels: oneLevel })
  const take = (key: string) =>
    share.tryAcquire([key], 1, { groups: SMALL, giveUp: () => key !== 'v' })
  for (let nth = 0; nth < 8; nth += 1) held(take('h'))
  for (const of of [1, 2, 3]) {
    held(take('v'))
    t.is(share.usedBy(0, 'v'), of)
  }
  t.deepEqual(take('v'), { refused: 'small' })
  t.deepEqual(take('h'), { refused: 'small' })
  t.is(share.usedBy(0, 'h'), 5)
})
