/** Limits how often something is done for one key, in the memory of this thread. */
import type { Clock } from '../clock.js'

const KEYS_MAX = 10_000

/** True at most once in so many milliseconds for each key. */
export function atMostEvery(
  ms: number,
  clock: Pick<Clock, 'monotonicMs'>,
): (key: string) => boolean {
  const allowedAtMs = new Map<string, number>()
  return (key) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - (allowedAtMs.get(key) ?? -Infinity) < ms) return false
    if (allowedAtMs.size >= KEYS_MAX) allowedAtMs.clear()
    allowedAtMs.set(key, nowMs)
    return true
  }
}
