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

/** Whether a string is an id as we write them: a lower-case hyphenated UUID. */
export function isUuid(value: string): boolean {
  return UUID.test(value)
}
