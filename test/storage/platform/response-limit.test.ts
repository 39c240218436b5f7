import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { ResponseLimit } from '../../../storage/platform/response-limit.js'
import { until } from '../../support/service/watch.js'

const stall = (ms: number) => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

test('a limit that passes is reported once', async (t) => {
  let late = 0
  const limit = new ResponseLimit(20, () => {
    late += 1
  })
  await until('the report', () => late > 0)
  limit.end()
  await sleep(50)
  t.is(late, 1)
})

test('a limit that ended is not reported', async (t) => {
  let late = 0
  const limit = new ResponseLimit(20, () => {
    late += 1
  })
  limit.end()
  await sleep(100)
  t.is(late, 0)
})

test('a response that arrived during a stall is in time', async (t) => {
  let late = 0
  const limit = new ResponseLimit(50, () => {
    late += 1
  })
  stall(400)
  // Runs after the timers of the stalled turn, as the callback of a socket does.
  await new Promise((resolve) => setImmediate(resolve))
  t.is(late, 0)
  limit.end()
  await sleep(100)
  t.is(late, 0)
})

test('without a response a stall only postpones the report', async (t) => {
  let late = 0
  const limit = new ResponseLimit(50, () => {
    late += 1
  })
  stall(400)
  await until('the report', () => late > 0)
  t.is(late, 1)
  limit.end()
})
