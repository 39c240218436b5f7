/**
 * Decides what follows a failure. A fresh instance replaces the failed one behind the same
 * reference. When more than `restartsMax` failures happen within `windowMs`, restarting would make
 * matters worse: the present instance stays, restarts are spaced by growing waits, and the actor is
 * not ready until a whole window has passed without a failure. The rest of the service keeps
 * answering.
 */
import type { SupervisionPolicy } from './actor.js'
import type { Clock } from './clock.js'
import type { Logger } from './log.js'

export const SUPERVISION_DEFAULT: SupervisionPolicy = {
  onFailure: 'restart',
  restartsMax: 5,
  windowMs: 30_000,
  backoffMs: 100,
  backoffMsMax: 10_000,
}

/** The next step: a fresh instance after `afterMs`, or none. */
type Verdict = { tag: 'restart'; afterMs: number } | { tag: 'resume' }

interface SupervisorOptions {
  readonly policy: SupervisionPolicy
  readonly clock: Clock
  readonly log: Logger
  readonly onReadiness?: ((ready: boolean) => void) | undefined
}

export class Supervisor {
  readonly #policy: SupervisionPolicy
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onReadiness: ((ready: boolean) => void) | undefined
  /** Monotonic milliseconds of the failures within the window, oldest first. */
  readonly #failures: number[] = []
  #ready = true

  constructor({ policy, clock, log, onReadiness }: SupervisorOptions) {
    this.#policy = policy
    this.#clock = clock
    this.#log = log
    this.#onReadiness = onReadiness
  }

  /** Ready: no window has had more failures than are normal. */
  get ready(): boolean {
    this.#forgetOld()
    return this.#ready
  }

  /** A message or the instance failed. */
  failed(): Verdict {
    const { onFailure, restartsMax, backoffMs, backoffMsMax } = this.#policy
    this.#forgetOld()
    this.#failures.push(this.#clock.monotonicMs())
    const excess = this.#failures.length - restartsMax
    if (excess > 0) this.#setReady(false)
    // Failures beyond the limit are only kept to know how long the limit has been exceeded.
    if (this.#failures.length > 2 * restartsMax + 8) this.#failures.shift()
    if (onFailure === 'resume') return { tag: 'resume' }
    if (this.#failures.length === 1) return { tag: 'restart', afterMs: 0 }
    const doublings = Math.min(this.#failures.length - 2, 20)
    return { tag: 'restart', afterMs: Math.min(backoffMs * 2 ** doublings, backoffMsMax) }
  }

  #forgetOld(): void {
    const horizonMs = this.#clock.monotonicMs() - this.#policy.windowMs
    while (this.#failures.length > 0 && this.#failures[0]! <= horizonMs) this.#failures.shift()
    if (this.#failures.length === 0) this.#setReady(true)
  }

  #setReady(ready: boolean): void {
    if (this.#ready === ready) return
    this.#ready = ready
    if (ready) this.#log.info('ready again after a window without failures')
    else this.#log.error({ failures: this.#failures.length }, 'not ready: failing too often')
    this.#onReadiness?.(ready)
  }
}
