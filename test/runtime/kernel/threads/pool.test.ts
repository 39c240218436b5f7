import test from 'ava'
import { ActorUnavailable } from '../../../../runtime/kernel/actor.js'
import { createMetrics } from '../../../../runtime/kernel/metrics/metrics.js'
import {
  ComputeFailed,
  openPool,
  type PoolOptions,
} from '../../../../runtime/kernel/threads/pool.js'

type Arithmetic = typeof import('./arithmetic.js')

const open = (options: Partial<PoolOptions> = {}) =>
  openPool<Arithmetic>({
    name: 'arithmetic',
    module: new URL('./arithmetic.js', import.meta.url),
    threadsMax: 2,
    ...options,
  })

const errorOf = (answer: Promise<unknown>) =>
  answer.then(
    () => undefined,
    (error: unknown) => error,
  )
const reasonOf = async (answer: Promise<unknown>) => {
  const error = await errorOf(answer)
  return error instanceof ActorUnavailable ? error.reason : error
}

test('calls of one tick are all answered, each with its own result', async (t) => {
  const pool = open({ batchMax: 8 })
  const values = Array.from({ length: 100 }, (_, value) => value)
  const results = await Promise.all(values.map((value) => pool.run('square', { value })))
  t.deepEqual(
    results.map(({ squared }) => squared),
    values.map((value) => value * value),
  )
  t.is(await pool.run('length', { bytes: new Uint8Array(1000) }), 1000)
  t.is(pool.stats().completed, 101)
  await pool.close()
})

test('a pool that starts at its first use has no thread before', async (t) => {
  const pool = open({ starts: 'at_first_use' })
  t.is(pool.stats().threads, 0)
  t.is((await pool.run('square', { value: 3 })).squared, 9)
  t.true(pool.stats().threads > 0)
  await pool.close()
  const unused = open({ starts: 'at_first_use' })
  await unused.close()
  t.is(await reasonOf(unused.run('square', { value: 3 })), 'stopped')
})

test('a function that throws fails its own call only', async (t) => {
  const pool = open()
  const [good, bad] = await Promise.all([
    pool.run('square', { value: 3 }),
    errorOf(pool.run('explode', { text: 'boom' })),
  ])
  t.is(good.squared, 9)
  t.true(bad instanceof ComputeFailed)
  t.regex((bad as Error).message, /TypeError: boom/)
  await pool.close()
})

test('bytes, dates and large numbers cross in both directions, and the caller keeps its bytes', async (t) => {
  const pool = open({ threadsMax: 1 })
  const bytes = Buffer.from('both ways')
  for (const at of [new Date(0), 2n ** 70n, undefined]) {
    const answer = await pool.run('reverse', { bytes: bytes.subarray(5), at })
    t.deepEqual(answer, { bytes: new Uint8Array(Buffer.from('syaw')), at, isBytes: true })
  }
  t.is(bytes.toString(), 'both ways')
  await pool.close()
})

test('a thread keeps no bytes of a batch that is answered', async (t) => {
  const pool = open({ threadsMax: 1 })
  const { bytes } = await pool.run('reverse', { bytes: Uint8Array.of(1, 2, 3), at: undefined })
  t.deepEqual(bytes, Uint8Array.of(3, 2, 1))
  t.deepEqual(await pool.run('keptBytes', { from: 0 }), [0, 0, 0])
  await pool.close()
})

test('a value that cannot cross fails its own call only, in both directions', async (t) => {
  const pool = open({ threadsMax: 1 })
  const [good, input, output] = await Promise.all([
    pool.run('square', { value: 3 }),
    errorOf(pool.run('square', { value: Symbol('no') as never })),
    errorOf(pool.run('secret', { text: 'hunter2' })),
  ])
  t.is(good.squared, 9)
  t.true(input instanceof ComputeFailed)
  t.true(output instanceof ComputeFailed)
  t.notRegex((output as Error).message, /hunter2/)
  await pool.close()
})

test('a call that kills its thread takes no other call of its batch with it', async (t) => {
  const pool = open({ threadsMax: 1 })
  const answers = [
    pool.run('square', { value: 2 }),
    errorOf(pool.run('die', { code: 3 })),
    pool.run('square', { value: 4 }),
  ]
  const [first, dead, last] = await Promise.all(answers)
  t.deepEqual(first, { squared: 4 })
  t.true(dead instanceof ComputeFailed)
  t.deepEqual(last, { squared: 16 })
  t.is(pool.stats().crashes, 1)
  await pool.close()
})

test('a call that never ends is killed, and the pool continues', async (t) => {
  const pool = open({ threadsMax: 1, batchMax: 1, batchMsMax: 3_000 })
  t.true((await errorOf(pool.run('spin', { forMs: 600_000 }))) instanceof ComputeFailed)
  t.is((await pool.run('square', { value: 5 })).squared, 25)
  await pool.close()
})

test('past the queue bound a call is refused without waiting', async (t) => {
  const pool = open({ queueMax: 2 })
  const taken = [pool.run('square', { value: 1 }), pool.run('square', { value: 2 })]
  t.is(await reasonOf(pool.run('square', { value: 3 })), 'mailbox_full')
  t.is((await Promise.all(taken)).length, 2)
  await pool.close()
})

test('a waiting call that is cancelled never runs', async (t) => {
  const pool = open({ threadsMax: 1, batchMax: 1 })
  const busy = pool.run('spin', { forMs: 200 })
  const cancel = new AbortController()
  const cancelled = reasonOf(pool.run('square', { value: 1 }, { signal: cancel.signal }))
  cancel.abort()
  t.is(await cancelled, 'cancelled')
  await busy
  t.is(pool.stats().completed, 1)
  await pool.close()
})

test('closing finishes accepted calls, and the metrics are in the exposition', async (t) => {
  const metrics = createMetrics()
  const pool = open({ metrics })
  const answer = pool.run('spin', { forMs: 50 })
  await answer
  t.regex(await metrics.exposition(), /svc_pool_completed_total\{pool="arithmetic"\} 1\n/)
  const last = pool.run('square', { value: 7 })
  await pool.close(60_000)
  t.is((await last).squared, 49)
  t.is(await reasonOf(pool.run('square', { value: 1 })), 'stopped')
})

test('a share with many waiting calls delays only itself', async (t) => {
  const metrics = createMetrics()
  const pool = open({ threadsMax: 1, batchMax: 1, queueMax: 8, queuePerShareMax: 6, metrics })
  const order: string[] = []
  const ask = (share: string) =>
    pool.run('square', { value: 2 }, { share }).then(
      () => void order.push(share),
      (error: ActorUnavailable) => void order.push(`${share}: ${error.reason}`),
    )
  const asked = [...'hhhhhhhhhh'].map(ask)
  await Promise.all([...asked, ask('v'), ask('v')])
  t.deepEqual(
    order.filter((share) => share === 'v'),
    ['v', 'v'],
  )
  t.is(order.filter((share) => share === 'h: mailbox_full').length, 4)
  t.true(order.indexOf('v') < order.lastIndexOf('h'), 'it did not wait behind all of them')
  t.is(metrics.shares.refusedOf('arithmetic'), 4)
  await pool.close()
})
