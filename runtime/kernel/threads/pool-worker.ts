/** Entry of a pool's worker thread: runs batches of calls of one compute module. */
import { workerData } from 'piscina'

export type Call = readonly [name: string, input: unknown]
/** An error keeps only its message: its class would not survive the crossing. */
export type Result = readonly [ok: true, value: unknown] | readonly [ok: false, message: string]

type Compute = Record<string, (input: unknown) => unknown>

const FORGETTING = /^/

const { module } = workerData as { module: string }
const compute = (await import(module)) as Compute

export async function runBatch(calls: readonly Call[]): Promise<Result[]> {
  const results: Result[] = []
  for (const [name, input] of calls) {
    try {
      results.push([true, await compute[name]!(input)])
    } catch (error) {
      results.push([false, error instanceof Error ? (error.stack ?? error.message) : String(error)])
    }
  }
  // Makes the engine drop the last matched text, which it keeps whole.
  FORGETTING.exec('')
  return results
}
