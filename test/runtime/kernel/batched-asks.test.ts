import { setImmediate as context } from 'node:timers/promises'
import test from 'ava'
import { together } from '../../../runtime/kernel/batched-asks.js'

/** Queries that end when the test ends them. */
function held() {
  const batches: { asked: readonly number[]; end: (error?: Error) => void }[] = []
  const read = together<number, string>(
    (asked) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) =>
          error === undefined ? resolve(asked.map((one) => `read ${one}`)) : reject(error)
        batches.push({ asked, end })
      }),
  )
  return { read, batches }
}

test('what is asked for in one turn is one statement, and each gets its own answer', async (t) => {
  const { read, batches } = held()
  const answers = Promise.all([read(1), read(2), read(3)])
  await context()
  t.deepEqual(
    batches.map(({ asked }) => asked),
    [[1, 2, 3]],
  )
  batches[0]?.end()
  t.deepEqual(await answers, ['read 1', 'read 2', 'read 3'])
})

test('a look-up does not join a running statement, which may miss later commits', async (t) => {
  const { read, batches } = held()
  const [first, second] = [read(1), context().then(() => read(2))]
  await context()
  const rest = Promise.all([context().then(() => read(3)), context().then(() => read(4))])
  await context()
  await context()
  t.deepEqual(
    batches.map(({ asked }) => asked),
    [[1], [2]],
    'two are under way; the others wait',
  )
  batches[0]?.end()
  t.is(await first, 'read 1')
  await context()
  t.deepEqual(batches[2]?.asked, [3, 4])
  batches[1]?.end()
  batches[2]?.end()
  t.deepEqual([await second, ...(await rest)], ['read 2', 'read 3', 'read 4'])
})

test('a failed statement fails its own look-ups only', async (t) => {
  const { read, batches } = held()
  const lost = Promise.allSettled([read(1), read(2)])
  await context()
  batches[0]?.end(new Error('gone'))
  t.deepEqual(
    (await lost).map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  const kept = read(3)
  await context()
  batches[1]?.end()
  t.is(await kept, 'read 3')
})

test('under load every look-up gets its own answer, and look-ups share statements', async (t) => {
  let statements = 0
  const read = together<number, string>(async (asked) => {
    statements += 1
    await context()
    return asked.map((one) => `read ${one}`)
  })
  const callers = 40
  const each = 50
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let at = 0; at < each; at += 1) {
        const asked = caller * each + at
        t.is(await read(asked), `read ${asked}`)
        for (let turns = caller % 4; turns > 0; turns -= 1) await context()
      }
    }),
  )
  t.true(statements < (callers * each) / 2, `${statements} statements`)
})
