/** Ids as the rest of the house sees them: strings that cannot be taken for one another. */

export type Branded<Name extends string> = string & { readonly brand?: Name }

export type TenantId = Branded<'tenant'>
export type OrganizationId = Branded<'organization'>
export type AgentId = Branded<'agent'>
export type AccountId = Branded<'account'>
export type ApplicationId = Branded<'application'>
export type SessionId = Branded<'session'>
export type DelegationId = Branded<'delegation'>
export type KeyFingerprint = Branded<'key'>

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const UUID_ANY_CASE = new RegExp(UUID.source, 'i')

/**
 * An id as we write it: what has the shape of a UUID in lower case (RFC 9562 section 4: case does not
 * count on input), anything else as it came. The edge does this to what clients send, so that nobody
 * behind it compares two spellings of one id.
 */
export function asId(text: string): string {
  return UUID_ANY_CASE.test(text) ? text.toLowerCase() : text
}

/** Whether a string is an id as we write them: a lower-case hyphenated UUID. */
export function isUuid(value: string): boolean {
  return UUID.test(value)
}
