import { wireActor } from '../../../../runtime/kernel/wiring.js'
import { createMetrics } from '../../../../runtime/kernel/metrics/metrics.js'
import { pool, placement, thread } from '../../../../runtime/kernel/placement.js'
import { openPool } from '../../../../runtime/kernel/threads/pool.js'
import { startSystem } from '../../../../runtime/kernel/system.js'
import { wordsActor } from './words.js'

export async function startWords(where: 'pool' | 'thread') {
  const metrics = createMetrics()
  const system = await startSystem({
    placements: [
      // One line decides where the actor runs. Nothing else changes.
      placement(
        wordsActor,
        where === 'pool' ? pool('words', { threadsMax: 2 }) : thread('words'),
        'all',
      ),
    ],
    planes: ['all'],
    actorWirings: [
      wireActor(wordsActor, ({ onStop }) => {
        const compute = openPool<typeof import('./words-compute.js')>({
          name: 'words',
          module: new URL('./words-compute.js', import.meta.url),
          threadsMax: 2,
          metrics,
        })
        onStop(() => compute.close())
        return { compute, charactersMax: 1000 }
      }),
    ],
    thread: () => ({
      entry: new URL('./words-thread.js', import.meta.url),
      startData: { charactersMax: 1000 },
    }),
    metrics,
  })
  return { system, metrics }
}
