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
