/** Relays a call, and again if the first answer refuses it and the call can be signed again. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import type { RelayReport } from '../protocol.js'
import type { Sending } from '../sending.js'
import type { Relay, RelayEvents, RelayStart } from './relay.js'

/** Statuses with which upstreams refuse a signature or a token. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403])
/** Bytes of a refusal that are read for its reason. */
const REASON_BYTES_MAX = 16 * 1024

type Relaying = Extract<RelayStart, { tag: 'relaying' }>

type Sends = RelayEvents & {
  /** Starts a relay. */
  readonly relay: (sending: Sending, events: RelayEvents) => Relay
  /** No second try is made: the caller has gone, or its place is another call's. */
  readonly isOver: () => boolean
  readonly onAbandoned: MessageContext['onAbandoned']
}

/** Starts the relay. The caller gets the events of the last try. Its report counts both. */
export function sendWithRetry(first: Sending, sends: Sends): void {
  const { relay, isOver, onAbandoned, onStart, onEnd } = sends
  const { again } = first
  if (again === null) return void relay(first, { onStart, onEnd })
  /** Until the answer to the caller: a relay may end before its answer begins. And after the decision for a second try. */
  let isHeldBack = true
  let report: RelayReport | undefined
  const answer = (start: RelayStart) => {
    isHeldBack = false
    onStart(start)
    if (report !== undefined) onEnd(report)
  }
  relay(first, {
    onStart(start) {
      if (start.tag === 'failed' || !REFUSALS.has(start.status)) return answer(start)
      decide(start).catch(() => answer(start))
    },
    onEnd(ended) {
      report = ended
      if (!isHeldBack) onEnd(ended)
    },
  })

  async function decide(start: Relaying): Promise<void> {
    const { status, received: headers } = start
    // Its reader is not the caller yet.
    const unfollow = onAbandoned(() => cancel(start.body, 'client_closed'))
    const { text, body } = await beginningOf(start.body)
    const next = isOver() ? null : await again!({ status, headers, text }).catch(() => null)
    unfollow()
    if (next === null) return answer({ ...start, body })
    cancel(body, 'signed_again')
    relay(next, {
      onStart,
      onEnd: (second) => onEnd(report === undefined ? second : sum(report, second)),
    })
  }
}

function cancel(body: ByteStream | Uint8Array, reason: string): void {
  if (body instanceof ByteStream) body.cancel(reason)
}

/** The beginning of a body as text, and a body that still has it, which cancels the relay. */
async function beginningOf(body: ByteStream | Uint8Array) {
  if (!(body instanceof ByteStream)) return { text: textOf([body]), body }
  const chunks: Uint8Array[] = []
  let bytes = 0
  let fault: unknown
  while (bytes < REASON_BYTES_MAX) {
    const chunk = await body.read().catch((error: unknown) => {
      fault = error
      return undefined
    })
    if (chunk === undefined) break
    // The relay may use its memory again.
    chunks.push(Uint8Array.from(chunk))
    bytes += chunk.byteLength
  }
  const isWhole = bytes < REASON_BYTES_MAX
  const text = textOf(chunks)
  // A generator over the body would cancel it after the next chunk only.
  const whole = new ByteStream({
    async read() {
      if (chunks.length > 0) return chunks.shift()
      if (fault !== undefined) throw fault
      return isWhole ? undefined : body.read()
    },
    cancel: (reason) => body.cancel(reason),
  })
  return { text, body: whole }
}

const textOf = (chunks: readonly Uint8Array[]) => Buffer.concat(chunks).toString('latin1')

function sum(first: RelayReport, second: RelayReport): RelayReport {
  return {
    ...second,
    bytes: first.bytes + second.bytes,
    requestBytes: first.requestBytes + second.requestBytes,
    responseBytes: first.responseBytes + second.responseBytes,
    durationMs: first.durationMs + second.durationMs,
    redactions: first.redactions + second.redactions,
    // A second try that is not sent does not take back the first.
    isHeard: true,
  }
}
