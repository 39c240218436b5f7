/**
 * The lookup key of an email address. PostgreSQL's `lower` maps two non-ASCII letters to ASCII: `İ` (U+0130) and the
 * Kelvin sign (U+212A). An address with one of them is another mailbox, even at another domain (UTS 46 distinguishes
 * `i̇` from `i`), so it must not match the account that `lower` finds.
 */
const FOLDED_INTO_ASCII = /[\u0130\u212a]/g

/** The address for `email_key = lower(...)`, or an impossible address that matches no account. */
export function lookedUp(email: string): string {
  return email.replace(FOLDED_INTO_ASCII, '\ufffd')
}
