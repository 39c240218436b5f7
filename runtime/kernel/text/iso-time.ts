/** Timestamps: RFC 3339 in UTC with milliseconds, as from `Date.toISOString`. */

const MS_DIGITS_AND_Z = 4

type Second = { readonly secs: number; readonly text: string }
/**
 * The text of the last second, up to its point: under load a second is formatted thousands of
 * times.
 */
let last: Second = { secs: Number.NaN, text: '' }
/** The second before it: start and end times often come in pairs. */
let before: Second = last

/** @throws {RangeError} for an invalid date. */
export function isoTime(date: Date): string {
  const ms = date.getTime()
  const secs = Math.floor(ms / 1000)
  if (secs !== last.secs) turnTo(secs, date)
  const rest = ms - secs * 1000
  return `${last.text}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`
}

function turnTo(secs: number, date: Date): void {
  const other = before
  before = last
  last = other.secs === secs ? other : { secs, text: date.toISOString().slice(0, -MS_DIGITS_AND_Z) }
}
