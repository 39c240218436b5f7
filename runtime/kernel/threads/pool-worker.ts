/** Entry of a pool's worker thread: runs batches of calls of one compute module, a frame each. */
import { move, workerData } from 'piscina'
import { packFrame, unpackFrame } from './wire.js'

export type Call = readonly [name: string, input: unknown]
/** An error keeps only its message: its class would not survive the crossing. */
export type Result = readonly [ok: true, value: unknown] | readonly [ok: false, message: string]

type Compute = Record<string, (input: unknown) => unknown>

const FORGETTING = /^/

const { module } = workerData as { module: string }
const compute = (await import(module)) as Compute

/** @returns the frame of the results, marked for its transfer. */
export async function runBatch(frame: ArrayBuffer): Promise<unknown> {
  const results: Result[] = []
  for (const [name, input] of unpackFrame(frame) as Call[]) {
    try {
      results.push([true, await compute[name]!(input)])
    } catch (error) {
      results.push([false, error instanceof Error ? (error.stack ?? error.message) : String(error)])
    }
  }
  const answer = packFrame(results)
  // The calls may have had secrets.
  new Uint8Array(frame).fill(0)
  // Makes the engine drop the last matched text, which it keeps whole.
  FORGETTING.exec('')
  return move(answer)
}
