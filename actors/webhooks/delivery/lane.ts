/**
 * One receiver while this worker holds its lane: a few attempts side by side, in the order in which
 * they fell due, until nothing is due, its turn is over, the receiver needs a rest, or the worker stops.
 */
import type { Logger } from '../../../runtime/kernel/log.js'
import type { AttemptRecord, DueDelivery } from '../../../storage/webhooks/deliveries.js'
import type { ClaimedLane, LaneRelease } from '../../../storage/webhooks/webhook-lanes.js'
import { Bell } from '../../platform/batching/wake-signal.js'
import {
  CIRCUIT_FAILURES,
  GONE,
  isAlive,
  judgeAttempt,
  restSecs,
  slowRestSecs,
} from './retry-schedule.js'
import type { DeliveryOutcomes } from './metrics.js'
import type { Sender } from './sender.js'

/** Attempts at one receiver side by side. */
export const ATTEMPTS_AT_ONCE = 4
/** The lane is given back after so long, or so many attempts: then other tenants have their turn. */
const TURN_MS = 10_000
const TURN_ATTEMPTS = 1_000
/** While attempts run, the lane looks for news of other processes this often. */
const REFILL_MS = 1_000
/** A receiver that has only failed for so long is switched off. */
const FAILING_MS_MAX = 5 * 24 * 60 * 60_000
/** Rest after something of ours did not work. */
const MISHAP_REST_SECS = 5

/** A target that was read longer ago is read again before the next attempt: its tenant may be suspended. */
const TARGET_MS_MAX = 500

export const INACTIVE = 'subscription_inactive'
export const PAUSED = 'paused'

/** Where a lane sends, its secrets opened. */
export type OpenTarget = {
  readonly url: string
  readonly secret: string
  readonly previousSecret: string | null
}

/** Undefined: the subscription is inactive. Paused: its tenant is suspended, and what is due waits. */
export type Target = OpenTarget | typeof PAUSED | undefined

/** What a lane asks of its worker. */
export interface LaneKeeper {
  readonly sender: Sender
  readonly schedule: readonly number[]
  readonly outcomes: DeliveryOutcomes
  readonly log: Logger
  /** Aborted when attempts that still run are to be given up. */
  readonly giveUp: AbortSignal
  readonly stopping: () => boolean
  /** Uniform in 0..1. */
  readonly chance: () => number
  record(attempt: AttemptRecord): Promise<void>
  /** Milliseconds that never jump. */
  readonly nowMs: () => number
  /** More that is due, and where to. */
  refill(
    lane: ClaimedLane,
    inHand: readonly string[],
  ): Promise<{ target: Target; due: DueDelivery[] }>
  /** Switches the subscription off and cancels what waits. */
  deactivate(lane: ClaimedLane): Promise<void>
  /** Cancels what waits for a subscription that is off. */
  cancel(lane: ClaimedLane): Promise<void>
}

export class Lane {
  readonly #keeper: LaneKeeper
  readonly #lane: ClaimedLane
  readonly #open: () => Promise<Target>
  readonly #news = new Bell()
  readonly #inHand = new Map<string, Promise<void>>()
  #due: DueDelivery[]
  #target: Target
  #readMs: number
  #failures: number
  #failingSince: Date | null
  #wakes = 0
  /** How long each answer of this turn took. */
  readonly #durationsMs: number[] = []
  readonly #beganMs: number
  #started = 0
  #ended = false
  #fault: unknown

  constructor(
    keeper: LaneKeeper,
    lane: ClaimedLane,
    open: () => Promise<Target>,
    due: readonly DueDelivery[],
  ) {
    this.#keeper = keeper
    this.#lane = lane
    this.#open = open
    this.#readMs = keeper.nowMs()
    this.#due = [...due]
    this.#beganMs = keeper.nowMs()
    this.#failures = lane.failures
    this.#failingSince = lane.failingSince
  }

  /** Something new may be due. */
  wake(): void {
    this.#wakes += 1
    this.#news.ring()
  }

  /** Runs to its end. Never throws. @returns what the lane is given back with. */
  async run(): Promise<LaneRelease> {
    try {
      await this.#send()
    } catch (error) {
      this.#fault ??= error
    }
    await Promise.all(this.#inHand.values())
    const { tenantId, webhookId } = this.#lane
    if (this.#fault !== undefined) {
      this.#keeper.log.warn({ err: this.#fault, webhookId }, 'a webhook lane stopped early')
    }
    return {
      tenantId,
      webhookId,
      failures: this.#failures,
      failingSince: this.#failingSince,
      heldSecs: this.#restSecs(),
    }
  }

  #restSecs(): number {
    if (this.#fault !== undefined) return MISHAP_REST_SECS
    const slow = slowRestSecs(this.#durationsMs, this.#keeper.nowMs() - this.#beganMs)
    return Math.max(slow, restSecs(this.#failures))
  }

  #isOver(): boolean {
    return this.#started >= TURN_ATTEMPTS || this.#keeper.nowMs() - this.#beganMs >= TURN_MS
  }

  async #send(): Promise<void> {
    this.#target = await this.#open()
    while (!this.#ended && !this.#isOver() && !this.#keeper.stopping()) {
      if (this.#target === undefined) return this.#keeper.cancel(this.#lane)
      if (this.#target === PAUSED) return
      // After a rest one attempt goes first: it tells whether the others may follow.
      const room = this.#failures >= CIRCUIT_FAILURES ? 1 : ATTEMPTS_AT_ONCE
      if (this.#inHand.size >= room) {
        await Promise.race(this.#inHand.values())
        continue
      }
      // What is left of it stays due in the database.
      if (this.#keeper.nowMs() - this.#readMs > TARGET_MS_MAX) this.#due = []
      const next = this.#due.shift()
      if (next !== undefined) this.#start(next, this.#target)
      else if (!(await this.#more())) return
    }
  }

  /** Fetches what else is due; false when that is nothing and nothing runs. */
  async #more(): Promise<boolean> {
    const wakes = this.#wakes
    const { target, due } = await this.#keeper.refill(this.#lane, [...this.#inHand.keys()])
    this.#target = target
    this.#readMs = this.#keeper.nowMs()
    this.#due = due
    if (due.length > 0 || target === undefined) return true
    if (this.#wakes !== wakes) return true
    if (this.#inHand.size === 0) return false
    await Promise.race([...this.#inHand.values(), this.#news.rest(REFILL_MS)])
    return true
  }

  #start(delivery: DueDelivery, target: OpenTarget): void {
    this.#started += 1
    const done = this.#attempt(delivery, target)
      .catch((error: unknown) => {
        // Not written down: it will be sent again, under the same id.
        this.#fault ??= error
        this.#ended = true
      })
      .finally(() => this.#inHand.delete(delivery.id))
    this.#inHand.set(delivery.id, done)
  }

  async #attempt(delivery: DueDelivery, target: OpenTarget): Promise<void> {
    const { sender, schedule, outcomes, giveUp } = this.#keeper
    const { id: deliveryId, tenantId, eventType, body } = delivery
    const result = await sender.send({ tenantId, deliveryId, eventType, body, ...target }, giveUp)
    if (result.error === 'cancelled') return
    this.#durationsMs.push(result.durationMs)
    const rung = delivery.attemptCount - delivery.attemptsBefore + 1
    const verdict = judgeAttempt(result, rung, schedule, this.#keeper.chance())
    const { attemptedAt, durationMs, responseStatus, error } = result
    const attempt = { attemptedAt, durationMs, responseStatus, error }
    await this.#keeper.record({ tenantId, deliveryId, ...attempt, ...verdict })
    outcomes.count(verdict.status)

    this.#failures = isAlive(result) ? 0 : this.#failures + 1
    if (this.#failures >= CIRCUIT_FAILURES) this.#ended = true
    if (verdict.status === 'succeeded') this.#failingSince = null
    else this.#failingSince ??= attemptedAt
    const failingMs = attemptedAt.getTime() - (this.#failingSince ?? attemptedAt).getTime()
    if (responseStatus === GONE || failingMs >= FAILING_MS_MAX) {
      this.#ended = true
      await this.#keeper.deactivate(this.#lane)
    }
  }
}
