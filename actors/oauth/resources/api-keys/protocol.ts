/** Messages for the API keys of a tenant. See docs/reference/oauth.md, API keys. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { ListCursor, Page } from '../../../domain/paging.js'
import { PERSON_SCOPES, type Scope, TENANT_SCOPES } from '../../../domain/scopes.js'

/**
 * The scopes that a key may have: scopes of tenant APIs that need neither a person nor an agent. The scopes of the
 * deployment are never among them.
 */
export const API_KEY_SCOPES: readonly Scope[] = TENANT_SCOPES.filter(
  (scope) =>
    !PERSON_SCOPES.has(scope) &&
    ![
      'org:read',
      'org:manage',
      'vault:read',
      'vault:sign',
      'wallet:sign',
      'delegations:manage',
    ].includes(scope),
)

export type ApiKeysProtocol = {
  listApiKeys: Ask<{ readonly caller: Caller } & Page, ApiKeysListed>
  readApiKey: Ask<OneApiKey, ApiKeyFound | ApiKeyUnknown>
  createApiKey: Ask<CreateApiKey, ApiKeyCreated | ApiKeyRefused | ApiKeysFull | IdempotencyRefused>
  /** Replaces the secret. The old one is accepted for a while. */
  rotateApiKey: Ask<
    RotateApiKey,
    | ApiKeyRotated
    | ApiKeyUnknown
    | NotATenantToken
    | ScopesBeyondCaller
    | LifetimeTooLong
    /** A key rotates itself and the keys that it made. */
    | { readonly tag: 'not_own_key' }
  >
  /** Deletes a key and every key that it made. Both are refused within a second in all processes. */
  deleteApiKey: Ask<OneApiKey, { readonly tag: 'removed' } | ApiKeyUnknown>
}

export type ApiKeyRecord = {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly allowedAddresses: readonly string[]
  readonly createdBy: { readonly type: 'human' | 'agent' | 'service'; readonly id: string }
  readonly parentId: string | null
  readonly status: 'active' | 'expired'
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly rotatedAt: Date | null
  readonly previousExpiresAt: Date | null
  /** To within five minutes. */
  readonly lastUsedAt: Date | null
}

export type OneApiKey = { readonly caller: Caller; readonly keyId: string }
export type CreateApiKey = {
  readonly caller: Caller
  readonly name: string
  readonly scopes: readonly string[]
  /** Absent: `api_keys.default_lifetime_secs`. */
  readonly expiresInSecs: number | undefined
  readonly allowedAddresses: readonly string[]
  readonly idempotency: IdempotencyClaim | null
}
export type RotateApiKey = OneApiKey & {
  /** How long the present secret stays valid. */
  readonly overlapSecs: number
  /** The new lifetime from now. Absent: the end of the key stays. */
  readonly expiresInSecs: number | undefined
}

export type ApiKeysListed = {
  readonly tag: 'listed'
  readonly keys: readonly ApiKeyRecord[]
  readonly next: ListCursor | null
}
export type ApiKeyFound = { readonly tag: 'found'; readonly key: ApiKeyRecord }
export type ApiKeyCreated = {
  readonly tag: 'created'
  readonly key: ApiKeyRecord
  /** Null in a replay: shown once. */
  readonly secret: string | null
  readonly replayed: boolean
}
export type ApiKeyRotated = {
  readonly tag: 'rotated'
  readonly key: ApiKeyRecord
  readonly secret: string
}
export type ApiKeyUnknown = { readonly tag: 'unknown' }
/** The token is of the control plane, or of a key that was deleted just now. */
export type NotATenantToken = { readonly tag: 'not_a_tenant_token' }
/** Scopes that the caller does not have. */
export type ScopesBeyondCaller = {
  readonly tag: 'scopes_beyond_caller'
  readonly scopes: readonly string[]
}
/** Longer than the deployment, or the key of the caller, permits. */
export type LifetimeTooLong = { readonly tag: 'lifetime_too_long'; readonly mostSecs: number }
export type ApiKeyRefused =
  | NotATenantToken
  | ScopesBeyondCaller
  | LifetimeTooLong
  /** Not a network in CIDR notation, or outside the networks of the caller's key. */
  | { readonly tag: 'address_refused'; readonly index: number; readonly detail: string }
export type ApiKeysFull = { readonly tag: 'full'; readonly most: number }

export const apiKeys = address<ApiKeysProtocol>('api-keys', {
  idempotent: ['listApiKeys', 'readApiKey'],
})
