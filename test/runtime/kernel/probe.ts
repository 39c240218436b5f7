/** An actor with the behaviour that the kernel's tests need, in any place. */
import { createHash } from 'node:crypto'
import { threadId } from 'node:worker_threads'
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import type { Compute } from '../../../runtime/kernel/threads/pool.js'
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import { bytePipe, type ByteStream } from '../../../runtime/kernel/stream.js'
import type * as arithmetic from './threads/arithmetic.js'

export type ProbeProtocol = {
  echo: Ask<{ value: unknown }, { tag: 'echo'; value: unknown }>
  square: Ask<{ value: number }, { tag: 'squared'; value: number; threadId: number }>
  /** Answers after `ms`, or when it is cancelled. */
  wait: Ask<{ ms: number; lane?: string; label?: string }, { tag: 'waited'; cancelled: boolean }>
  /** How many waits are running, were started, were cancelled. */
  count: Ask<null, { tag: 'counts'; running: number; started: string[]; cancelled: number }>
  fail: Ask<{ text: string }, { tag: 'never' }>
  /** Fails with an unavailable dependency. */
  lack: Ask<{ text: string }, { tag: 'never' }>
  /** Ends the thread, the first `times` times. */
  exit: Ask<{ code: number }, { tag: 'survived' }>
  exitOnce: Ask<{ lives: SharedCounter }, { tag: 'survived'; lives: number }>
  throwOutside: Ask<null, { tag: 'thrown' }>
  spin: Ask<null, { tag: 'never' }>
  /** Blocks the event loop. */
  block: Ask<{ ms: number }, { tag: 'blocked' }>
  remember: Send<{ value: string }>
  recall: Ask<null, { tag: 'recalled'; values: string[] }>
  askBack: Ask<{ value: string }, { tag: 'asked'; answer: string; requestId: string | undefined }>
  askBackSlowly: Ask<{ ms: number }, { tag: 'asked' }>
  digest: Ask<{ body: ByteStream }, { tag: 'digest'; bytes: number; sha256: string }>
  produce: Ask<{ bytes: number; chunkBytes: number }, { tag: 'produced'; body: ByteStream }>
  /** Passes bytes on as they come. */
  relay: Ask<{ body: ByteStream }, { tag: 'relayed'; body: ByteStream }>
  breakOff: Ask<{ after: number }, { tag: 'produced'; body: ByteStream }>
  complain: Ask<{ text: string }, { tag: 'logged' }>
}

/** A file whose length counts events across the death of threads. */
export type SharedCounter = { path: string }

export const probe = address<ProbeProtocol>('probe', {
  idempotent: ['exitOnce', 'echo'],
  passive: ['wait'],
})

export type BackProtocol = {
  answer: Ask<{ value: string }, { tag: 'answered'; answer: string; requestId: string | undefined }>
  stall: Ask<{ ms: number }, { tag: 'stalled' }>
}
export const back = address<BackProtocol>('back')

class SourceUnavailable extends DependencyUnavailable {
  override readonly name = 'SourceUnavailable'
}

export type ProbeNeeds = {
  back: ActorRef<BackProtocol>
  compute: Compute<typeof arithmetic>
  countLife: (counter: SharedCounter) => number
}

export const probeActor = defineActor<ProbeProtocol, ProbeNeeds>({
  address: probe,
  asks: { back },
  mailbox: { capacity: 16, inflightMax: 8 },
  lane: {
    wait: ({ lane }) => lane,
    remember: () => 'memory',
    recall: () => 'memory',
  },
  create: ({ back, compute, countLife }) => {
    const values: string[] = []
    const started: string[] = []
    let running = 0
    let cancelled = 0
    return {
      echo: async ({ value }) => ({ tag: 'echo', value }),
      async square({ value }, context) {
        const { squared } = await compute.run('square', { value }, context)
        return { tag: 'squared', value: squared, threadId }
      },
      async wait({ ms, label = '' }, { signal }) {
        running += 1
        started.push(label)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          signal.addEventListener('abort', () => {
            clearTimeout(timer)
            cancelled += 1
            resolve()
          })
        })
        running -= 1
        return { tag: 'waited', cancelled: signal.aborted }
      },
      count: async () => ({ tag: 'counts', running, started, cancelled }),
      fail: async ({ text }) => {
        throw new TypeError(text)
      },
      lack: async ({ text }) => {
        throw new SourceUnavailable(text)
      },
      exit: async ({ code }) => process.exit(code),
      async exitOnce({ lives }) {
        const count = countLife(lives)
        if (count === 1) process.exit(7)
        return { tag: 'survived', lives: count }
      },
      async throwOutside() {
        setImmediate(() => {
          throw new Error('thrown outside a message')
        })
        return { tag: 'thrown' }
      },
      async spin() {
        for (;;);
      },
      async block({ ms }) {
        const endMs = performance.now() + ms
        while (performance.now() < endMs);
        return { tag: 'blocked' }
      },
      async remember({ value }) {
        values.push(value)
        return undefined
      },
      recall: async () => ({ tag: 'recalled', values }),
      async askBack({ value }, context) {
        const { answer, requestId } = await back.answer({ value }, context)
        return { tag: 'asked', answer, requestId }
      },
      async askBackSlowly({ ms }, context) {
        await back.stall({ ms }, context)
        return { tag: 'asked' }
      },
      async digest({ body }) {
        const hash = createHash('sha256')
        let bytes = 0
        for await (const chunk of body) {
          hash.update(chunk)
          bytes += chunk.byteLength
        }
        return { tag: 'digest', bytes, sha256: hash.digest('hex') }
      },
      async produce({ bytes, chunkBytes }) {
        const { stream, writer } = bytePipe()
        void fill(bytes, chunkBytes, writer)
        return { tag: 'produced', body: stream }
      },
      relay: async ({ body }) => ({ tag: 'relayed', body }),
      async breakOff({ after }) {
        const { stream, writer } = bytePipe()
        void writer.write(new Uint8Array(after)).then(() => writer.abort('upstream gone'))
        return { tag: 'produced', body: stream }
      },
      async complain({ text }, { log }) {
        log.warn({ password: text }, text)
        return { tag: 'logged' }
      },
    }
  },
})

async function fill(
  bytes: number,
  chunkBytes: number,
  writer: ReturnType<typeof bytePipe>['writer'],
): Promise<void> {
  for (let sent = 0; sent < bytes && writer.open; sent += chunkBytes) {
    const chunk = new Uint8Array(Math.min(chunkBytes, bytes - sent)).fill(sent / chunkBytes)
    try {
      await writer.write(chunk)
    } catch {
      return
    }
  }
  writer.end()
}

export const backActor = defineActor<BackProtocol, { onStall: (signal: AbortSignal) => void }>({
  address: back,
  asks: {},
  mailbox: { capacity: 16, inflightMax: 16 },
  create: ({ onStall }) => ({
    answer: async ({ value }, { requestId }) => ({
      tag: 'answered',
      answer: `${value}!`,
      requestId,
    }),
    async stall({ ms }, { signal }) {
      onStall(signal)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          resolve()
        })
      })
      return { tag: 'stalled' }
    },
  }),
})
