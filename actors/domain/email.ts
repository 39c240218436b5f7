/**
 * E-mail addresses (RFC 5321 section 4.1.2, RFC 6531): atoms with dots between them, one at sign, a domain of two labels
 * or more. No quotes, no control characters, and none of the two letters whose lower case is ASCII
 * (storage/identity/email-keys.ts).
 */
const ATOM = String.raw`[^\s@"().,:;<>[\\\]\p{C}\u0130\u212a]+`
const LABEL = String.raw`(?!-)(?:(?![\u0130\u212a])[\p{L}\p{M}\p{N}\u00b7-]){1,63}(?<!-)`
const ADDRESS = new RegExp(`^(?=[^@]{1,64}@)${ATOM}(?:[.]${ATOM})*@${LABEL}(?:[.]${LABEL})+$`, 'u')
const LENGTH_MAX = 254
/** The placeholder addresses of guests. No mailbox exists there (RFC 6761 section 6.4). */
const GUEST_DOMAIN = 'guest.invalid'

/** True if an account or a buyer may have the address. */
export function isEmail(text: string): boolean {
  if (text.toLowerCase().endsWith(`@${GUEST_DOMAIN}`)) return false
  return text.length <= LENGTH_MAX && ADDRESS.test(text)
}

/** The placeholder address of a guest. */
export const guestAddress = (accountId: string): string => `${accountId}@${GUEST_DOMAIN}`
