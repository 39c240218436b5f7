import { wireActor } from '../../../../runtime/kernel/wiring.js'
import { inlineCompute } from '../../../../runtime/kernel/threads/pool.js'
import { serveThread } from '../../../../runtime/kernel/threads/thread-serve.js'
import { wordsActor } from './words.js'
import * as compute from './words-compute.js'

serveThread({
  placements: ({ data }) => {
    const { charactersMax } = data as { charactersMax: number }
    return {
      actors: [wireActor(wordsActor, () => ({ compute: inlineCompute(compute), charactersMax }))],
    }
  },
})
