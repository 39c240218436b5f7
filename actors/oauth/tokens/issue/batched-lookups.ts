/**
 * Finds refresh tokens and codes by their hashes. The tenant is unknown until the row is found, so the
 * look-ups cross tenants. Concurrent look-ups share one query.
 */
import { together } from '../../../../runtime/kernel/batched-asks.js'
import { type CodeRow, findCodes } from '../../../../storage/oauth/authorization-codes.js'
import {
  findRefreshTokens,
  type RefreshTokenRow,
} from '../../../../storage/oauth/refresh-tokens.js'
import type { Database } from '../../../../storage/platform/sql.js'

export interface BatchedLookups {
  refreshToken(sha256: Uint8Array): Promise<RefreshTokenRow | undefined>
  code(sha256: Uint8Array): Promise<CodeRow | undefined>
}

export function batchedLookups(database: Database): BatchedLookups {
  return {
    refreshToken: together((hashes) => findRefreshTokens(database, hashes)),
    code: together((hashes) => findCodes(database, hashes)),
  }
}
