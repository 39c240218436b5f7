/**
 * Probes. A loop of its own looks at everything that readiness rests on; requests read what it last
 * saw, so that a probe costs no database call and a lost database is known within two seconds.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import type { Database } from '../../../storage/platform/sql.js'
import { signingKeys, type SigningKeysProtocol } from '../../oauth/signing-keys/protocol.js'
import { type HealthProtocol, health } from './protocol.js'

/** Pause between looks; with the limit below a loss is seen within 1.6 s. */
const PAUSE_MS = 500
/** While something is wrong, so that the end of a start or of an outage is seen soon. */
const PAUSE_UNFIT_MS = 100
const LOOK_LIMIT_MS = 1_000

/** What only the process knows about itself. */
export interface ProcessState {
  /** Every step of the start is done: migrations ran, actors answer, listeners are open. */
  started(): boolean
  /** Shutdown began: no new work. */
  stopping(): boolean
  /** Names of actors and critical background tasks that are unfit now. */
  unfit(): readonly string[]
}

export type HealthNeeds = {
  readonly database: Pick<Database, 'ping'>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly process: ProcessState
}

type Findings = { readonly faults: readonly string[]; readonly keysLoaded: boolean }

export const healthActor = defineActor<HealthProtocol, HealthNeeds>({
  address: health,
  asks: { keys: signingKeys },
  mailbox: { capacity: 4096, inflightMax: 1024 },
  lane: { live: () => undefined, startup: () => undefined, ready: () => undefined },
  create: ({ database, keys, process }, { signal, log }) => {
    let seen: Findings = { faults: ['not looked yet'], keysLoaded: false }
    let told = 'not looked yet'

    async function databaseFault(): Promise<string | null> {
      try {
        await within(LOOK_LIMIT_MS, (limit) => database.ping(limit))
        return null
      } catch {
        return 'the database does not answer'
      }
    }

    async function keysFaults(): Promise<Findings> {
      try {
        const state = await keys.ask('state', null, { timeoutMs: LOOK_LIMIT_MS })
        const faults = [
          ...(state.signing ? [] : [`signing keys: ${state.reason ?? 'not loaded'}`]),
          ...(state.kms === 'up' ? [] : [`kms: ${state.reason ?? 'does not answer'}`]),
        ]
        return { faults, keysLoaded: state.signing }
      } catch {
        return { faults: ['the keys actor does not answer'], keysLoaded: seen.keysLoaded }
      }
    }

    async function look(): Promise<void> {
      const [lost, ofKeys] = await Promise.all([databaseFault(), keysFaults()])
      const faults = [...(lost === null ? [] : [lost]), ...ofKeys.faults]
      // Actors and background loops: whether they are fit is asked with every probe, and told here.
      const all = [...faults, ...process.unfit().map((name) => `${name} fails`)]
      const after = all.join('; ')
      // Details are for the log alone (interface.md, Health).
      if (told !== after && all.length > 0) log.warn({ faults: all }, 'not ready')
      if (told !== after && all.length === 0) log.info('ready')
      told = after
      seen = { faults, keysLoaded: ofKeys.keysLoaded }
    }

    async function keepLooking(): Promise<void> {
      while (!signal.aborted) {
        await look()
        const pauseMs = seen.faults.length > 0 ? PAUSE_UNFIT_MS : PAUSE_MS
        await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    void keepLooking()

    return {
      live: async () => ({ tag: 'ok' }),
      startup: async () => ({ tag: process.started() && seen.keysLoaded ? 'ok' : 'starting' }),
      ready: async () => {
        const fit =
          process.started() &&
          !process.stopping() &&
          seen.faults.length === 0 &&
          process.unfit().length === 0
        return { tag: fit ? 'ok' : 'unavailable' }
      },
    }
  },
})

/** Runs `work` with a signal, and does not wait for it longer than the limit even if it ignores it. */
async function within(limitMs: number, work: (limit: AbortSignal) => Promise<void>): Promise<void> {
  const limit = AbortSignal.timeout(limitMs)
  const late = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(new Error('too late')), { once: true })
  })
  await Promise.race([work(limit), late])
}
