/**
 * By what an e-mail address is looked up. PostgreSQL's `lower` makes ASCII of two letters that are none: `İ`
 * (U+0130) and the Kelvin sign (U+212A). What is addressed with one of them is another mailbox, at another
 * domain even (UTS 46 keeps `i̇` apart from `i`): whoever reads that one must not pass for the one that
 * `lower` finds.
 */
const FOLDED_INTO_ASCII = /[\u0130\u212a]/g

/** The address for `email_key = lower(...)`; one that nobody can have is nobody's. */
export function lookedUp(email: string): string {
  return email.replace(FOLDED_INTO_ASCII, '\ufffd')
}
