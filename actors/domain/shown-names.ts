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

/**
 * Words that readers of mail turn into links, or people into addresses: `://`, `www.`, and a dot between
 * letters as before a top-level domain, in any of the forms that stand for a dot (UTS 46 section 2.3).
 */
const LINK = /:\/\/|www[.\u3002\uFF0E\uFF61]|[\p{L}\p{N}-][.\u3002\uFF0E\uFF61]\p{L}{2,}/iu

/** Whether a name would be read as a link where it stands in a letter. */
export function looksLikeLink(name: string): boolean {
  return LINK.test(name) || LINK.test(name.normalize('NFKC'))
}

/** A name that was set before links were refused, with every word left out that looks like one. */
export function withoutLinks(name: string): string {
  const words = name.split(/\s+/u)
  return words.map((word) => (looksLikeLink(word) ? '…' : word)).join(' ')
}
