/** Signals that end work in time, also after a garbage collection. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { endedBy, limitedTo } from '../../../runtime/kernel/clock.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Nothing but the listener keeps the signal, as in a request. */
function heard(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', ({ target }) => resolve((target as AbortSignal).reason))
  })
}

test('a limit ends work whose signal was collected', async (t) => {
  const { signal } = new AbortController()
  const over = limitedTo(50, signal, heard)
  // The objects of this turn are kept until it ends.
  await Promise.resolve()
  setImmediate(collect)
  // A timer of a test keeps the process: the limit itself does not.
  const waiting = setInterval(() => undefined, 1_000)
  t.like(await over, { name: 'TimeoutError' })
  clearInterval(waiting)
})

test('the outer signal ends work before its limit, with its own reason', async (t) => {
  const outer = new AbortController()
  const over = limitedTo(60_000, outer.signal, heard)
  const either = heard(endedBy(outer.signal, new AbortController()))
  setImmediate(() => {
    collect()
    outer.abort('left')
  })
  t.deepEqual(await Promise.all([over, either]), ['left', 'left'])
})

test('a controller that the caller keeps ends work', async (t) => {
  const { signal } = new AbortController()
  const own = new AbortController()
  const over = heard(endedBy(signal, own))
  setImmediate(() => {
    collect()
    own.abort('given up')
  })
  t.is(await over, 'given up')
})

test('a limit ends with its work', async (t) => {
  const given: AbortSignal[] = []
  const work = async (signal: AbortSignal) => {
    given.push(signal)
    return 'done'
  }
  const { signal } = new AbortController()
  t.is(await limitedTo(20, signal, work), 'done')
  t.is(await limitedTo(20, undefined, work), 'done')
  const failing = limitedTo(20, signal, async (one) => {
    given.push(one)
    throw new Error('failed')
  })
  await t.throwsAsync(failing, { message: 'failed' })
  await new Promise((resolve) => setTimeout(resolve, 100))
  t.deepEqual(
    given.map(({ aborted }) => aborted),
    [false, false, false],
  )
})
