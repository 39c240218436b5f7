/** What has expired leaves a cache: a tenant fills it, and asks no more. */
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { ttlCache } from '../../../../actors/platform/batching/ttl-cache.js'
import { heldClock } from '../../../support/held-clock.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('expired values leave with new ones, and others stay', async (t) => {
  const clock = heldClock(new Date())
  const cache = ttlCache<{ readonly name: string }>(clock)
  const read = (name: string) => cache.get(name, [], () => Promise.resolve({ name }))
  const old = new WeakRef(await read('old'))
  clock.advance(1_000)
  const recent = new WeakRef(await read('recent'))
  await read('new')
  await turn()
  collect()
  t.is(old.deref(), undefined)
  t.is(recent.deref(), cache.peek('recent'))
  t.is(cache.peek('recent')?.name, 'recent')
})
