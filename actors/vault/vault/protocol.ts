/** Credentials of third parties, and who may use them. interface.md, Vault; decisions.md 4, 17, 22. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { TenantId } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import type { ListCursor } from '../../domain/paging.js'

export type VaultProtocol = {
  /**
   * What the calling agent was granted, itself or through its delegation. For a direct token: what
   * the tenant has.
   */
  list: Ask<ListCredentials, CredentialsListed>
  create: Ask<
    CreateCredential,
    CredentialCreated | VaultInvalid | VaultFull | IdempotencyRefused | OwnerRefused
  >
  read: Ask<NamedCredential, CredentialFound | UnknownCredential>
  update: Ask<
    UpdateCredential,
    CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused
  >
  /** The owner puts another secret in place of the one before. */
  rotate: Ask<
    RotateCredential,
    CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused
  >
  /** Ends a credential for good, with its grants and leases. */
  revoke: Ask<ChangeCredential, CredentialFound | UnknownCredential>
  /** The owner reads the secret back. */
  secret: Ask<ChangeCredential, SecretRead | UnknownCredential | OwnerRefused>
  listGrants: Ask<ListOfCredential, GrantsListed | UnknownCredential>
  createGrant: Ask<
    CreateGrant,
    | GrantCreated
    | UnknownCredential
    | VaultInvalid
    | CredentialRevoked
    | IdempotencyRefused
    | VaultDenied
    | DirectTokenNeeded
  >
  revokeGrant: Ask<RevokeGrant, GrantRevoked | UnknownGrant>
  listLeases: Ask<ListOfCredential, LeasesListed | UnknownCredential>
  createLease: Ask<
    CreateLease,
    | LeaseCreated
    | UnknownCredential
    | VaultInvalid
    | CredentialRevoked
    | IdempotencyRefused
    | VaultDenied
    | DirectTokenNeeded
  >
  revokeLease: Ask<RevokeLease, LeaseRevoked | UnknownLease>
}

export const CREDENTIAL_TYPES = ['oauth2', 'api_key', 'ssh_key', 'ssh_ca', 'custom'] as const
export type CredentialType = (typeof CREDENTIAL_TYPES)[number]

/** The record of interface.md, Vault credential. Never the secret. */
export type Credential = {
  readonly id: string
  readonly tenantId: TenantId
  readonly tenantName: string
  readonly provider: string
  readonly credentialType: CredentialType
  readonly label: string
  readonly authScheme: string
  readonly allowedHosts: readonly string[]
  readonly nonExportable: boolean
  readonly status: 'active' | 'revoked'
  readonly metadata: Readonly<Record<string, unknown>>
  /** Of an ssh_ca: the line for TrustedUserCAKeys. */
  readonly caPublicKey: string | null
  /** The oauth2 credential whose access token is the secret. */
  readonly tokenOf: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastUsedAt: Date | null
}

export type ListCredentials = {
  readonly principal: Principal
  /** 1 to 200. */
  readonly limit: number
  readonly after: ListCursor | null
}
export type CredentialsListed = {
  readonly tag: 'listed'
  /** True: those of the tenant, revoked ones included; else those that were granted. */
  readonly managed: boolean
  readonly credentials: readonly Credential[]
  readonly next: ListCursor | null
}

export type CreateCredential = {
  readonly caller: Caller
  readonly provider: string
  readonly credentialType: CredentialType
  readonly label: string
  /** Null only where the type has one of its own: ssh_ca and oauth2. */
  readonly authScheme: string | null
  readonly allowedHosts: readonly string[]
  /** Null for an ssh_ca, which gets a new key, and with `tokenOf`. */
  readonly secret: string | null
  /** An oauth2 credential of the tenant: its access token is the secret. */
  readonly tokenOf: string | null
  readonly nonExportable: boolean
  readonly metadata: Readonly<Record<string, unknown>>
  readonly idempotency: IdempotencyClaim | null
}
export type CredentialCreated = {
  readonly tag: 'created'
  readonly credential: Credential
  readonly replayed: boolean
}
/** One member of the request is not acceptable. */
export type VaultInvalid = {
  readonly tag: 'invalid'
  /** JSON pointer into the request body. */
  readonly pointer: string
  readonly detail: string
}
/** The tenant has `vault.max_credentials_per_tenant` active credentials. */
export type VaultFull = { readonly tag: 'full'; readonly most: number }

export type NamedCredential = { readonly tenantId: TenantId; readonly credentialId: string }
export type ChangeCredential = { readonly caller: Caller; readonly credentialId: string }
export type CredentialFound = { readonly tag: 'found'; readonly credential: Credential }
/** There is none, or it is another tenant's. */
export type UnknownCredential = { readonly tag: 'unknown_credential' }
export type CredentialRevoked = { readonly tag: 'revoked' }

/** What is undefined stays as it is. */
export type UpdateCredential = ChangeCredential & {
  readonly label?: string | undefined
  readonly allowedHosts?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** May be said, not changed. */
  readonly authScheme?: string | undefined
}
export type RotateCredential = ChangeCredential & { readonly secret: string | null }

export type SecretRead = {
  readonly tag: 'secret'
  readonly credentialId: string
  readonly secret: string
}
export type VaultDenied = { readonly tag: 'denied'; readonly detail: string }
/** The owner has to ask with a direct token, not with a delegated one. */
export type DirectTokenNeeded = { readonly tag: 'direct_token_needed' }
/** A human has to sign in again, with two factors (RFC 9470). */
export type StepUpNeeded = { readonly tag: 'step_up'; readonly maxAgeSecs: number }
/** What only the owner may do was asked by others, with a delegated token, or without a fresh sign-in. */
export type OwnerRefused = VaultDenied | DirectTokenNeeded | StepUpNeeded

export const CAPABILITIES = ['list', 'use', 'sign'] as const
export type Capability = (typeof CAPABILITIES)[number]
export type GrantStatus = 'active' | 'revoked' | 'expired'

export type Grant = {
  readonly id: string
  readonly credentialId: string
  readonly granteeType: 'agent' | 'delegation'
  readonly granteeId: string
  readonly capabilities: readonly Capability[]
  readonly methods: readonly string[] | null
  readonly pathPrefixes: readonly string[] | null
  /** False: a Range of the caller is not sent on. */
  readonly allowRange: boolean
  readonly maxRequests: number | null
  readonly maxBytes: number | null
  readonly status: GrantStatus
  readonly expiresAt: Date | null
  readonly createdAt: Date
  readonly revokedAt: Date | null
}

export type ListOfCredential = NamedCredential & {
  readonly limit: number
  readonly after: ListCursor | null
}
export type GrantsListed = {
  readonly tag: 'listed'
  readonly grants: readonly Grant[]
  readonly next: ListCursor | null
}

export type CreateGrant = ChangeCredential & {
  readonly granteeType: 'agent' | 'delegation'
  readonly granteeId: string
  /** Null: to list, and to use or to sign, as the type has it. */
  readonly capabilities: readonly Capability[] | null
  readonly methods: readonly string[] | null
  readonly pathPrefixes: readonly string[] | null
  readonly allowRange: boolean
  readonly maxRequests: number | null
  readonly maxBytes: number | null
  readonly expiresAt: Date | null
  readonly idempotency: IdempotencyClaim | null
}
export type GrantCreated = {
  readonly tag: 'created'
  readonly grant: Grant
  readonly replayed: boolean
}
export type RevokeGrant = { readonly caller: Caller; readonly grantId: string }
export type GrantRevoked = { readonly tag: 'ended'; readonly grant: Grant }
export type UnknownGrant = { readonly tag: 'unknown_grant' }

/** A grant with a budget of bytes (decisions.md 5, lease). */
export type Lease = {
  readonly id: string
  readonly credentialId: string
  readonly recipientId: string
  readonly byteBudget: number
  readonly bytesUsed: number
  readonly status: GrantStatus
  readonly expiresAt: Date | null
  readonly createdAt: Date
  readonly revokedAt: Date | null
}
export type LeasesListed = {
  readonly tag: 'listed'
  readonly leases: readonly Lease[]
  readonly next: ListCursor | null
}
export type CreateLease = ChangeCredential & {
  readonly recipientId: string
  readonly byteBudget: number
  readonly expiresAt: Date | null
  readonly idempotency: IdempotencyClaim | null
}
export type LeaseCreated = {
  readonly tag: 'created'
  readonly lease: Lease
  readonly replayed: boolean
}
export type RevokeLease = { readonly caller: Caller; readonly leaseId: string }
export type LeaseRevoked = { readonly tag: 'ended'; readonly lease: Lease }
export type UnknownLease = { readonly tag: 'unknown_lease' }

export type IdempotencyRefused =
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export const vault = address<VaultProtocol>('vault', ['list', 'read', 'listGrants', 'listLeases'])

/** The stored secret itself, or the access token that an upstream gives for it. */
export type ExportKind = 'secret' | 'access_token'

export type ExportRefusal =
  /** There is none, it is another tenant's, or the caller has no grant. */
  | { readonly tag: 'unknown_credential' }
  | { readonly tag: 'denied'; readonly detail: string }
  /** The type of the credential does not give what was asked for. */
  | { readonly tag: 'wrong_kind'; readonly detail: string }

/** Why there is no token. */
export type RefreshFailure =
  /** The upstream knows the client, the refresh token or the request, and says no. */
  | { readonly tag: 'refused'; readonly error: string }
  /** No answer, or one that says "later". */
  | { readonly tag: 'unavailable'; readonly fault: string; readonly retryAfterSecs: number | null }
  /** An answer that is none of this protocol. */
  | { readonly tag: 'malformed'; readonly fault: string }
  /** The address is not one that may be asked. */
  | { readonly tag: 'prohibited'; readonly fault: string }

export type AskedExport = {
  readonly caller: Caller
  /** A UUID, lower case. */
  readonly credentialId: string
  readonly kind: ExportKind
}
export type Exported = {
  readonly tag: 'exported'
  readonly token: string
  /** Null: not known. */
  readonly expiresInSecs: number | null
  readonly scope: string | null
}

/** Credentials on their way out to an agent, by token exchange. Given to whatever issues tokens. */
export interface VaultExports {
  export(
    asked: AskedExport,
    context: MessageContext,
  ): Promise<Exported | ExportRefusal | RefreshFailure>
  /** Waits until what upstreams gave is stored. */
  close(): Promise<void>
}
