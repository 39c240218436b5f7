/** Branded string types of ids. */

type Branded<Name extends string> = string & { readonly brand?: Name }

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
 * Lower-cases UUIDs (RFC 9562 section 4: input is case-insensitive) and returns other text unchanged. The gateway applies
 * it to client input, so that ids can be compared as strings.
 */
export function asId(text: string): string {
  return UUID_ANY_CASE.test(text) ? text.toLowerCase() : text
}

/** True for a lower-case hyphenated UUID. */
export function isUuid(value: string): boolean {
  return UUID.test(value)
}

/** The time of an id that this service made (UUID version 7, RFC 9562 section 5.7), in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
