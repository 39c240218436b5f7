/** Times as they are written down: RFC 3339 in UTC with milliseconds, as `Date.toISOString` has them. */

const MS_DIGITS_AND_Z = 4

type Second = { readonly secs: number; readonly text: string }
/** What was written last, up to its point: under load a second is written thousands of times. */
let last: Second = { secs: Number.NaN, text: '' }
/** The one before: a beginning and an end often come in pairs. */
let before: Second = last

/** @throws {RangeError} where the date is none. */
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
