/**
 * Display names of applications, agents, tenants and users, which other users read on consent pages: 1 to 120 characters
 * without control characters, unpaired surrogates, and characters that change the text direction (Unicode UAX 9:
 * embeddings, overrides, isolates), which could alter the text around the name. Right-to-left names do not need them.
 */
export const SHOWN_NAME = /^[^\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]{1,120}$/u

/** The characters of a name, in a text of any length. */
export const SHOWN_TEXT = /^[^\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]+$/u

const UNSHOWN = /[\p{Cc}\p{Cs}\u202A-\u202E\u2066-\u2069]/gu
const LENGTH_MAX = 120

/** Removes invalid characters from a name. The result may be empty. */
export function shownName(text: string): string {
  const held = text.replaceAll(UNSHOWN, '').trim()
  return [...held].slice(0, LENGTH_MAX).join('')
}

/**
 * Text that mail clients turn into links, or that users read as an address: `://`, `www.`, and a dot between letters, in
 * all characters that IDNA treats as a dot (UTS 46 section 2.3).
 */
const LINK = /:\/\/|www[.\u3002\uFF0E\uFF61]|[\p{L}\p{N}-][.\u3002\uFF0E\uFF61]\p{L}{2,}/iu

/** True if mail clients may display a name as a link. */
export function looksLikeLink(name: string): boolean {
  return LINK.test(name) || LINK.test(name.normalize('NFKC'))
}

/** Removes link-like words from a name that was stored before such names were refused. */
export function withoutLinks(name: string): string {
  const words = name.split(/\s+/u)
  return words.map((word) => (looksLikeLink(word) ? '…' : word)).join(' ')
}
