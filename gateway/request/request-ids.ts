/**
 * Ids of requests that bring none: UUID version 7 with a fixed random tail and a counter (RFC 9562
 * section 6.2, method 1). They must be unique and may be guessable, so a request costs a concatenation and no
 * random bytes.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'

const COUNTER_MAX = 4_096
const COUNTERS = Array.from({ length: COUNTER_MAX }, (_, count) =>
  count.toString(16).padStart(3, '0'),
)
const ACCEPTED = /^[A-Za-z0-9._-]{1,128}$/

export class RequestIds {
  private readonly random: Random
  /** Difference between Unix time and monotonic time. */
  private readonly offsetMs: number
  private tail: string
  private prefix = ''
  private prefixMs = -1
  private counter = 0

  constructor(clock: Clock, random: Random) {
    this.random = random
    this.offsetMs = clock.now().getTime() - clock.monotonicMs()
    this.tail = random.uuid().slice(18)
  }

  /** The client's id if it has 1 to 128 characters of `A-Z a-z 0-9 . _ -`, otherwise a new one. */
  idOf(requested: string | undefined, nowMs: number): string {
    if (requested !== undefined && ACCEPTED.test(requested)) return requested
    const ms = Math.floor(nowMs + this.offsetMs)
    if (ms !== this.prefixMs) {
      const time = ms.toString(16).padStart(12, '0')
      this.prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`
      this.prefixMs = ms
      this.counter = 0
    } else if (this.counter === COUNTER_MAX) {
      this.tail = this.random.uuid().slice(18)
      this.counter = 0
    }
    const id = this.prefix + COUNTERS[this.counter]! + this.tail
    this.counter += 1
    return id
  }
}
