/**
 * Loaded into a service before anything else (`--import`). On a message of its parent it writes the
 * V8 heap snapshots of its threads, which signals do not reach, into its working directory.
 */
import { createWriteStream } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import workers, { isMainThread, Worker, type WorkerOptions } from 'node:worker_threads'

/** The parent's message. The answer has the files by the names of their threads. */
export const ASK = 'heaps of threads'
export type ThreadHeaps = readonly { readonly thread: string; readonly file: string }[]
/** The answer: what was written, or why it was not. */
export type HeapsAnswer = { readonly heaps: ThreadHeaps } | { readonly failure: string }

/** A test that imports the names above is a process with a parent too. */
const isPreloaded = process.execArgv.some((word) =>
  word.endsWith(new URL(import.meta.url).pathname),
)

if (isMainThread && isPreloaded) {
  const running = new Map<Worker, string>()
  let writing: Promise<unknown> = Promise.resolve()
  class WatchedWorker extends Worker {
    constructor(entry: string | URL, options: WorkerOptions = {}) {
      super(entry, options)
      running.set(this, options.name ?? String(entry))
      this.once('exit', () => running.delete(this))
    }

    /**
     * Waits while snapshots are written. A pool ends its idle threads, and the promise of a snapshot
     * whose thread ends may never settle.
     */
    override async terminate(): Promise<number> {
      await writing.catch(() => undefined)
      return super.terminate()
    }
  }
  workers.Worker = WatchedWorker
  syncBuiltinESMExports()

  process.on('message', (message) => {
    if (message !== ASK) return
    const written = write()
    writing = written
    written.then(
      (heaps) => process.send!({ heaps } satisfies HeapsAnswer),
      (error: unknown) => process.send!({ failure: String(error) } satisfies HeapsAnswer),
    )
  })
  process.channel?.unref()

  async function write(): Promise<ThreadHeaps> {
    const written: { thread: string; file: string }[] = []
    for (const [worker, thread] of running) {
      const file = `${worker.threadId}-${written.length}.threadheap`
      const snapshot = await snapshotOf(worker)
      if (snapshot === undefined) continue
      await pipeline(snapshot, createWriteStream(file))
      written.push({ thread, file })
    }
    return written
  }

  /** @returns undefined for a thread that does not run yet, or does not run any more. */
  async function snapshotOf(worker: Worker): Promise<Readable | undefined> {
    try {
      return await worker.getHeapSnapshot()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_NOT_RUNNING') return undefined
      throw error
    }
  }
}
