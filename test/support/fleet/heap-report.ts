/**
 * Loaded into the processes of a soak (`NODE_OPTIONS=--import`), and so into each of their threads. Each of them appends the
 * size of its V8 heap to the file HEAP_REPORT once a second.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'

const EVERY_MS = 1_000
const file = process.env['HEAP_REPORT']

if (file !== undefined) {
  const report = () => {
    const { heapUsed, external } = process.memoryUsage()
    appendFileSync(file, `${process.pid} ${threadId} ${heapUsed + external}\n`)
  }
  setInterval(report, EVERY_MS).unref()
}

/**
 * The smallest heaps of a process since `from`, added up over its threads: garbage does not count.
 * @param from a length of the file in bytes.
 */
export function heapKib(path: string, pid: number, from: number): number {
  const least = new Map<string, number>()
  for (const line of readFileSync(path).subarray(from).toString('utf8').split('\n').slice(0, -1)) {
    const [process = '', thread = '', bytes = ''] = line.split(' ')
    if (process !== String(pid)) continue
    least.set(thread, Math.min(least.get(thread) ?? Number.MAX_VALUE, Number(bytes)))
  }
  return Math.round([...least.values()].reduce((sum, bytes) => sum + bytes, 0) / 1024)
}
