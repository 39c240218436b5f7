/** The control channel of a worker thread: the commands of its host, over Comlink. Never data. */
import type { MessagePort } from 'node:worker_threads'
import type { Endpoint } from 'comlink'
import type { LogLevel } from '../log.js'
import type { LoopStats } from '../loops.js'
import type { ActorStats } from '../metrics/metrics.js'
import type { MetricFamily } from '../metrics/plain-metrics.js'

export interface ThreadControl {
  /** Starts the actors and returns their names. Rejects with the error of the failed actor. */
  start(): Promise<readonly string[]>
  /** The heartbeat: answers as long as the event loop turns. */
  health(): ThreadHealth
  /** New start data, for settings that can change without a restart. */
  reconfigure(data: unknown): Promise<void>
  stats(): readonly ActorStats[]
  /** The first part of a drain: ends what arrives from outside of the process. False at the time limit. */
  finishRequests(withinMs: number): Promise<boolean>
  /** Ends the thread from inside. The answer does not arrive. */
  exit(): void
  metrics(): Promise<readonly MetricFamily[]>
  /**
   * Finishes accepted messages and closes what the actors used. False when `withinMs` was too
   * short.
   */
  drain(withinMs: number): Promise<boolean>
}

export type ThreadHealth = {
  /** Part of the time since the last heartbeat in which the event loop was busy, 0 to 1. */
  readonly utilization: number
  readonly heapUsedBytes: number
  /** Actors that the entry started besides the host's actors. */
  readonly stats: readonly ActorStats[]
  /** Actors that failed too often within the window, and what the entry itself reports. */
  readonly unready: readonly string[]
  /** The background loops of its actors. */
  readonly loops: readonly { readonly actor: string; readonly loops: readonly LoopStats[] }[]
}

/** The start parameters of a worker. */
export type ThreadPorts = {
  readonly name: string
  readonly data: unknown
  readonly logLevel: LogLevel
  readonly link: MessagePort
  readonly control: MessagePort
  /** One int32. The thread sets it to 1 at its exit, when its exit listeners have run. */
  readonly exited: SharedArrayBuffer
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
