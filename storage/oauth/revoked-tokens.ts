/** Individually revoked access tokens, kept until the token would have expired (RFC 7009). */
import { isChanged, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

type RevokedToken = {
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
export const removeEndedRevocations = removing('revoked_token.remove_ended', 'revoked_tokens')
