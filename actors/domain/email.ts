/**
 * E-mail addresses: one at sign, a domain with a dot, no control characters, and none of the two letters whose lower
 * case is ASCII (storage/identity/email-keys.ts).
 */
const ADDRESS =
  /^[^\s@"(),:;<>[\\\]\p{C}\u0130\u212a]{1,64}@[^\s@"(),:;<>[\\\]\p{C}\u0130\u212a]+\.[^\s@".(),:;<>[\\\]\p{C}\u0130\u212a]+$/u
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
