/**
 * The lookup key of an email address. PostgreSQL's `lower` maps two non-ASCII letters to ASCII: `İ` (U+0130) and the
 * Kelvin sign (U+212A). An address with one of them is another mailbox, even at another domain (UTS 46 distinguishes
 * `i̇` from `i`), so it must not match the account that `lower` finds.
 */
const FOLDED_INTO_ASCII = /[\u0130\u212a]/g

/**
 * SQL: the account keys that an address can have in a tenant. An account of a reserved name can be a sandbox's own, when
 * another tenant was first with the address. Its key ends with the tenant, behind a slash that no domain contains.
 */
export function keysIn(email: string, tenantId: string): string {
  return `(lower(${email}), ${ownKey(email, tenantId)})`
}

/** SQL: the key of an account that is the tenant's own. */
export const ownKey = (email: string, tenantId: string): string =>
  `lower(${email}) || '/' || (${tenantId})::uuid`

/** SQL: the tenant's own account comes before the shared one of the address. */
export const OWN_FIRST = 'order by length(a.email_key) desc limit 1'

/** The address for `email_key = lower(...)`, or an impossible address that matches no account. */
export function lookedUp(email: string): string {
  return email.replace(FOLDED_INTO_ASCII, '\ufffd')
}
