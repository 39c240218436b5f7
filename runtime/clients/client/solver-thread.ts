/** A thread of the solver: searches one range at a time. */
import { parentPort, workerData } from 'node:worker_threads'
import { Search } from './search.js'
import type { Range, RangeResult, SolverThreadData } from './solver.js'

const { challengeToken, difficultyBits } = workerData as SolverThreadData
const search = new Search(challengeToken, difficultyBits)

parentPort?.on('message', ({ from, count }: Range) => {
  const result: RangeResult = { from, count, found: search.first(from, count) }
  parentPort?.postMessage(result)
})
