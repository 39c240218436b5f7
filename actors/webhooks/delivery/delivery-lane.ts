/**
 * One receiver while this worker holds its delivery lane: a few concurrent attempts in due order,
 * until nothing is due, the turn is over, the receiver needs a rest, or the worker stops.
 */
import type { Logger } from '../../../runtime/kernel/log.js'
import {
  type AttemptRecord,
  DUE_FEW,
  type DueDelivery,
} from '../../../storage/webhooks/deliveries.js'
import type { ClaimedLane, LaneRelease } from '../../../storage/webhooks/delivery-lanes.js'
import { WakeSignal } from '../../platform/batching/wake-signal.js'
import { DueQueue, type EventOrder } from './due-queue.js'
import {
  CIRCUIT_FAILURES,
  GONE,
  isAlive,
  judgeAttempt,
  restSecs,
  slowRestSecs,
} from './retry-schedule.js'
import type { DeliveryOutcomes } from './metrics.js'
import type { AttemptResult, DeliveryTarget, Outgoing } from './protocol.js'

/** Concurrent attempts at one receiver. */
const ATTEMPTS_AT_ONCE = 4
/** The lane is released after this time or number of attempts, so that other tenants get a turn. */
const TURN_MS = 10_000
const TURN_ATTEMPTS = 1_000
/**
 * The lane reads what is due before it sends a delivery that was created this long after the last read, because retries
 * and deliveries of other processes may have become due before.
 */
const REFILL_MS = 1_000
/** What was queued for longer is read again, well before the lease of a worker without a database ends. */
const QUEUED_MS_MAX = 3_000
/** A subscription is deactivated when its receiver has only failed for this long. */
const FAILING_MS_MAX = 5 * 24 * 60 * 60_000
/** Rest after an internal error. */
const ERROR_REST_SECS = 5

/**
 * A target older than this is read again before the next attempt, because its tenant may be
 * suspended.
 */
const TARGET_MS_MAX = 500

export const PAUSED = 'paused'

/**
 * Undefined: the subscription is inactive. Paused: its tenant is suspended and due deliveries wait.
 */
export type Target = DeliveryTarget | typeof PAUSED | undefined

type Refill = {
  readonly target: Target
  readonly due: readonly DueDelivery[]
  /** More deliveries may be due than were read. */
  readonly isFull: boolean
}

/** The services that the worker provides to a lane. */
export interface LaneHost {
  send(outgoing: Outgoing, signal: AbortSignal): Promise<AttemptResult>
  readonly schedule: readonly number[]
  readonly outcomes: DeliveryOutcomes
  readonly log: Logger
  readonly stopping: () => boolean
  /** Uniform in 0..1. */
  readonly chance: () => number
  record(attempt: AttemptRecord): Promise<void>
  /** Monotonic time in milliseconds. */
  readonly nowMs: () => number
  /**
   * Reads due deliveries, those in progress too, and the current target.
   * @param isMany for a lane with a backlog.
   */
  refill(lane: ClaimedLane, isMany: boolean): Promise<Refill>
  /** Reads the current target alone. */
  retarget(lane: ClaimedLane): Promise<Target>
  readonly order: EventOrder
  /** Deactivates the subscription and cancels its pending deliveries. */
  deactivate(lane: ClaimedLane): Promise<void>
  /** Cancels the pending deliveries of an inactive subscription. */
  cancel(lane: ClaimedLane): Promise<void>
}

export class DeliveryLane {
  readonly #host: LaneHost
  readonly #lane: ClaimedLane
  readonly #dueSignal = new WakeSignal()
  readonly #inProgress = new Map<string, Promise<void>>()
  readonly #due: DueQueue
  /** Aborts running attempts when the worker stops, or when another tenant needs the place of this lane. */
  readonly #givenUp = new AbortController()
  /** More may be due than the last read returned. */
  #hasBacklog: boolean
  #target: Target
  #targetReadMs: number
  #dueReadMs: number
  #failures: number
  #failingSince: Date | null
  #wakes = 0
  /** Response times of this turn, in milliseconds. */
  readonly #durationsMs: number[] = []
  readonly #beganMs: number
  #started = 0
  #ended = false
  #fault: unknown

  constructor(host: LaneHost, lane: ClaimedLane, target: Target, due: readonly DueDelivery[]) {
    this.#host = host
    this.#lane = lane
    this.#target = target
    this.#targetReadMs = host.nowMs()
    this.#dueReadMs = host.nowMs()
    this.#hasBacklog = due.length >= DUE_FEW
    this.#due = new DueQueue(host.order, due, this.#hasBacklog, this.#dueReadMs)
    this.#beganMs = host.nowMs()
    this.#failures = lane.failures
    this.#failingSince = lane.failingSince
  }

  /** Ends the lane immediately. Attempts that run are not counted, and are repeated in the next turn. */
  giveUp(): boolean {
    if (this.#givenUp.signal.aborted) return false
    this.#ended = true
    this.#givenUp.abort()
    this.wake()
    return true
  }

  /** Signals that new deliveries may be due. */
  wake(): void {
    this.#wakes += 1
    this.#dueSignal.wake()
  }

  /** Queues deliveries that this worker created and committed (due-queue.ts). Wake the lane afterwards. */
  add(created: readonly DueDelivery[], begunAt: number): void {
    this.#due.add(created, begunAt, this.#host.nowMs())
  }

  /** Runs one turn. Never throws. @returns the state for the release of the lane. */
  async run(): Promise<LaneRelease> {
    try {
      await this.#send()
    } catch (error) {
      this.#fault ??= error
    }
    await Promise.all(this.#inProgress.values())
    const { tenantId, webhookId } = this.#lane
    if (this.#fault !== undefined) {
      this.#host.log.warn({ err: this.#fault, webhookId }, 'webhooks: lane stopped early')
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
    if (this.#fault !== undefined) return ERROR_REST_SECS
    const slow = slowRestSecs(this.#durationsMs, this.#host.nowMs() - this.#beganMs)
    return Math.max(slow, restSecs(this.#failures))
  }

  #isOver(): boolean {
    return this.#started >= TURN_ATTEMPTS || this.#host.nowMs() - this.#beganMs >= TURN_MS
  }

  async #send(): Promise<void> {
    while (!this.#ended && !this.#isOver() && !this.#host.stopping()) {
      if (this.#target === undefined) return this.#host.cancel(this.#lane)
      if (this.#target === PAUSED) return
      // After a rest a single attempt probes the receiver before others follow.
      const room = this.#failures >= CIRCUIT_FAILURES ? 1 : ATTEMPTS_AT_ONCE
      if (this.#inProgress.size >= room) {
        await Promise.race(this.#inProgress.values())
        continue
      }
      const nowMs = this.#host.nowMs()
      if (this.#mustRead(nowMs)) {
        if (!(await this.#more())) return
      } else if (nowMs - this.#targetReadMs > TARGET_MS_MAX) {
        this.#target = await this.#host.retarget(this.#lane)
        this.#targetReadMs = nowMs
      } else this.#start(this.#due.shift()!, this.#target)
    }
  }

  #mustRead(nowMs: number): boolean {
    const { firstQueuedMs } = this.#due
    if (firstQueuedMs === undefined) return true
    return firstQueuedMs - this.#dueReadMs > REFILL_MS || nowMs - firstQueuedMs > QUEUED_MS_MAX
  }

  /** Reads what is due. @returns false when there is nothing and no attempt runs. */
  async #more(): Promise<boolean> {
    const wakes = this.#wakes
    const nowMs = this.#host.nowMs()
    const isMany = this.#hasBacklog || this.#due.size >= DUE_FEW
    const inProgress = new Set(this.#inProgress.keys())
    this.#due.beginRead()
    const { target, due, isFull } = await this.#host.refill(this.#lane, isMany)
    this.#due.endRead(due, isFull, inProgress, nowMs)
    this.#target = target
    this.#targetReadMs = nowMs
    this.#dueReadMs = nowMs
    this.#hasBacklog = isFull
    if (this.#due.size > 0 || target === undefined) return true
    if (this.#wakes !== wakes) return true
    if (this.#inProgress.size === 0) return false
    const idle = Promise.all(this.#inProgress.values())
    await Promise.race([idle, this.#dueSignal.wait(REFILL_MS)])
    return true
  }

  #start(delivery: DueDelivery, target: DeliveryTarget): void {
    this.#started += 1
    const done = this.#attempt(delivery, target)
      .catch((error: unknown) => {
        // The outcome was not stored, so the delivery is sent again under the same id.
        this.#fault ??= error
        this.#ended = true
      })
      .finally(() => this.#inProgress.delete(delivery.id))
    this.#inProgress.set(delivery.id, done)
  }

  async #attempt(delivery: DueDelivery, target: DeliveryTarget): Promise<void> {
    const { schedule, outcomes } = this.#host
    const { webhookId } = this.#lane
    const { id: deliveryId, tenantId, eventType, body } = delivery
    const { url, secret, previousSecret } = target
    const result = await this.#host.send(
      { tenantId, webhookId, deliveryId, eventType, body, url, secret, previousSecret },
      this.#givenUp.signal,
    )
    if (result.error === 'cancelled') return
    this.#durationsMs.push(result.durationMs)
    const attempt = delivery.attemptCount - delivery.attemptsBefore + 1
    // A success has no next attempt, whose time would vary.
    const chance = result.error === null ? 0 : this.#host.chance()
    const verdict = judgeAttempt(result, attempt, schedule, chance)
    const { attemptedAt, durationMs, responseStatus, error } = result
    const { status, waitSecs } = verdict
    await this.#host.record({
      tenantId,
      deliveryId,
      attemptedAt,
      durationMs,
      responseStatus,
      error,
      status,
      waitSecs,
    })
    outcomes.count(status)

    this.#failures = isAlive(result) ? 0 : this.#failures + 1
    if (this.#failures >= CIRCUIT_FAILURES) this.#ended = true
    if (status === 'succeeded') this.#failingSince = null
    else this.#failingSince ??= attemptedAt
    const failingMs = attemptedAt.getTime() - (this.#failingSince ?? attemptedAt).getTime()
    if (responseStatus === GONE || failingMs >= FAILING_MS_MAX) {
      this.#ended = true
      await this.#host.deactivate(this.#lane)
    }
  }
}
