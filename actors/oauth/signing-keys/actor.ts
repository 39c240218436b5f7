/**
 * Keeps the signing keys in memory and in the database.
 *
 * Keys in memory are fresh for 30 s. The first use after that reads the database again, and so does a
 * notification of another process. A process that cannot read stops signing after 300 s, since its key
 * may have been retired, but still publishes and verifies.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Kms, KmsHealth } from '../../../storage/platform/kms/kms.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import { listSigningKeys } from '../../../storage/oauth/signing-keys.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  type SigningKeysProtocol,
  type KeysState,
  signingKeys,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from './protocol.js'
import { buildRing, type Ring } from './ring.js'
import { carryOut, type Done } from './rotation.js'
import { type AskedBy, auditRotation } from './audit.js'
import {
  type KeyRow,
  planMaintenance,
  planRotation,
  STALE_MAX_SECS,
  type TooEarly,
} from './rules.js'

const FRESH_MS = 30_000
const STALE_MAX_MS = STALE_MAX_SECS * 1000
/** Minimum interval of reads after failures and for unknown kids. */
const LOOK_INTERVAL_MS = 1_000
/** A frozen kms does not delay the report of the keys in memory. */
const KMS_ANSWER_MS = 500
const KMS_LATE: KmsHealth = { state: 'down', reason: 'it does not answer' }
const UNAVAILABLE = { tag: 'keys_unavailable' } as const

export type SigningKeysNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly kms: Kms
  readonly clock: Clock
  readonly random: Random
  /** From [jwt]. */
  readonly settings: {
    readonly default_algorithm: SigningAlgorithm
    readonly key_rotation_days: number
  }
}

export const signingKeysActor = defineActor<SigningKeysProtocol, SigningKeysNeeds>({
  address: signingKeys,
  asks: {},
  mailbox: { capacity: 16_384, inflightMax: 1_024 },
  lane: {
    rotate: () => 'rotation',
    maintain: () => 'rotation',
  },
  create: (needs, { log }) => {
    const keeper = new KeyKeeper(needs, log)
    const { settings, clock, kms } = needs
    const turnEnd = turnEnds()
    return {
      async sign({ typ, claims, algorithm = settings.default_algorithm }) {
        await turnEnd()
        const signer = (keeper.fresh ?? (await keeper.forSigning()))?.signers.get(algorithm)
        if (signer === undefined) return UNAVAILABLE
        const { kid } = signer.key
        return { tag: 'signed', token: signer.sign(typ, claims), kid, algorithm }
      },
      async keySet() {
        return (keeper.fresh ?? (await keeper.forVerifying()))?.keySet ?? UNAVAILABLE
      },
      async verificationKey({ kid }) {
        const found = (keeper.fresh ?? (await keeper.forVerifying()))?.verification.get(kid)
        if (found !== undefined) return found
        // Another process may have created this key a moment ago.
        const ring = await keeper.lookAgain()
        if (ring === undefined) return UNAVAILABLE
        return ring.verification.get(kid) ?? { tag: 'unknown' }
      },
      async rotate(demand, context) {
        const { caller } = demand
        const by = caller === undefined ? null : { caller, requestId: context.requestId }
        const plan = (rows: readonly KeyRow[]) => planRotation(rows, clock.now(), demand)
        const outcome = await keeper.change(plan, by, context)
        if (outcome === undefined) return UNAVAILABLE
        if (outcome.tag === 'too_early') {
          return { tag: 'rotated_too_recently', retryAfterSecs: outcome.waitSecs }
        }
        context.log.info({ compromised: demand.compromised }, 'signing keys rotated on demand')
        return { tag: 'rotated', current: keeper.current() }
      },
      async maintain(_, context) {
        const days = settings.key_rotation_days
        const plan = (rows: readonly KeyRow[]) => planMaintenance(rows, clock.now(), days)
        const outcome = await keeper.change(plan, null, context)
        if (outcome === undefined || outcome.tag === 'too_early') return UNAVAILABLE
        return { ...outcome, tag: 'maintained' }
      },
      async state() {
        const ring = keeper.fresh ?? (await keeper.forSigning())
        const late = sleep(KMS_ANSWER_MS, KMS_LATE, { ref: false })
        return stateOf(ring, await Promise.race([kms.health(), late]))
      },
      async changed() {
        await keeper.look()
        return undefined
      },
    }
  },
})

function stateOf(ring: Ring | undefined, health: Awaited<ReturnType<Kms['health']>>): KeysState {
  const signing = ring !== undefined && SIGNING_ALGORITHMS.every((each) => ring.signers.has(each))
  const kms = health.state
  const missing = ring === undefined ? 'no signing keys are loaded' : ring.shut
  const reason = signing && health.state === 'up' ? null : missing
  return {
    tag: 'keys_state',
    signing,
    kms,
    reason: reason ?? (health.state === 'down' ? health.reason : null),
  }
}

/** The key ring of this process, and when it was last compared with the database. */
class KeyKeeper {
  readonly #needs: SigningKeysNeeds
  readonly #log: Logger
  #ring: Ring | undefined
  #seenMs = Number.NEGATIVE_INFINITY
  #lastLookMs = Number.NEGATIVE_INFINITY
  #looking: Promise<Ring | undefined> | undefined

  constructor(needs: SigningKeysNeeds, log: Logger) {
    this.#needs = needs
    this.#log = log
  }

  /** The ring for the hot path: complete and recently compared. */
  get fresh(): Ring | undefined {
    const isComplete = this.#ring?.shut === null && this.#ring.signers.size > 0
    return isComplete && this.#ageMs() < FRESH_MS ? this.#ring : undefined
  }

  /** Signs with stale keys while a read is running, up to the time limit. */
  async forSigning(): Promise<Ring | undefined> {
    const ring = this.#ring
    if (ring?.shut === null && ring.signers.size > 0 && this.#ageMs() < STALE_MAX_MS) {
      void this.#lookInTurn()
      return ring
    }
    const looked = await this.#lookInTurn()
    return this.#ageMs() < STALE_MAX_MS ? looked : undefined
  }

  /** Published keys verify tokens independent of their age in memory. */
  async forVerifying(): Promise<Ring | undefined> {
    const looking = this.#lookInTurn()
    if (this.#ring !== undefined && this.#ageMs() < STALE_MAX_MS) return this.#ring
    return (await looking) ?? this.#ring
  }

  /** Reads again for an unknown kid, at most once a second, because clients choose the kid. */
  lookAgain(): Promise<Ring | undefined> {
    return this.#lookInTurn()
  }

  /** Reads the database now. Returns the new ring, or the old one after a failure. */
  async look(): Promise<Ring | undefined> {
    // A running read may have started before the change, so wait for it and read again.
    await this.#looking
    return this.#startLook()
  }

  /** Executes a plan and reads the result. Undefined if the database or the kms is unavailable. */
  async change(
    planner: Parameters<typeof carryOut>[2],
    by: AskedBy,
    context: MessageContext,
  ): Promise<Done | TooEarly | undefined> {
    try {
      const { clock, random } = this.#needs
      const now = clock.now()
      const outcome = await carryOut(this.#needs, now, planner, auditRotation(random, now, by))
      await this.look()
      return outcome
    } catch (error) {
      context.log.error({ err: error }, 'signing keys could not be changed')
      return undefined
    }
  }

  current(): { kid: string; algorithm: SigningAlgorithm }[] {
    const rows = this.#ring?.rows ?? []
    return rows
      .filter(({ state }) => state === 'current')
      .map(({ kid, algorithm }) => ({ kid, algorithm }))
  }

  #ageMs(): number {
    return this.#needs.clock.monotonicMs() - this.#seenMs
  }

  async #lookInTurn(): Promise<Ring | undefined> {
    if (this.#looking !== undefined) return this.#looking
    const nowMs = this.#needs.clock.monotonicMs()
    if (nowMs - this.#lastLookMs < LOOK_INTERVAL_MS) return this.#ring
    return this.#startLook()
  }

  #startLook(): Promise<Ring | undefined> {
    if (this.#looking !== undefined) return this.#looking
    const looking = this.#read().finally(() => {
      this.#looking = undefined
    })
    this.#looking = looking
    return looking
  }

  async #read(): Promise<Ring | undefined> {
    const { database, sealer, clock } = this.#needs
    this.#lastLookMs = clock.monotonicMs()
    try {
      const rows = await database.tenant(SYSTEM_TENANT_ID, (tx) =>
        listSigningKeys(tx, SYSTEM_TENANT_ID),
      )
      const ring = await buildRing(rows, this.#ring, sealer, clock.now())
      if (ring.shut !== null)
        this.#log.error({ reason: ring.shut }, 'a signing key cannot be decrypted')
      this.#ring = ring
      this.#seenMs = this.#lastLookMs
      return ring
    } catch (error) {
      this.#log.error({ err: error }, 'signing keys could not be read')
      return this.#ring
    }
  }
}

/**
 * Defers work to the end of the event loop turn, so that all signatures of a turn run in a row. A P-256
 * signature reads a 150 KiB table: the next signature finds it in the CPU cache, other work evicts it.
 */
function turnEnds(): () => Promise<void> {
  let end: Promise<void> | undefined
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = undefined
        resolve()
      })
    })
    return end
  }
}
