/** Individually revoked access tokens, kept until the token would have expired (RFC 7009). */
import { changedRows, isChanged, type Transaction } from '../platform/sql.js'

export type RevokedToken = {
  readonly tenantId: string
  /** The `jti`. */
  readonly tokenId: string
  readonly revokedAt: Date
  /** Expiry of the token. The row is not needed after it. */
  readonly expiresAt: Date
}

/** Revokes a token once. True for the call that did. */
export const insertRevokedToken = (tx: Transaction, token: RevokedToken) =>
  isChanged(tx, {
    name: 'revoked_token.insert',
    text: `insert into revoked_tokens (tenant_id, id, revoked_at, expires_at)
           values ($1, $2, $3, $4) on conflict do nothing`,
    values: [token.tenantId, token.tokenId, token.revokedAt, token.expiresAt],
  })

/** Deletes up to `limit` rows whose tokens expired before `before`. */
export const removeEndedRevocations = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'revoked_token.remove_ended',
    text: `delete from revoked_tokens where (tenant_id, id) in (
             select tenant_id, id from revoked_tokens where expires_at < $1
             order by expires_at limit $2 for update skip locked)`,
    values: [before, limit],
  })
