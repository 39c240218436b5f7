/**
 * Ids for requests that bring none: UUIDs of version 7 whose tail is drawn once and whose counter
 * counts (RFC 9562 section 6.2, method 1). They need to be different, not unguessable, and are made
 * for every request, so they cost a concatenation and not a draw.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'

const COUNTER_MAX = 4_096
const COUNTERS = Array.from({ length: COUNTER_MAX }, (_, at) => at.toString(16).padStart(3, '0'))
const GIVEN = /^[A-Za-z0-9._-]{1,128}$/

export class RequestIds {
  private readonly random: Random
  /** What to add to monotonic milliseconds for the time of day. */
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

  /** The id the client gave where it is one we keep (decisions.md 14), else a new one. */
  idOf(given: string | undefined, nowMs: number): string {
    if (given !== undefined && GIVEN.test(given)) return given
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
