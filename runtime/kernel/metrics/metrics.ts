/**
 * The metrics of every actor and thread as one Prometheus exposition. Actors count in plain fields,
 * which are read at each scrape, so that an ask does not pay for a label look-up.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { UnavailableReason } from '../actor.js'
import { ShareCounts } from '../fairness/fair-share.js'
import type { LoopStats } from '../loops.js'
import {
  type Aggregator,
  Durations,
  type MetricFamily,
  type MetricSample,
  type PlainFamily,
  registerPlain,
} from './plain-metrics.js'

/**
 * Upper bounds in seconds, from the duration of an inline ask to the limit of a user's patience.
 */
const SECONDS_BOUNDS = [
  0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30,
] as const

/** The counters and the current state of one actor. */
export type ActorStats = {
  readonly actor: string
  /** Messages in the mailbox that have not been started. */
  readonly waiting: number
  /** Messages that have been started and have not ended. */
  readonly inflight: number
  readonly accepted: number
  readonly answered: number
  /** Messages without an outcome, by reason. `mailbox_full` are the rejections. */
  readonly unavailable: Readonly<Record<UnavailableReason, number>>
  readonly restarts: number
  readonly ready: boolean
  readonly loops: readonly LoopStats[]
}

/** The stats of the instances of each actor on several threads as one. */
export function mergeStats(stats: readonly ActorStats[]): readonly ActorStats[] {
  const merged = new Map<string, ActorStats>()
  for (const next of stats) {
    const known = merged.get(next.actor)
    merged.set(next.actor, known === undefined ? next : together(known, next))
  }
  return [...merged.values()]
}

function together(one: ActorStats, other: ActorStats): ActorStats {
  const unavailable = { ...one.unavailable }
  for (const [reason, count] of Object.entries(other.unavailable)) {
    unavailable[reason as UnavailableReason] += count
  }
  return {
    actor: one.actor,
    waiting: one.waiting + other.waiting,
    inflight: one.inflight + other.inflight,
    accepted: one.accepted + other.accepted,
    answered: one.answered + other.answered,
    unavailable,
    restarts: one.restarts + other.restarts,
    ready: one.ready && other.ready,
    loops: [...one.loops, ...other.loops],
  }
}

/** What is not ready: the actor, or its failing loops (`upkeep: sweeps`). */
export function unreadyOf({ actor, ready, loops }: ActorStats): readonly string[] {
  if (ready) return []
  const failing = loops.filter(({ failing: fails }) => fails).map(({ loop }) => `${actor}: ${loop}`)
  return failing.length > 0 ? failing : [actor]
}

/** The counters of one actor. */
export class ActorMeter {
  readonly actor: string
  accepted = 0
  answered = 0
  restarts = 0
  /** Evaluated on demand, because it changes with time alone. */
  readiness: () => boolean = () => true
  /** The background loops of the actor. */
  loops: () => readonly LoopStats[] = () => []
  readonly unavailable: Record<UnavailableReason, number> = {
    mailbox_full: 0,
    deadline: 0,
    cancelled: 0,
    restarted: 0,
    dependency: 0,
    overloaded: 0,
    failed: 0,
    stopped: 0,
  }
  readonly wait = new Durations(SECONDS_BOUNDS)
  readonly service = new Durations(SECONDS_BOUNDS)
  readonly #now: () => { waiting: number; inflight: number }

  constructor(actor: string, now: () => { waiting: number; inflight: number }) {
    this.actor = actor
    this.#now = now
  }

  count(reason: UnavailableReason): void {
    this.unavailable[reason] += 1
  }

  waited(ms: number): void {
    this.wait.add(ms)
  }

  served(ms: number): void {
    this.service.add(ms)
  }

  stats(): ActorStats {
    const { actor, accepted, answered, restarts } = this
    return {
      actor,
      ...this.#now(),
      accepted,
      answered,
      unavailable: { ...this.unavailable },
      restarts,
      ready: this.readiness(),
      loops: this.loops(),
    }
  }
}

/** What the kernel needs of the metrics. */
export interface KernelMetrics {
  watch(meter: ActorMeter): void
  /** Refusals of shares on this thread: pass it to every `FairShare`. */
  readonly shares: ShareCounts
  /** Adds families to the exposition, read at each scrape. Returns a function that removes them. */
  include(source: () => Promise<readonly MetricFamily[]>): () => void
}

export interface Metrics extends KernelMetrics {
  /** Register your own prom-client metrics here: `new Counter({ ..., registers: [registry] })`. */
  readonly registry: Registry
  /** The families of this thread, as plain data. */
  snapshot(): Promise<MetricFamily[]>
  /** Everything, in the Prometheus text format. */
  exposition(): Promise<string>
  readonly contentType: string
}

interface MetricsOptions {
  /**
   * Adds the metrics of the process (CPU, memory, event loop). On the main thread.
   */
  readonly processMetrics?: boolean | undefined
}

let ofProcess: Registry | undefined

/** One for all services of a process, because what observes garbage collections ends with the process. */
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess, prefix: 'svc_' })
  }
  return ofProcess
}

export function createMetrics({ processMetrics = false }: MetricsOptions = {}): Metrics {
  const registry = new Registry()
  const meters: ActorMeter[] = []
  const sources = new Set<() => Promise<readonly MetricFamily[]>>()
  const shares = new ShareCounts()
  const registries = processMetrics ? [processRegistry(), registry] : [registry]
  for (const family of actorFamilies) {
    registerPlain(registry, { ...family, read: () => meters.flatMap(family.read) })
  }
  for (const family of shares.families) registerPlain(registry, family)
  const snapshot = async () => {
    const families = await Promise.all(registries.map((each) => each.getMetricsAsJSON()))
    return families.flat() as unknown as MetricFamily[]
  }
  return {
    registry,
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    watch: (meter) => void meters.push(meter),
    shares,
    include(source) {
      sources.add(source)
      return () => sources.delete(source)
    },
    snapshot,
    async exposition() {
      const gathered = await Promise.all([snapshot(), ...[...sources].map((source) => source())])
      return formatFamilies(mergeFamilies(gathered))
    },
  }
}

type ActorFamily = Omit<PlainFamily, 'read'> & {
  readonly read: (meter: ActorMeter) => MetricSample[]
}

function family(
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  value: (meter: ActorMeter) => number,
  aggregator?: Aggregator,
): ActorFamily {
  const read = (meter: ActorMeter) => [{ labels: { actor: meter.actor }, value: value(meter) }]
  return { type, name, help, read, aggregator }
}

const actorFamilies: readonly ActorFamily[] = [
  family(
    'gauge',
    'svc_actor_waiting',
    'Messages waiting in the mailbox.',
    (m) => m.stats().waiting,
  ),
  family('gauge', 'svc_actor_inflight', 'Messages being worked on.', (m) => m.stats().inflight),
  family(
    'gauge',
    'svc_actor_ready',
    '1 while the actor is fit for service, on all threads where it runs.',
    (m) => (m.readiness() ? 1 : 0),
    'min',
  ),
  family('counter', 'svc_actor_accepted_total', 'Messages taken in.', (m) => m.accepted),
  family('counter', 'svc_actor_answered_total', 'Messages answered in time.', (m) => m.answered),
  family(
    'counter',
    'svc_actor_restarts_total',
    'Fresh instances after a failure.',
    (m) => m.restarts,
  ),
  {
    type: 'counter',
    name: 'svc_loop_failed_rounds_total',
    help: 'Rounds of background loops that failed and were tried again.',
    read: ({ actor, loops }) =>
      loops().map(({ loop, failures }) => ({ labels: { actor, loop }, value: failures })),
  },
  {
    type: 'gauge',
    name: 'svc_loop_failing',
    help: '1 while all rounds of a background loop have failed for a minute.',
    aggregator: 'max',
    read: ({ actor, loops }) =>
      loops().map(({ loop, failing }) => ({ labels: { actor, loop }, value: failing ? 1 : 0 })),
  },
  {
    type: 'counter',
    name: 'svc_actor_unavailable_total',
    help: 'Messages without an outcome, by reason.',
    read: ({ actor, unavailable }) =>
      Object.entries(unavailable).map(([reason, value]) => ({ labels: { actor, reason }, value })),
  },
  {
    type: 'histogram',
    name: 'svc_actor_wait_seconds',
    help: 'From ask to start.',
    read: ({ actor, wait }) => wait.samples('svc_actor_wait_seconds', { actor }),
  },
  {
    type: 'histogram',
    name: 'svc_actor_service_seconds',
    help: 'From start to end.',
    read: ({ actor, service }) => service.samples('svc_actor_service_seconds', { actor }),
  },
]

/**
 * One family per name. Samples with the same labels from different threads are added up, unless the family names
 * another aggregator (prom-client has the same names).
 */
export function mergeFamilies(gathered: readonly (readonly MetricFamily[])[]): MetricFamily[] {
  const merged = new Map<string, { family: MetricFamily; samples: Map<string, MetricSample> }>()
  for (const family of gathered.flat()) {
    let entry = merged.get(family.name)
    if (entry === undefined) {
      entry = { family, samples: new Map() }
      merged.set(family.name, entry)
    }
    for (const sample of family.values) {
      const key = JSON.stringify([sample.metricName, Object.entries(sample.labels).toSorted()])
      const same = entry.samples.get(key)
      if (same === undefined) entry.samples.set(key, { ...sample })
      else same.value = combined(entry.family.aggregator, same.value, sample.value)
    }
  }
  return [...merged.values()].map(({ family, samples }) => ({
    ...family,
    values: [...samples.values()],
  }))
}

function combined(aggregator: string | undefined, one: number, other: number): number {
  if (aggregator === 'min') return Math.min(one, other)
  if (aggregator === 'max') return Math.max(one, other)
  // A value of one of the threads, such as the version in a label.
  if (aggregator === 'first') return one
  return one + other
}

function formatFamilies(families: readonly MetricFamily[]): string {
  const lines = families.flatMap(({ name, help, type, values }) => [
    `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
    `# TYPE ${name} ${type}`,
    ...values.map(
      ({ metricName, labels, value }) => `${metricName ?? name}${formatLabels(labels)} ${value}`,
    ),
  ])
  return `${lines.join('\n')}\n`.replaceAll(/ (-?)Infinity\n/g, ' $1Inf\n')
}

function formatLabels(labels: MetricSample['labels']): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escapeLabel(value: string | number): string {
  return String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
