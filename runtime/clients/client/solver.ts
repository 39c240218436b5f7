/** Solves a proof of work on several threads. Part of the client library. */
import { availableParallelism } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Search } from './search.js'

export type SolveOptions = {
  readonly challengeToken: string
  /** 0..32; an expected 2^difficultyBits tries. */
  readonly difficultyBits: number
  /**
   * Default: one per processor. With 1, the search runs on the calling thread and yields between
   * ranges.
   */
  readonly threads?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after each range with the number of nonces tried so far. */
  readonly onProgress?: ((tried: number) => void) | undefined
}

export type Range = { readonly from: number; readonly count: number }
export type RangeResult = Range & { readonly found: number }
export type SolverThreadData = { readonly challengeToken: string; readonly difficultyBits: number }

/**
 * About 15 ms of one thread: short enough to stop promptly, long enough to outweigh the messages.
 */
const RANGE_NONCES = 1 << 16
/** Below this difficulty a thread takes longer to start than the search takes. */
const THREADS_WORTH_BITS = 16

/**
 * The smallest nonce that proves the work, as a decimal string. It does not depend on the number of
 * threads: ranges are assigned in order, and the lowest hit wins.
 * @throws the signal's reason when it is aborted; RangeError for an impossible difficulty.
 */
export function solve(options: SolveOptions): Promise<string> {
  return solveWith(startThread, options)
}

/** Starts one thread of the solver. Null when threads are unavailable. */
export type StartThread = (workerData: SolverThreadData) => Worker | null

/**
 * Like `solve`, with a function that starts threads. When one dies, the search continues without
 * threads.
 */
export async function solveWith(start: StartThread, options: SolveOptions): Promise<string> {
  const { difficultyBits, threads = availableParallelism() } = options
  if (threads > 1 && difficultyBits >= THREADS_WORTH_BITS) {
    const nonce = await solveOnThreads(start, options, threads)
    if (nonce !== null) return nonce
  }
  return solveHere(options)
}

async function solveHere(options: SolveOptions): Promise<string> {
  const search = new Search(options.challengeToken, options.difficultyBits)
  for (let from = 0; ; from += RANGE_NONCES) {
    options.signal?.throwIfAborted()
    const found = search.first(from, RANGE_NONCES)
    options.onProgress?.(found >= 0 ? found + 1 : from + RANGE_NONCES)
    if (found >= 0) return String(found)
    await nextTurn()
  }
}

/** Null when threads are unavailable. The caller then searches alone. */
async function solveOnThreads(
  start: StartThread,
  options: SolveOptions,
  threads: number,
): Promise<string | null> {
  const { challengeToken, difficultyBits, signal, onProgress } = options
  signal?.throwIfAborted()
  // Throws for an impossible difficulty here, where the caller sees it, and not inside a thread.
  void new Search(challengeToken, difficultyBits)
  const workers: Worker[] = []
  let onAbort: (() => void) | undefined
  try {
    return await new Promise<string | null>((resolve, reject) => {
      const workerData: SolverThreadData = { challengeToken, difficultyBits }
      const busy = new Map<Worker, Range>()
      let next = 0
      let tried = 0
      let lowest = Number.POSITIVE_INFINITY

      const give = (worker: Worker) => {
        const range = { from: next, count: RANGE_NONCES }
        next += RANGE_NONCES
        busy.set(worker, range)
        worker.postMessage(range)
      }
      const take = (worker: Worker, { count, found }: RangeResult) => {
        busy.delete(worker)
        tried += count
        onProgress?.(tried)
        if (found >= 0 && found < lowest) lowest = found
        if (lowest === Number.POSITIVE_INFINITY) return give(worker)
        // Ranges below the hit may contain a smaller nonce. Those above it no longer matter.
        for (const { from } of busy.values()) if (from < lowest) return
        resolve(String(lowest))
      }
      const lost = () => resolve(null)

      onAbort = () => reject(signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      for (let at = 0; at < threads; at++) {
        const worker = start(workerData)
        if (worker === null) return lost()
        workers.push(worker)
        worker.on('message', (result: RangeResult) => {
          try {
            take(worker, result)
          } catch (error) {
            // The caller's onProgress threw: its error is passed on.
            reject(error)
          }
        })
        worker.on('error', lost)
        worker.on('exit', lost)
        give(worker)
      }
    })
  } finally {
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}

function startThread(workerData: SolverThreadData): Worker | null {
  try {
    return new Worker(new URL('./solver-thread.js', import.meta.url), { workerData })
  } catch {
    return null
  }
}
