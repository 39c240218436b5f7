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

/**
 * Characters of a name that a tenant chooses for itself, its applications and agents: as `SHOWN_NAME`, and without the
 * invisible marks of direction.
 */
const CHOSEN_NAME = /^[^\p{Cc}\p{Cs}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]{1,120}$/u
/** `://`, `www.`, `@`, and a host that is followed by a slash. Dots in a name are fine. */
const ADDRESS =
  /:\/\/|@|www[.\u3002]|(?:[\p{L}\p{N}-][.\u3002](?:xn--[a-z0-9-]+|\p{L}{2,})|(?:\d{1,3}\.){3}\d{1,3})[.\u3002]?(?::\d+)?[/\\]/iu

/** The form in which a name is stored, or null if it may not be one. */
export function chosenName(text: string): string | null {
  const name = text.normalize('NFC').trim()
  const seen = name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '').trim()
  // The compatible form of full-width characters looks the same.
  const isAddress = ADDRESS.test(seen) || ADDRESS.test(seen.normalize('NFKC'))
  return CHOSEN_NAME.test(name) && seen !== '' && !isAddress ? name : null
}

/**
 * The form in which a changed name is stored, or null if it may not be one. A name that stays passes, because it may be
 * older than the rule.
 */
export function changedName(text: string, before: string | undefined): string | null {
  return text === before ? text : chosenName(text)
}

export const NAME_RULE =
  'must have 1 to 120 characters, without control and bidirectional formatting characters, and no address ' +
  '(`://`, `www.`, `@`, or a host followed by a slash)'

/** The outcome for a name that may not be one. */
export type NameRefused = {
  readonly tag: 'invalid'
  /** JSON pointer into the request body. */
  readonly pointer: string
  readonly detail: string
}
export const refusedName = (pointer: string): NameRefused => ({
  tag: 'invalid',
  pointer,
  detail: `The name ${NAME_RULE}.`,
})

/** Removes link-like words from a name that was stored before such names were refused. */
export function withoutLinks(name: string): string {
  const words = name.split(/\s+/u)
  return words.map((word) => (looksLikeLink(word) ? '…' : word)).join(' ')
}
