/** The probe actor in each place, for suites that run in every place. */
import type { ExecutionContext } from 'ava'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import { spawnInline } from '../../../runtime/kernel/inline.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { ActorStats, Metrics } from '../../../runtime/kernel/metrics/metrics.js'
import { inlineCompute, openPool } from '../../../runtime/kernel/threads/pool.js'
import { spawnThread, type ThreadOptions } from '../../../runtime/kernel/threads/thread.js'
import * as arithmetic from './threads/arithmetic.js'
import { back, backActor, probe, probeActor, type ProbeProtocol } from './probe.js'

export const PLACES = ['inline', 'thread', 'pool'] as const
export type Place = (typeof PLACES)[number]

export interface Placed {
  readonly ref: ActorRef<ProbeProtocol>
  readonly stats: () => ActorStats
  readonly readiness: () => boolean
  readonly drain: (withinMs: number) => Promise<boolean>
  readonly stop: () => Promise<void>
  /** Signals of the probe's asks to the `back` actor. */
  readonly stalls: AbortSignal[]
}

export interface PlaceOptions {
  readonly log?: Logger | undefined
  readonly metrics?: Metrics | undefined
  readonly thread?: Partial<ThreadOptions> | undefined
}

const never = () => {
  throw new Error('only on a thread')
}

/** Starts a probe, and stops it at the end of the test. */
export async function placeProbe(
  t: Pick<ExecutionContext, 'teardown'>,
  place: Place,
  options: PlaceOptions = {},
): Promise<Placed> {
  const placed = await startProbe(place, options)
  t.teardown(placed.stop)
  return placed
}

async function startProbe(place: Place, options: PlaceOptions): Promise<Placed> {
  const stalls: AbortSignal[] = []
  const onStall = (signal: AbortSignal) => void stalls.push(signal)
  const { log, metrics } = options
  const backSide = spawnInline(backActor, { onStall })
  if (place === 'thread') {
    const thread = await spawnThread({
      name: 'probing',
      entry: new URL('./threads/probe-thread.js', import.meta.url),
      definitions: [probeActor],
      offers: (actor) => (actor === back.name ? backSide.ref : undefined),
      log,
      metrics,
      ...options.thread,
    })
    return {
      ref: thread.ref(probe),
      stats: () => thread.stats()[0]!,
      readiness: () => thread.readiness().ready,
      drain: (withinMs) => thread.drain(withinMs).finally(() => backSide.stop()),
      stop: async () => {
        await thread.stop()
        await backSide.stop()
      },
      stalls,
    }
  }
  const pool =
    place === 'pool'
      ? openPool<typeof arithmetic>({
          name: 'arithmetic',
          module: new URL('./threads/arithmetic.js', import.meta.url),
          threadsMax: 2,
        })
      : undefined
  const compute = pool ?? inlineCompute(arithmetic)
  const needs = { back: backSide.ref, compute, countLife: never }
  const actor = spawnInline(probeActor, needs, { cloneMessages: true, log, metrics })
  const end = async () => {
    await pool?.close()
    await backSide.stop()
  }
  return {
    ref: actor.ref,
    stats: actor.stats,
    readiness: () => actor.stats().ready,
    drain: (withinMs) => actor.drain(withinMs).finally(end),
    stop: () => actor.stop().finally(end),
    stalls,
  }
}
