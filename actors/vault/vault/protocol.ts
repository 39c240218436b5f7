/** Third-party credentials, their grants and leases (docs/reference/vault.md). */
import type { ApprovalMode } from '../../domain/vault/approvals.js'
import type { Denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Budget } from '../../domain/vault/budgets.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { Principal } from '../../domain/principal.js'
import type { ListCursor, Page } from '../../domain/paging.js'
import type {
  Capability,
  Credential,
  CredentialType,
  Grant,
  Lease,
} from '../../domain/entities/vault.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'

export type VaultProtocol = {
  /**
   * The credentials granted to the calling agent or its delegation. For a direct token with
   * `vault:manage`: the credentials of the tenant.
   */
  listVaultCredentials: Ask<ListCredentials, CredentialsListed>
  createVaultCredential: Ask<
    CreateCredential,
    CredentialCreated | VaultInvalid | VaultFull | IdempotencyRefused | OwnerRefused
  >
  getVaultCredential: Ask<OneCredential, CredentialFound | UnknownCredential>
  updateVaultCredential: Ask<
    UpdateCredential,
    CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused
  >
  /** The owner replaces the secret. */
  rotateVaultCredential: Ask<
    RotateCredential,
    CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused
  >
  /** Revokes a credential with its grants and leases. Final. */
  revokeVaultCredential: Ask<OneCredential, CredentialFound | UnknownCredential>
  /** The owner reads the secret. */
  readVaultCredentialSecret: Ask<OneCredential, SecretRead | UnknownCredential | OwnerRefused>
  listVaultGrants: Ask<ListOfCredential, GrantsListed | UnknownCredential>
  createVaultGrant: Ask<CreateGrant, GrantCreated | GrantingRefused | MoneyNotCounted>
  revokeVaultGrant: Ask<RevokeGrant, GrantRevoked | UnknownGrant>
  listVaultLeases: Ask<ListOfCredential, LeasesListed | UnknownCredential>
  createVaultLease: Ask<CreateLease, LeaseCreated | GrantingRefused>
  revokeVaultLease: Ask<RevokeLease, LeaseRevoked | UnknownLease>
}

export type ListCredentials = Page & {
  readonly principal: Principal
}
export type CredentialsListed = {
  readonly tag: 'listed'
  /** True: the credentials of the tenant, revoked ones included. False: the granted ones. */
  readonly managed: boolean
  readonly credentials: readonly Credential[]
  readonly next: ListCursor | null
}

/** A text, or a JSON document, which may be a text too. */
export type Secret = string | Readonly<Record<string, unknown>>

export type CreateCredential = {
  readonly caller: Caller
  readonly provider: string
  readonly credentialType: CredentialType
  readonly label: string
  /** May be null for ssh_ca and oauth2, which have a default. */
  readonly authScheme: string | null
  readonly allowedHosts: readonly string[]
  /** Null with `tokenOf`, and for an ssh_ca to generate a key. */
  readonly secret: Secret | null
  /** The oauth2 credential whose access token is the secret. */
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
/** A member of the request is invalid. */
export type VaultInvalid = MemberInvalid
/** The tenant has `vault.max_credentials_per_tenant` active credentials. */
export type VaultFull = { readonly tag: 'full'; readonly most: number }

export type OneCredential = { readonly caller: Caller; readonly credentialId: string }
export type CredentialFound = { readonly tag: 'found'; readonly credential: Credential }
/** The tenant has no such credential. */
export type UnknownCredential = { readonly tag: 'unknown_credential' }
export type CredentialRevoked = { readonly tag: 'revoked' }

/** Undefined members are unchanged. */
export type UpdateCredential = OneCredential & {
  readonly label?: string | undefined
  readonly allowedHosts?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** Must equal the stored one. */
  readonly authScheme?: string | undefined
}
export type RotateCredential = OneCredential & { readonly secret: Secret | null }

export type SecretRead = {
  readonly tag: 'secret'
  readonly credentialId: string
  readonly secret: string
}
/** The owner needs a direct token, not a delegated one. */
export type DirectTokenNeeded = { readonly tag: 'direct_token_needed' }
/** A person has to sign in again with two factors (RFC 9470). */
export type StepUpNeeded = { readonly tag: 'step_up'; readonly maxAgeSecs: number }
/** An owner's operation by another principal, with a delegated token, or without a recent sign-in. */
export type OwnerRefused = Denied | DirectTokenNeeded | StepUpNeeded

export type ListOfCredential = OneCredential & Page
export type GrantsListed = {
  readonly tag: 'listed'
  readonly grants: readonly Grant[]
  readonly next: ListCursor | null
}

export type CreateGrant = OneCredential & {
  readonly granteeType: 'agent' | 'delegation'
  readonly granteeId: string
  /** Null for the default: `list`, and `use` or `sign` by type. */
  readonly capabilities: readonly Capability[] | null
  readonly methods: readonly string[] | null
  readonly pathPrefixes: readonly string[] | null
  readonly allowRange: boolean
  readonly approval: ApprovalMode
  readonly maxRequests: number | null
  readonly maxBytes: number | null
  readonly budget: Budget | null
  /** The budget would limit money. */
  readonly countsMoney: boolean
  readonly expiresAt: Date | null
  readonly idempotency: IdempotencyClaim | null
}
export type GrantCreated = {
  readonly tag: 'created'
  readonly grant: Grant
  readonly replayed: boolean
}
/** Calls through the egress proxy spend no money. */
export type MoneyNotCounted = { readonly tag: 'money_not_counted' }
/** Why a credential is neither granted nor leased. */
export type GrantingRefused =
  | UnknownCredential
  | VaultInvalid
  | CredentialRevoked
  | IdempotencyRefused
  | Denied
  | DirectTokenNeeded
export type RevokeGrant = { readonly caller: Caller; readonly grantId: string }
export type GrantRevoked = { readonly tag: 'ended'; readonly grant: Grant }
export type UnknownGrant = { readonly tag: 'unknown_grant' }

export type LeasesListed = {
  readonly tag: 'listed'
  readonly leases: readonly Lease[]
  readonly next: ListCursor | null
}
export type CreateLease = OneCredential & {
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

export const vault = address<VaultProtocol>('vault', {
  idempotent: ['listVaultCredentials', 'getVaultCredential', 'listVaultGrants', 'listVaultLeases'],
})

/** The stored secret, or the access token of an oauth2 credential. */
export type ExportKind = 'secret' | 'access_token'

export type ExportRefusal =
  /** No such credential in the tenant, or the caller has no grant. */
  | { readonly tag: 'unknown_credential' }
  | Denied
  /** The credential type does not support the requested kind. */
  | { readonly tag: 'wrong_kind'; readonly detail: string }

/** Why a refresh failed. */
export type RefreshFailure =
  /** The token endpoint returned an OAuth error. */
  | { readonly tag: 'refused'; readonly error: string }
  /** No response, or a retryable one. */
  | { readonly tag: 'unavailable'; readonly fault: string; readonly retryAfterSecs: number | null }
  /** Not a valid OAuth response. */
  | { readonly tag: 'malformed'; readonly fault: string }
  /** The address rules forbid the token endpoint. */
  | { readonly tag: 'prohibited'; readonly fault: string }
  /** The token endpoint refused the refresh token, for good. Nothing was asked again. */
  | {
      readonly tag: 'lapsed'
      /** The code of the page where the person of a connection connects the account again. */
      readonly connectCode?: string
    }

export type ExportRequest = {
  readonly caller: Caller
  /** A UUID, lower case. */
  readonly credentialId: string
  readonly kind: ExportKind
}
export type Exported = {
  readonly tag: 'exported'
  readonly token: string
  /** Null when unknown. */
  readonly expiresInSecs: number | null
  readonly scope: string | null
}

export type ManagedToken = {
  readonly tag: 'token'
  readonly accessToken: string
  /** Null without `expires_in`. */
  readonly expiresAt: Date | null
  readonly scope: string | null
  readonly obtainedAt: Date
  /** Obtained for this call. */
  readonly isFresh: boolean
  /** The access token before it, which the upstream may still know. */
  readonly previous: string | null
}
export type ManagedOutcome =
  | ManagedToken
  /** The credential is revoked or does not exist. */
  | { readonly tag: 'gone' }
  | RefreshFailure

export type RejectedToken = Pick<ManagedToken, 'obtainedAt' | 'isFresh'>

export interface ManagedTokens {
  /** @param rejected is not given again, unless it is the stored one still. */
  get(tenantId: string, credentialId: string, rejected?: RejectedToken): Promise<ManagedOutcome>
  /**
   * Reports that an API rejected the cached token, so that the next call refreshes it. Tokens younger
   * than a minute stay, because then the API is the likely cause. Never throws.
   */
  reportRejected(tenantId: string, credentialId: string): void
  /**
   * An API rejected this token. A cached one is not used again. A fresh one is used, unless another one is stored: the next
   * minute no rejection ends a token, so that an API that rejects every token causes no storm of refreshes. Never throws.
   * @returns true if the token is kept, so that `get` gives no other one.
   */
  rejected(tenantId: string, credentialId: string, token: RejectedToken): Promise<boolean>
  /** Resolves when running attempts have stored their tokens. */
  settled(): Promise<void>
}

/** Export of credentials by token exchange; the token endpoint uses it. */
export interface VaultExports {
  export(
    request: ExportRequest,
    context: MessageContext,
  ): Promise<Exported | ExportRefusal | RefreshFailure>
  /** Waits until running refreshes have stored their tokens. */
  close(): Promise<void>
}
