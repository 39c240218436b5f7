/**
 * Loaded into a service before anything else (`--import`). On a message of its parent it writes the
 * V8 heap snapshots of its threads, which signals do not reach, into its working directory.
 */
import { createWriteStream } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { pipeline } from 'node:stream/promises'
import workers, { isMainThread, Worker, type WorkerOptions } from 'node:worker_threads'

/** The parent's message. The answer has the files by the names of their threads. */
export const ASK = 'heaps of threads'
export type ThreadHeaps = readonly { readonly thread: string; readonly file: string }[]

/** A test that imports the names above is a process with a parent too. */
const isPreloaded = process.execArgv.some((word) =>
  word.endsWith(new URL(import.meta.url).pathname),
)

if (isMainThread && isPreloaded) {
  const running = new Map<Worker, string>()
  class WatchedWorker extends Worker {
    constructor(entry: string | URL, options: WorkerOptions = {}) {
      super(entry, options)
      running.set(this, options.name ?? String(entry))
      this.once('exit', () => running.delete(this))
    }
  }
  workers.Worker = WatchedWorker
  syncBuiltinESMExports()

  process.on('message', (message) => {
    if (message === ASK) void write().then((written) => process.send!(written))
  })
  process.channel?.unref()

  async function write(): Promise<ThreadHeaps> {
    const written: { thread: string; file: string }[] = []
    for (const [worker, thread] of running) {
      const file = `${worker.threadId}-${written.length}.threadheap`
      await pipeline(await worker.getHeapSnapshot(), createWriteStream(file))
      written.push({ thread, file })
    }
    return written
  }
}
