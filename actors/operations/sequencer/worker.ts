/**
 * Numbers events after their commit: per tenant without gaps, each chained to the one before it (docs/concepts/storage.md,
 * Events). All state is in the database: the lock of a tenant's head is the lease, so several processes can run one each,
 * and a process that dies leaves unnumbered events to the next pass of any other.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import {
  CAUSES_CHANNEL,
  EVENTS_CHANNEL,
  freeNumbered,
  hasMore,
  LOCKED,
  mayFreeNumbered,
  numberWaiting,
  type NumberedTenant,
  RECORDED_CHANNEL,
} from '../../../storage/platform/event-numbers.js'
import { SINKS_CHANNEL } from '../../../storage/webhooks/event-sinks.js'
import { notifyAfterCommit } from '../../../storage/platform/transaction.js'
import { UNWOKEN_MS_MAX, WakeSignal } from '../../platform/batching/wake-signal.js'
import { counter, histogram } from '../../platform/metrics.js'

/** Between two passes that number events, so that under load one pass numbers the events of several commits. */
const SPACING_MS = 8
/** Numbered events after which their space is freed. */
const FREED_AFTER_EVENTS = 5_000
/** Freeing takes at most this part of the time, also while an old transaction keeps the space in use. */
const FREEING_PART_MAX = 0.05
const MISHAP_MS = 1_000
/** SQLSTATE class 53: the server lacks disk, memory or connections, so that no tenant's events can be numbered. */
const LACKS_RESOURCES = /^53/

type SequencerNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'single' | 'listener' | 'wakeHere'>
  readonly clock: Clock
  readonly registry: Registry
  /** True if a worker of this process sends numbered events to a message broker. */
  readonly hasSinks: boolean
  /** Receives a promise of the last pass, which a stop waits for. */
  readonly settled: (run: Promise<void>) => void
}

export const sequencerWorker = defineWorker<SequencerNeeds>({
  name: 'sequencer',
  asks: {},
  run(needs, lifecycle) {
    const run = numberUntilStopped(needs, lifecycle)
    needs.settled(run.catch(() => undefined))
    return run
  },
})

async function numberUntilStopped(
  { database, clock, registry, hasSinks }: SequencerNeeds,
  { signal, log, loop }: Pick<Lifecycle, 'signal' | 'log' | 'loop'>,
): Promise<void> {
  const metrics = sequencerMetrics(registry)
  const recorded = new WakeSignal()
  const wake = () => recorded.wake()
  signal.addEventListener('abort', wake, { once: true })
  const leave = [database.wakeHere(RECORDED_CHANNEL, wake)]
  try {
    const subscription = { notified: wake, caughtUp: wake }
    leave.push(await database.listener.listen(RECORDED_CHANNEL, subscription))
  } catch (error) {
    log.warn({ err: error }, 'sequencer: wake signals unavailable, polling every 5 seconds')
  }

  const space = numberedSpace(database, clock, log)

  /**
   * One pass over all tenants. @returns whether it numbered events, whether the next pass can number more, and whether the
   * server lacks what numbering needs.
   */
  async function pass() {
    let isBusy = false
    let isMore = false
    let isStarved = false
    let after: string | undefined
    do {
      const { tenants, next } = await database.system(async (tx) => {
        const passed = await numberWaiting(tx, after)
        if (passed.tenants.some(({ waiting }) => waiting > 0)) notifyAfterCommit(tx, EVENTS_CHANNEL)
        if (passed.tenants.some(({ isStreamed }) => isStreamed))
          notifyAfterCommit(tx, CAUSES_CHANNEL)
        const isNumbered = passed.tenants.some(({ numbered }) => numbered > 0)
        if (hasSinks && isNumbered) notifyAfterCommit(tx, SINKS_CHANNEL)
        return passed
      })
      const now = clock.now().getTime()
      for (const tenant of tenants) {
        metrics.numbered.inc(tenant.numbered)
        space.grew(tenant.numbered)
        if (tenant.oldest !== null) {
          metrics.delay.observe(Math.max(0, now - tenant.oldest.getTime()) / 1000)
        }
        isBusy ||= tenant.numbered > 0
        isMore ||= hasMore(tenant)
        if (tenant.failure !== null && tenant.failure !== LOCKED) reportFailure(tenant)
        isStarved ||= LACKS_RESOURCES.test(tenant.failure ?? '')
      }
      after = next
    } while (after !== undefined)
    return { isBusy, isMore, isStarved }
  }

  function reportFailure({ tenantId, failure }: NumberedTenant): void {
    metrics.failures.inc()
    log.error({ tenantId, failure }, 'sequencer: the events of a tenant cannot be numbered')
  }

  const rounds = loop('numbering')
  try {
    while (!signal.aborted) {
      try {
        const { isBusy, isMore, isStarved } = await pass()
        rounds.succeeded()
        space.freeIfDue()
        // The commits of other writers would wake it for a pass that fails.
        if (isStarved) await sleep(MISHAP_MS, undefined, { signal }).catch(() => undefined)
        else if (isBusy || isMore) await sleep(SPACING_MS)
        if (!isMore) await recorded.wait(UNWOKEN_MS_MAX)
      } catch (error) {
        if (signal.aborted) break
        rounds.failed()
        log.warn({ err: error }, 'sequencer: pass failed, retrying')
        await sleep(MISHAP_MS, undefined, { signal }).catch(() => undefined)
      }
    }
    // A stop leaves no event of this process unnumbered.
    await pass().catch(() => undefined)
    await space.freed()
  } finally {
    for (const end of leave) end()
  }
}

/** Frees the space of numbered events now and then. */
function numberedSpace(database: SequencerNeeds['database'], clock: Clock, log: Lifecycle['log']) {
  let numbered = 0
  let freeAgainMs = 0
  let mayFree: boolean | undefined
  let freeing: Promise<void> | undefined
  async function free(): Promise<void> {
    mayFree ??= await mayFreeNumbered(database)
    if (mayFree) await freeNumbered(database)
  }
  return {
    grew: (events: number) => void (numbered += events),
    freed: () => freeing,
    freeIfDue(): void {
      const startedMs = clock.monotonicMs()
      if (numbered < FREED_AFTER_EVENTS || freeing !== undefined || startedMs < freeAgainMs) return
      numbered = 0
      freeing = free()
        .catch((error: unknown) => log.debug({ err: error }, 'sequencer: space was not freed'))
        .then(() => {
          const endedMs = clock.monotonicMs()
          freeAgainMs = endedMs + (endedMs - startedMs) / FREEING_PART_MAX
          freeing = undefined
        })
    },
  }
}

function sequencerMetrics(registry: Registry) {
  return {
    numbered: counter(
      registry,
      'svc_events_numbered_total',
      'Events that got their number and their place in the audit chain.',
    ),
    failures: counter(
      registry,
      'svc_event_numbering_failures_total',
      'Passes in which the events of a tenant could not be numbered.',
    ),
    delay: histogram(
      registry,
      'svc_event_numbering_delay_seconds',
      'Age of the oldest event of a tenant when it was numbered.',
      [0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 10, 60],
    ),
  }
}
