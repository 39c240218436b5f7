/** The control channel of a worker thread: what a host may ask of it, over Comlink. Never data. */
import type { MessagePort } from 'node:worker_threads'
import type { Endpoint } from 'comlink'
import type { LogLevel } from '../log.js'
import type { LoopStats } from '../loops.js'
import type { ActorStats } from '../metrics/metrics.js'
import type { MetricFamily } from '../metrics/plain-metrics.js'

export interface ThreadControl {
  /** Seats the actors; answers with their names. Rejects with what went wrong. */
  start(): Promise<readonly string[]>
  /** Answers as long as the event loop turns: the heartbeat. */
  health(): ThreadHealth
  /** New start data, for settings that can change without a restart. */
  reconfigure(data: unknown): Promise<void>
  stats(): readonly ActorStats[]
  metrics(): Promise<readonly MetricFamily[]>
  /** Finishes what was taken, closes what the actors needed; false when `withinMs` were too short. */
  drain(withinMs: number): Promise<boolean>
}

export type ThreadHealth = {
  /** Share of the time since the last question in which the event loop was busy, 0 to 1. */
  readonly utilization: number
  readonly heapUsedBytes: number
  /** Actors that failed too often lately. */
  readonly unready: readonly string[]
  /** The background loops of its actors. */
  readonly loops: readonly { readonly actor: string; readonly loops: readonly LoopStats[] }[]
}

/** What a host gives its worker along. */
export type ThreadPorts = {
  readonly name: string
  readonly data: unknown
  readonly logLevel: LogLevel
  readonly link: MessagePort
  readonly control: MessagePort
}

/** Comlink's view of a Node port. */
export function endpointOf(port: MessagePort): Endpoint {
  type Listener = (event: { data: unknown }) => void
  const listeners = new Map<unknown, (data: unknown) => void>()
  return {
    postMessage: (message: unknown) => port.postMessage(message),
    addEventListener(_type: string, listener: unknown) {
      const receive = (data: unknown) => (listener as Listener)({ data })
      listeners.set(listener, receive)
      port.on('message', receive)
    },
    removeEventListener(_type: string, listener: unknown) {
      const receive = listeners.get(listener)
      if (receive !== undefined) port.off('message', receive)
      listeners.delete(listener)
    },
    start: () => port.start(),
  }
}
