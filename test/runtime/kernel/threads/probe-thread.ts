/** Thread entry of the kernel's tests. */
import { appendFileSync, statSync } from 'node:fs'
import { inlineCompute } from '../../../../runtime/kernel/threads/pool.js'
import { wireActor } from '../../../../runtime/kernel/wiring.js'
import { serveThread } from '../../../../runtime/kernel/threads/thread-serve.js'
import * as arithmetic from './arithmetic.js'
import { back, probeActor, type SharedCounter } from '../probe.js'

export function countLife({ path }: SharedCounter): number {
  appendFileSync(path, '.')
  return statSync(path).size
}

serveThread({
  placements: (start) => {
    if (start.data === 'refuse') throw new Error('the start data says no')
    const compute = inlineCompute(arithmetic)
    return {
      actors: [wireActor(probeActor, ({ ref }) => ({ back: ref(back), compute, countLife }))],
    }
  },
})
