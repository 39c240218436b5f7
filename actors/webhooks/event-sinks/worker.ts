/**
 * Sends numbered events to message brokers (docs/guides/operations/event-sinks.md). The events of a tenant are sent in
 * their order, events of different tenants in parallel, and brokers do not wait for each other. The cursor moves after
 * the broker has confirmed an event, so a killed process leads to a repetition and never to a loss. All state is in the
 * database: any number of processes can run the worker, and the lease of a tenant belongs to one of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import {
  claimDueTenants,
  confirmEvents,
  type DueTenant,
  registerSink,
  SINKS_CHANNEL,
  sinkBacklog,
} from '../../../storage/webhooks/event-sinks.js'
import { numberedEventsAfter } from '../../../storage/platform/outbox.js'
import { EVENT_TYPES } from '../../domain/events.js'
import { WakeSignal } from '../../platform/batching/wake-signal.js'
import { counter, gauge } from '../../platform/metrics.js'
import { envelopeOf } from '../../domain/webhooks/envelope.js'
import { kafkaSink } from './kafka.js'
import { natsSink } from './nats.js'
import { type EventSinksSettings, hasKafka, hasNats } from './settings.js'
import type { EventSink, SinkConnection } from './sink.js'

/** Tenants whose events are sent side by side. */
const TENANTS_MAX = 32
/** Events of a tenant between two records of its cursor. */
const EVENTS_MAX = 200
/** After this time the tenants of a dead process are free. */
const LEASE_SECS = 30
/** The sending of a batch ends this long after its begin, well before its lease. */
const BATCH_MS_MAX = 10_000
const POLL_MS_MAX = 1_000
/** Waits between attempts to reach the broker, doubled each time. */
const RETRY_MS = { first: 250, most: 10_000 } as const
const SEEN_EVERY_MS = 60_000
const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES)

type EventSinksNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'wakeHere'>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  readonly sinks: readonly EventSink[]
  /** Receives a promise of the run, which a stop waits for. */
  readonly settled: (run: Promise<void>) => void
}

export const eventSinksWorker = defineWorker<EventSinksNeeds>({
  name: 'event_sinks',
  asks: {},
  run(needs, lifecycle) {
    const { sinks, ...shared } = needs
    if (sinks.some(({ name }) => name === 'kafka'))
      lifecycle.log.warn(
        'event_sinks.kafka is deprecated and will be removed: use event_sinks.nats',
      )
    const metrics = sinkMetrics(needs.registry)
    const run = Promise.all(
      sinks.map((sink) => sendUntilStopped({ ...shared, sink, metrics }, lifecycle)),
    ).then(() => undefined)
    needs.settled(run.catch(() => undefined))
    return run
  },
})

/** The brokers of these settings. */
export function sinksOf(settings: EventSinksSettings): readonly EventSink[] {
  const { nats, kafka } = settings
  return [
    ...(hasNats(settings) ? [natsSink(nats)] : []),
    ...(hasKafka(settings) ? [kafkaSink(kafka)] : []),
  ]
}

type SinkNeeds = Omit<EventSinksNeeds, 'sinks'> & {
  readonly sink: EventSink
  readonly metrics: ReturnType<typeof sinkMetrics>
}

async function sendUntilStopped(
  needs: SinkNeeds,
  { signal, log, loop }: Pick<Lifecycle, 'signal' | 'log' | 'loop'>,
): Promise<void> {
  const { database, clock, sink, metrics } = needs
  const recorded = new WakeSignal()
  const wake = () => recorded.wake()
  signal.addEventListener('abort', wake, { once: true })
  const leave = database.wakeHere(SINKS_CHANNEL, wake)
  const sender = new Sender(needs, log)
  // A broker that is away is no fault of this process: only failures of the database are reported here.
  const rounds = loop(sink.name)
  let seenMs = Number.NEGATIVE_INFINITY
  let measuredMs = Number.NEGATIVE_INFINITY

  async function measure(): Promise<void> {
    // Counts over all tenants.
    const { oldest, events } = await database.system((tx) => sinkBacklog(tx, sink.name))
    const nowMs = clock.now().getTime()
    const lagMs = Math.max(0, nowMs - (oldest?.getTime() ?? nowMs))
    metrics.lag.set({ sink: sink.name }, lagMs / 1000)
    metrics.waiting.set({ sink: sink.name }, events)
  }

  try {
    while (!signal.aborted) {
      try {
        if (clock.monotonicMs() - seenMs >= SEEN_EVERY_MS) {
          await database.system((tx) => registerSink(tx, sink.name, clock.now()))
          seenMs = clock.monotonicMs()
        }
        const found = await sender.round(signal)
        rounds.succeeded()
        if (clock.monotonicMs() - measuredMs >= POLL_MS_MAX) {
          await measure()
          measuredMs = clock.monotonicMs()
        }
        if (found === 'unavailable') await pause(sender.retryMs, signal)
        else if (found === 'none') await recorded.wait(POLL_MS_MAX)
      } catch (error) {
        if (signal.aborted) break
        rounds.failed()
        log.warn({ err: error }, 'event sinks: round failed, retrying')
        await pause(POLL_MS_MAX, signal)
      }
    }
  } finally {
    leave()
    await sender.close()
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/** The connection to the broker, and what is sent over it. */
class Sender {
  readonly #needs: SinkNeeds
  readonly #log: Logger
  readonly #lease: { readonly sink: string; readonly lease: string; readonly leaseSecs: number }
  #connection: SinkConnection | undefined
  #retryMs: number = RETRY_MS.first

  constructor(needs: SinkNeeds, log: Logger) {
    this.#needs = needs
    this.#log = log
    const { sink, random } = needs
    this.#lease = { sink: sink.name, lease: random.uuid(), leaseSecs: LEASE_SECS }
  }

  /** How long to wait after a round that did not reach the broker. */
  get retryMs(): number {
    return this.#retryMs
  }

  /** Sends a batch of events of each of some tenants. */
  async round(signal: AbortSignal): Promise<'sent' | 'none' | 'unavailable'> {
    const connection = await this.#connected()
    if (connection === undefined) return 'unavailable'
    const due = await this.#needs.database.system((tx) =>
      claimDueTenants(tx, this.#lease, TENANTS_MAX),
    )
    if (due.length === 0) return 'none'
    const results = await Promise.all(
      due.map((tenant) => this.#sendTenant(connection, tenant, signal)),
    )
    const isWhole = results.every((sent) => sent)
    if (isWhole) this.#retryMs = RETRY_MS.first
    else await this.#drop()
    return isWhole ? 'sent' : 'unavailable'
  }

  async close(): Promise<void> {
    await this.#connection?.close().catch(() => undefined)
    this.#connection = undefined
  }

  async #connected(): Promise<SinkConnection | undefined> {
    if (this.#connection?.isOpen() === true) return this.#connection
    try {
      this.#connection = await this.#needs.sink.connect()
      return this.#connection
    } catch (error) {
      this.#failed(error, 'event sinks: the broker is unavailable')
      await this.#drop()
      return undefined
    }
  }

  /** After a failure the outcome of what is under way is unknown, so the next round uses a new connection. */
  async #drop(): Promise<void> {
    await this.close()
    this.#retryMs = Math.min(RETRY_MS.most, this.#retryMs * 2)
  }

  /** Sends the next events of a tenant in order. @returns false when the broker did not confirm one of them. */
  async #sendTenant(
    connection: SinkConnection,
    { tenantId, sequence: confirmed, due }: DueTenant,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { database, clock, sink, metrics } = this.#needs
    const until = clock.monotonicMs() + BATCH_MS_MAX
    const events = await database.system((tx) =>
      numberedEventsAfter(tx, tenantId, confirmed, EVENTS_MAX),
    )
    // Events that were deleted before the sink was configured again are passed over.
    let sequence = events.length === 0 ? due : confirmed
    let isConfirmed = true
    for (let at = 0; at < events.length; at += connection.batchMax) {
      if (signal.aborted || clock.monotonicMs() >= until) break
      const batch = events.slice(at, at + connection.batchMax)
      // Event types outside of the catalogue are internal, as for webhooks.
      const sent = batch
        .filter(({ type }) => CATALOGUE.has(type))
        .map((event) => ({ id: event.id, tenantId, type: event.type, body: envelopeOf(event) }))
      try {
        if (sent.length > 0) await connection.send(sent)
      } catch (error) {
        this.#failed(error, 'event sinks: events were not confirmed')
        isConfirmed = false
        break
      }
      metrics.sent.inc({ sink: sink.name }, sent.length)
      sequence = batch.at(-1)!.sequence
    }
    await database.system((tx) => confirmEvents(tx, this.#lease, tenantId, sequence))
    return isConfirmed
  }

  #failed(error: unknown, message: string): void {
    const { sink, metrics } = this.#needs
    metrics.failures.inc({ sink: sink.name })
    this.#log.warn({ err: error, sink: sink.name }, message)
  }
}

function sinkMetrics(registry: Registry) {
  const sink = ['sink'] as const
  return {
    sent: counter(
      registry,
      'svc_event_sink_sent_total',
      'Events that the message broker has confirmed.',
      sink,
    ),
    failures: counter(
      registry,
      'svc_event_sink_failures_total',
      'Attempts to reach the message broker, or to send it an event, that failed.',
      sink,
    ),
    lag: gauge(
      registry,
      'svc_event_sink_lag_seconds',
      'Age of the event that has waited longest for the message broker. 0 when none waits.',
      sink,
    ),
    waiting: gauge(
      registry,
      'svc_event_sink_waiting_events',
      'Events that the message broker has not confirmed yet.',
      sink,
    ),
  }
}
