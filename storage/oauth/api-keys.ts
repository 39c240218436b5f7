/** API keys of tenants (docs/reference/oauth.md, API keys). Only the SHA-256 of a secret is stored. */
import { lockUntilEnd } from '../platform/portable/locks.js'
import { execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'
import { removing } from '../platform/portable/expiry.js'

/** Who made a key. A user is identified by their `sub` in the tenant. */
type ApiKeyMaker = { readonly type: 'human' | 'agent' | 'service'; readonly id: string }

export type ApiKeyRow = {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  readonly scopes: readonly string[]
  /** Networks in CIDR notation. Empty: any address. */
  readonly allowedAddresses: readonly string[]
  readonly maker: ApiKeyMaker
  /** The key that made this key. */
  readonly parentId: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly rotatedAt: Date | null
  /** Until when the secret before the last rotation is accepted. */
  readonly previousExpiresAt: Date | null
  readonly lastUsedAt: Date | null
}

const COLUMNS = `k.id, k.tenant_id as "tenantId", k.name, k.scopes, k.allowed_addresses as "allowedAddresses",
  jsonb_build_object('type', k.maker_type, 'id', k.maker_id) as maker, k.parent_id as "parentId",
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.rotated_at as "rotatedAt",
  k.previous_expires_at as "previousExpiresAt", k.last_used_at as "lastUsedAt"`

/** Inserts a key. False, and nothing written, when the tenant has `most` keys that are not expired. */
export async function insertApiKey(
  tx: Transaction,
  key: Omit<ApiKeyRow, 'rotatedAt' | 'previousExpiresAt' | 'lastUsedAt'> & {
    readonly tokenSha256: Uint8Array
  },
  most: number,
): Promise<boolean> {
  // The lock makes concurrent creations of one tenant count one after the other.
  await lockUntilEnd(tx, { kind: 'api_keys', tenantId: key.tenantId })
  return isChanged(tx, {
    name: 'api_key.insert',
    text: `insert into api_keys (tenant_id, id, name, scopes, allowed_addresses, maker_type, maker_id, parent_id,
             token_sha256, created_at, expires_at)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
           where (select count(*) from api_keys where tenant_id = $1 and expires_at > $10) < $12`,
    values: [
      key.tenantId,
      key.id,
      key.name,
      key.scopes,
      key.allowedAddresses,
      key.maker.type,
      key.maker.id,
      key.parentId,
      Buffer.from(key.tokenSha256),
      key.createdAt,
      key.expiresAt,
      most,
    ],
  })
}

/** A page of a tenant's keys, newest first, also expired ones. */
export const listApiKeyRows = listing<ApiKeyRow>(
  'api_key.list',
  `select ${COLUMNS} from api_keys k where k.tenant_id = $1`,
  'k',
)

export const findApiKey = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<ApiKeyRow>(tx, {
    name: 'api_key.find',
    text: `select ${COLUMNS} from api_keys k where k.tenant_id = $1 and k.id = $2`,
    values: [tenantId, id],
  })

/**
 * Finds the key of a secret, of an active tenant. The tenant is not known before, so the transaction crosses tenants.
 * `previous`: the secret is the one before the last rotation.
 */
export const findApiKeyOfSecret = (tx: Transaction, tokenSha256: Uint8Array) =>
  firstRow<ApiKeyRow & { previous: boolean }>(tx, {
    name: 'api_key.of_secret',
    text: `select ${COLUMNS}, k.token_sha256 <> $1 as previous
           from api_keys k join tenants t on t.id = k.tenant_id and t.status = 'active'
           where k.token_sha256 = $1 or k.previous_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })

/** Replaces the secret of a key that is not expired. The secret before the present one ends. */
export const rotateApiKeySecret = (
  tx: Transaction,
  tenantId: string,
  id: string,
  to: {
    readonly tokenSha256: Uint8Array
    readonly previousExpiresAt: Date
    readonly expiresAt: Date
    readonly now: Date
  },
) =>
  firstRow<ApiKeyRow>(tx, {
    name: 'api_key.rotate',
    text: `update api_keys k set previous_sha256 = token_sha256, previous_expires_at = $4, token_sha256 = $3,
             rotated_at = $5, expires_at = greatest(expires_at, $6)
           where tenant_id = $1 and id = $2 and expires_at > $5
           returning ${COLUMNS}`,
    values: [tenantId, id, Buffer.from(to.tokenSha256), to.previousExpiresAt, to.now, to.expiresAt],
  })

/** Deletes a key and every key that it made. @returns the deleted key, or undefined. */
export const deleteApiKeyRow = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<ApiKeyRow>(tx, {
    name: 'api_key.delete',
    text: `delete from api_keys k where k.tenant_id = $1 and k.id = $2 returning ${COLUMNS}`,
    values: [tenantId, id],
  })

/** Records a use. A newer time that another process recorded stays. */
export const markApiKeyUsed = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  execute(tx, {
    name: 'api_key.used',
    text: `update api_keys set last_used_at = greatest(coalesce(last_used_at, $3), $3)
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, now],
  })

/** Deletes up to `limit` keys that expired before `before`. */
export const removeExpiredApiKeys = removing(
  'api_key.remove_expired',
  'api_keys',
  'expires_at',
  'id',
)
