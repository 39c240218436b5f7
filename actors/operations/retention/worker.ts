/**
 * Background maintenance of a deployment, in rounds of a minute: removes expired rows, records lost egress calls,
 * rotates signing keys, and seals values again whose data key was replaced.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import { signingKeys, type SigningKeysProtocol } from '../../oauth/signing-keys/protocol.js'
import { counter } from '../../platform/metrics.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { sweepExpired, type SweepNeeds } from './sweeps.js'

const ROUND_MS = 60_000
const FIRST_ROUND_MS = 5_000
/** Pause after a round that failed though the database is there. */
const FAILED_ROUND_MS = 10_000
/** Pause between questions to a database that is away. */
const AWAY_MS = 500

type RetentionNeeds = SweepNeeds & {
  readonly database: Pick<OpenDatabase, 'ping'>
  readonly keys: ActorRef<SigningKeysProtocol>
  /** Seals the values again whose data key was replaced. @returns how many values. */
  readonly reseal: (signal: AbortSignal) => Promise<number>
  /** Records the end of egress calls whose process has died. @returns how many calls. */
  readonly closeLostCalls: (signal: AbortSignal) => Promise<number>
  /** Records how many egress calls of killed processes may be missing. @returns the most that are missing. */
  readonly recordUnknownCalls: (signal: AbortSignal) => Promise<number>
  /** Expires requests to connect accounts, ends connections of deleted connectors, revokes tokens at providers. */
  readonly tendConnections: (signal: AbortSignal) => Promise<void>
  /** Removes images of tenants that were retired long ago. Null without `tenant_assets.enabled`. */
  readonly removeRetiredAssets: ((signal: AbortSignal) => Promise<unknown>) | null
}

export const retentionWorker = defineWorker<RetentionNeeds>({
  name: 'upkeep',
  asks: { keys: signingKeys },
  run: async (needs, { signal, log, loop }) => {
    const { registry } = needs
    const resealedTotal = counter(
      registry,
      'svc_data_keys_resealed_total',
      'Values re-encrypted because their data key was replaced.',
    )
    const lostTotal = counter(
      registry,
      'svc_egress_calls_lost_total',
      'Relayed requests that ended because their process died.',
    )
    const unknownTotal = counter(
      registry,
      'svc_egress_calls_unknown_total',
      'Most relayed requests that killed processes may have sent without a record.',
    )

    async function closeLostCalls(): Promise<void> {
      const lost = await needs.closeLostCalls(signal)
      lostTotal.inc(lost)
      if (lost > 0) log.warn({ calls: lost }, 'egress calls ended with their process')
    }

    async function recordUnknownCalls(): Promise<void> {
      const calls = await needs.recordUnknownCalls(signal)
      unknownTotal.inc(calls)
      if (calls > 0)
        log.warn({ calls }, 'killed processes may have sent egress calls without a record')
    }

    /** @returns false when the task failed. The other tasks of the round run anyway. */
    async function done(work: string, run: () => Promise<unknown>): Promise<boolean> {
      const reported = loop(work)
      try {
        await run()
        reported.succeeded()
        return true
      } catch (error) {
        reported.failed()
        if (!signal.aborted) log.warn({ err: error, work }, 'retention: round failed')
        return false
      }
    }

    const pause = (ms: number) =>
      sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)

    /** Waits for the database. @returns true when it was away. */
    async function awaited(): Promise<boolean> {
      for (let wasAway = false; ; wasAway = true) {
        const isThere = await needs.database.ping(signal).then(
          () => true,
          () => false,
        )
        if (isThere || signal.aborted) return wasAway
        await pause(AWAY_MS)
      }
    }

    /** @returns false when a task failed. */
    async function round(): Promise<boolean> {
      const isUp = await done('sweeps', () => sweepExpired(needs, signal))
      const results = [isUp]
      // After an outage the processes that relayed the calls record the ends that waited for the database.
      if (isUp && !wasDown) {
        results.push(await done('lost calls', closeLostCalls))
        results.push(await done('unknown calls', recordUnknownCalls))
      }
      wasDown = !isUp
      results.push(await done('signing keys', () => needs.keys.maintain(null, { signal })))
      const reseal = async () => resealedTotal.inc(await needs.reseal(signal))
      results.push(await done('sealed values', reseal))
      results.push(await done('connections', () => needs.tendConnections(signal)))
      const { removeRetiredAssets } = needs
      if (removeRetiredAssets !== null) {
        results.push(await done('assets', () => removeRetiredAssets(signal)))
      }
      return results.every((isDone) => isDone)
    }

    let wasDown = false
    await pause(FIRST_ROUND_MS)
    while (!signal.aborted) {
      // Readiness follows the rounds. It does not wait a minute for the end of a fault.
      if (await round()) await pause(ROUND_MS)
      else if (!(await awaited())) await pause(FAILED_ROUND_MS)
    }
  },
})
