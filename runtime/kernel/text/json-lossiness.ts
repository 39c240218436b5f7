/**
 * Finds JSON content that would not be returned as it was sent (RFC 7493 sections 2.1 and 2.2):
 * strings with NUL or an unpaired surrogate, which PostgreSQL and other programs cannot store;
 * numbers that lose digits; and members named `__proto__`, which messages cannot carry. Such
 * content is refused, so that the client does not search for it later.
 */

/** What is lossy, and where. A member's name counts for the object that contains it. */
type JsonLoss = { readonly path: readonly PropertyKey[]; readonly detail: string }

const TEXT = 'Must not hold NUL or half of a surrogate pair.'
const PROTOTYPE = 'Must not have a member named __proto__.'
const NUMBER = 'Is a number of which digits are lost: send it as a string.'

/** A text without one of these cannot lose anything. */
const DOUBTFUL = /\\u(?:00(?:00|[2-7])|[dD][89a-fA-F])|[0-9]{16}|[0-9][eE]|__proto__/
/** With the `u` flag, only an unpaired surrogate matches `\p{Cs}`. */
const UNKEEPABLE = /[\0\p{Cs}]/u
/** From here on numbers are printed with an exponent, and no client expects every digit back. */
const EXPONENT_FROM = 1e21

/** @param text the JSON that `value` was parsed from, or a longer text that contains it. */
export function findJsonLoss(text: string, value: unknown): JsonLoss | null {
  return DOUBTFUL.test(text) ? lossIn(value) : null
}

function lossIn(value: unknown): JsonLoss | null {
  if (typeof value === 'string') return UNKEEPABLE.test(value) ? { path: [], detail: TEXT } : null
  if (typeof value === 'number') return isExact(value) ? null : { path: [], detail: NUMBER }
  if (typeof value !== 'object' || value === null) return null
  for (const [name, inner] of Object.entries(value)) {
    if (UNKEEPABLE.test(name)) return { path: [], detail: TEXT }
    if (name === '__proto__') return { path: [], detail: PROTOTYPE }
    const lost = lossIn(inner)
    if (lost !== null) return { ...lost, path: [name, ...lost.path] }
  }
  return null
}

function isExact(value: number): boolean {
  if (!Number.isFinite(value)) return false
  return !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= EXPONENT_FROM
}
