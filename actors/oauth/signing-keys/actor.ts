/**
 * Keeps the signing keys: in memory for those who sign and verify, in the database for good.
 *
 * What is in memory is fresh for 30 s and looked at again at the first use after that, or at once
 * when another process tells of a change. A process that cannot look stops signing after 300 s
 * (its key may have been retired meanwhile) but goes on publishing and verifying.
 */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Kms } from '../../../storage/platform/kms/kms.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import { listSigningKeys } from '../../../storage/oauth/signing-keys.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  type KeysProtocol,
  type KeysState,
  keys,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from './protocol.js'
import { buildRing, type Ring } from './ring.js'
import { carryOut, type Done } from './rotation.js'
import { type AskedBy, tellAudit } from './audit.js'
import {
  type KeyRow,
  planMaintenance,
  planRotation,
  STALE_MAX_SECS,
  type TooEarly,
} from './rules.js'
import { turnEnds } from './turn-end.js'

const FRESH_MS = 30_000
const STALE_MAX_MS = STALE_MAX_SECS * 1000
/** Looks that fail, or that unknown kids cause, happen no more often than this. */
const LOOK_INTERVAL_MS = 1_000
const UNAVAILABLE = { tag: 'keys_unavailable' } as const

export type KeysNeeds = {
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

export const keysActor = defineActor<KeysProtocol, KeysNeeds>({
  address: keys,
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
        // Another process may have made this key a moment ago.
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
        return stateOf(ring, await kms.health())
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

/** The ring of this process, and when it was last compared with the database. */
class KeyKeeper {
  readonly #needs: KeysNeeds
  readonly #log: Logger
  #ring: Ring | undefined
  #seenMs = Number.NEGATIVE_INFINITY
  #lastLookMs = Number.NEGATIVE_INFINITY
  #looking: Promise<Ring | undefined> | undefined

  constructor(needs: KeysNeeds, log: Logger) {
    this.#needs = needs
    this.#log = log
  }

  /** The hot path: what was compared a moment ago and can sign. */
  get fresh(): Ring | undefined {
    const isComplete = this.#ring?.shut === null && this.#ring.signers.size > 0
    return isComplete && this.#ageMs() < FRESH_MS ? this.#ring : undefined
  }

  /** Stale keys sign on while a look is under way, up to the limit. */
  async forSigning(): Promise<Ring | undefined> {
    const ring = this.#ring
    if (ring?.shut === null && ring.signers.size > 0 && this.#ageMs() < STALE_MAX_MS) {
      void this.#lookInTurn()
      return ring
    }
    const looked = await this.#lookInTurn()
    return this.#ageMs() < STALE_MAX_MS ? looked : undefined
  }

  /** Keys that were published stay good for verifying, however old they are. */
  async forVerifying(): Promise<Ring | undefined> {
    const looking = this.#lookInTurn()
    if (this.#ring !== undefined && this.#ageMs() < STALE_MAX_MS) return this.#ring
    return (await looking) ?? this.#ring
  }

  /** For an unknown kid: not more often than once a second, whoever makes them up. */
  lookAgain(): Promise<Ring | undefined> {
    return this.#lookInTurn()
  }

  /** Compares with the database now. The ring afterwards; the old one when that failed. */
  async look(): Promise<Ring | undefined> {
    // One that is under way may have read before the change it is asked about: wait, then look.
    await this.#looking
    return this.#startLook()
  }

  /** Makes a plan real and looks at the result. Undefined when database or kms do not answer. */
  async change(
    planner: Parameters<typeof carryOut>[2],
    by: AskedBy,
    context: MessageContext,
  ): Promise<Done | TooEarly | undefined> {
    try {
      const { clock, random } = this.#needs
      const now = clock.now()
      const outcome = await carryOut(this.#needs, now, planner, tellAudit(random, now, by))
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
      if (ring.shut !== null) this.#log.error({ reason: ring.shut }, 'a signing key stays shut')
      this.#ring = ring
      this.#seenMs = this.#lastLookMs
      return ring
    } catch (error) {
      this.#log.error({ err: error }, 'signing keys could not be read')
      return this.#ring
    }
  }
}
