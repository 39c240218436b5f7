/**
 * What would not come back as it was sent (RFC 7493 sections 2.1 and 2.2): text with NUL or half of a
 * surrogate pair, which neither PostgreSQL nor other programs can be trusted with, numbers of which
 * digits were lost on reading, and members named `__proto__`, which no message carries. To be told,
 * because whoever sent it will look for it.
 */

/** What is `lost`, and where. Names of members count for the object that has them. */
export type JsonLoss = { readonly path: readonly PropertyKey[]; readonly detail: string }

const TEXT = 'Must not hold NUL or half of a surrogate pair.'
const PROTOTYPE = 'Must not have a member named __proto__.'
const NUMBER = 'Is a number of which digits are lost: send it as a string.'

/** Without one of these in the text nothing can be lost: all else of it is UTF-8 as it stands. */
const DOUBTFUL = /\\u(?:00(?:00|[2-7])|[dD][89a-fA-F])|[0-9]{16}|[0-9][eE]|__proto__/
/** With `u`, a surrogate of a pair is none by itself. */
const UNKEEPABLE = /[\0\p{Cs}]/u
/** From here on numbers are written with an exponent, and nobody expects each digit. */
const EXPONENT_FROM = 1e21

/** @param text the JSON that `value` was read from, or more than that. */
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
