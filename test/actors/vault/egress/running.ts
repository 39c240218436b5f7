/** A relay as promises, with its body as a stream however it came. */
import type { Dispatcher } from 'undici'
import type { HeaderPair, RelayReport } from '../../../../actors/vault/egress/protocol.js'
import { relay, type RelayJob } from '../../../../actors/vault/egress/relay/relay.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'

export type Start =
  | {
      readonly tag: 'relaying'
      readonly status: number
      readonly headers: readonly HeaderPair[]
      readonly body: ByteStream
    }
  | { readonly tag: 'failed'; readonly report: RelayReport }

export type Running = { readonly started: Promise<Start>; readonly ended: Promise<RelayReport> }

/** A job whose caller gives up by a signal; any answer is taken unless it says otherwise. */
export type SignalledJob = Omit<RelayJob, 'context' | 'answerBytesMax'> &
  Partial<Pick<RelayJob, 'answerBytesMax'>> & { readonly signal: AbortSignal }

/** A GET that is given all the time it needs. */
export function getting(path: string): SignalledJob {
  return {
    method: 'GET',
    path,
    headers: [],
    body: null,
    bodyBytes: null,
    limits: { idleGapMs: 60_000, hopTimeoutMs: 120_000 },
    byteBudget: null,
    redactor: null,
    signal: new AbortController().signal,
  }
}

export function run(upstream: Dispatcher, { signal, ...job }: SignalledJob): Running {
  let onStart: ((start: Start) => void) | undefined
  let onEnd: ((report: RelayReport) => void) | undefined
  const started = new Promise<Start>((resolve) => {
    onStart = resolve
  })
  const ended = new Promise<RelayReport>((resolve) => {
    onEnd = resolve
  })
  const context = {
    abandoned: signal.aborted,
    onAbandoned(listener: () => void) {
      signal.addEventListener('abort', listener)
      return () => signal.removeEventListener('abort', listener)
    },
  }
  relay(upstream, { answerBytesMax: null, ...job, context }, systemClock, {
    onStart(start) {
      if (start.tag === 'failed') return onStart!(start)
      const { body } = start
      onStart!({ ...start, body: body instanceof ByteStream ? body : ByteStream.from(body) })
    },
    onEnd: onEnd!,
  })
  return { started, ended }
}
