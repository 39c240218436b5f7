/** The lookup keys of accounts: `lower` of the stored form of their address (actors/domain/email.ts). */

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

/**
 * A name for `lower(...)`. PostgreSQL's `lower` maps two non-ASCII letters to ASCII: `İ` (U+0130) and the Kelvin sign
 * (U+212A). A name with one of them is another name, so it becomes one that matches none.
 */
export const lookedUp = (name: string): string => name.replace(/[\u0130\u212a]/g, '\ufffd')
