/** The keys of one owner in memory, and how they follow the database. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import { listSigningKeys } from '../../../storage/oauth/signing-keys.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import { type AskedBy, auditRotation } from './audit.js'
import type { SigningAlgorithm } from './protocol.js'
import { buildRing, type Ring } from './ring.js'
import { carryOut, type Done } from './rotation.js'
import { STALE_MAX_SECS, type TooEarly } from './rules.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

const FRESH_MS = 30_000
const STALE_MAX_MS = STALE_MAX_SECS * 1000
/** Minimum interval of reads after failures and for unknown kids. */
const LOOK_INTERVAL_MS = 1_000

export type KeeperNeeds = WriteNeeds & {
  readonly sealer: Sealer
}

/** The key ring of this process, and when it was last compared with the database. */
export class KeyKeeper {
  readonly #needs: KeeperNeeds
  readonly #log: Logger
  readonly #owner: string
  #ring: Ring | undefined
  #seenMs = Number.NEGATIVE_INFINITY
  #lastLookMs = Number.NEGATIVE_INFINITY
  #looking: Promise<Ring | undefined> | undefined

  /** @param owner the tenant of the keys. */
  constructor(needs: KeeperNeeds, log: Logger, owner = SYSTEM_TENANT_ID) {
    this.#needs = needs
    this.#log = log
    this.#owner = owner
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
      const outcome = await carryOut(
        { ...this.#needs, owner: this.#owner },
        now,
        planner,
        auditRotation(random, now, by),
      )
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

  /** The keys are no longer fresh: the next use reads the database again. */
  expire(): void {
    this.#seenMs = Math.min(this.#seenMs, this.#needs.clock.monotonicMs() - FRESH_MS)
    this.#lastLookMs = Number.NEGATIVE_INFINITY
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
    const startedMs = clock.monotonicMs()
    this.#lastLookMs = startedMs
    try {
      const owner = this.#owner
      const rows = await database.tenant(owner, (tx) => listSigningKeys(tx, owner))
      const ring = await buildRing(rows, this.#ring, sealer, clock.now(), owner)
      if (ring.shut !== null)
        this.#log.error({ reason: ring.shut }, 'a signing key cannot be decrypted')
      this.#ring = ring
      this.#seenMs = startedMs
      return ring
    } catch (error) {
      this.#log.error({ err: error }, 'signing keys could not be read')
      return this.#ring
    }
  }
}
