/**
 * Health probes. A loop checks everything that readiness depends on, and probes return the last
 * result. A probe therefore costs no database call, and a lost database is detected within two
 * seconds.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import { KEY_LIFETIME_MS } from '../../../storage/platform/sealing/seal.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  type KeysState,
  signingKeys,
  type SigningKeysProtocol,
} from '../../oauth/signing-keys/protocol.js'
import {
  type ActorReport,
  doctorKey,
  type HealthProtocol,
  health,
  type PlaneReport,
} from './protocol.js'

/** Pause between checks. With the time limit below, a failure is detected within 1.6 s. */
const PAUSE_MS = 500
/** Shorter pause while unhealthy, so that recovery and the end of a start are detected soon. */
const PAUSE_UNFIT_MS = 100
const CHECK_LIMIT_MS = 1_000

/** State that only the process knows. */
export interface ProcessState {
  /** True when every start step is done: migrations ran, actors respond, listeners are open. */
  started(): boolean
  /** True once shutdown has begun: no new work is accepted. */
  stopping(): boolean
  /** Names of actors and critical background loops that are failing now. */
  unfit(): readonly string[]
}

/** What runs in the process. */
export interface ProcessReport {
  planes(): readonly PlaneReport[]
  actors(): readonly ActorReport[]
}

type HealthNeeds = {
  readonly database: Pick<Database, 'ping'>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly coordination: Pick<Coordination, 'get'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly process: ProcessState
  readonly report: ProcessReport
}

type Findings = { readonly faults: readonly string[]; readonly keysLoaded: boolean }

export const healthActor = defineActor<HealthProtocol, HealthNeeds>({
  address: health,
  asks: { keys: signingKeys },
  mailbox: { capacity: 4096, inflightMax: 1024 },
  create: ({ database, keys, coordination, clock, process, report }, { signal, log }) => {
    let seen: Findings = { faults: ['not checked yet'], keysLoaded: false }
    let logged = 'not checked yet'
    let kmsSeenMs = clock.monotonicMs()
    let isKmsLost = false

    async function databaseFault(): Promise<string | null> {
      try {
        await within(CHECK_LIMIT_MS, (limit) => database.ping(limit))
        return null
      } catch {
        return 'database unavailable'
      }
    }

    async function keysFaults(): Promise<Findings> {
      try {
        const state = await keys.state(null, { timeoutMs: CHECK_LIMIT_MS })
        const unsigned = state.signing ? [] : [`signing keys: ${state.reason ?? 'not loaded'}`]
        return { faults: [...unsigned, ...kmsFaults(state)], keysLoaded: state.signing }
      } catch {
        return { faults: ['keys actor unavailable'], keysLoaded: seen.keysLoaded }
      }
    }

    /** Keys in memory serve requests without the kms, in every process: a proxy that left all of them out would not help. */
    function kmsFaults({ kms, reason }: KeysState): readonly string[] {
      const nowMs = clock.monotonicMs()
      const isLost = kms === 'down'
      if (isLost && !isKmsLost) log.warn({ reason }, 'kms lost: keys in memory are used')
      if (!isLost && isKmsLost) log.info('kms found')
      isKmsLost = isLost
      if (!isLost) kmsSeenMs = nowMs
      const isSpent = nowMs - kmsSeenMs >= KEY_LIFETIME_MS
      return isSpent ? [`kms: ${reason ?? 'unavailable'}`] : []
    }

    async function look(): Promise<void> {
      const [lost, ofKeys] = await Promise.all([databaseFault(), keysFaults()])
      const faults = [...(lost === null ? [] : [lost]), ...ofKeys.faults]
      // Actors and background loops are queried with each probe, and their changes are logged here.
      const all = [...faults, ...process.unfit().map((name) => `${name} fails`)]
      const current = all.join('; ')
      // Details are logged only. The probe response has none.
      // A process that starts is not ready, which is no fault.
      if (process.started() && logged !== current) {
        if (all.length > 0) log.warn({ faults: all }, 'not ready')
        else log.info('ready')
        logged = current
      }
      seen = { faults, keysLoaded: ofKeys.keysLoaded }
    }

    async function keepChecking(): Promise<void> {
      while (!signal.aborted) {
        await look()
        const pauseMs = seen.faults.length > 0 ? PAUSE_UNFIT_MS : PAUSE_MS
        await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    void keepChecking()

    return {
      async healthLive() {
        return { tag: 'ok' }
      },
      async healthStartup() {
        return { tag: process.started() && seen.keysLoaded ? 'ok' : 'starting' }
      },
      async healthReady() {
        const fit =
          process.started() &&
          !process.stopping() &&
          seen.faults.length === 0 &&
          process.unfit().length === 0
        return { tag: fit ? 'ok' : 'unavailable' }
      },
      async healthRequest({ ticket, seen }) {
        const known = ticket === null ? undefined : await coordination.get(doctorKey(ticket))
        return known === undefined ? { tag: 'not_admitted' } : { tag: 'described', seen }
      },
      async listDeploymentPlanes() {
        return { tag: 'planes', planes: report.planes() }
      },
      async listDeploymentActors() {
        return { tag: 'actors', actors: report.actors() }
      },
    }
  },
})

/** Runs `work` with a signal, and stops waiting at the limit even if `work` ignores the signal. */
async function within(limitMs: number, work: (limit: AbortSignal) => Promise<void>): Promise<void> {
  const limit = AbortSignal.timeout(limitMs)
  const late = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(new Error('too late')), { once: true })
  })
  await Promise.race([work(limit), late])
}
