/**
 * Names that applications, agents, tenants and people give themselves, as others read them before they
 * say yes: 1 to 120 characters without controls, halves of surrogate pairs, and characters that turn the
 * direction of the text around them (Unicode UAX 9, embeddings, overrides and isolates), which would
 * rewrite the sentence that a name stands in. Names in scripts from right to left need none of these.
 */
export const SHOWN_NAME = /^[^\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]{1,120}$/u

const UNSHOWN = /[\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]/gu
const LENGTH_MAX = 120

/** A name that somebody typed or that comes from elsewhere, without what none may hold; may be empty. */
export function shownName(text: string): string {
  const held = text.replaceAll(UNSHOWN, '').trim()
  return [...held].slice(0, LENGTH_MAX).join('')
}
