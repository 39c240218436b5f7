/**
 * Refresh tokens of revoked families and of ended sessions (`[refresh_family_cache]`). Both states are final, so an entry
 * never becomes wrong, in any process. A client that repeats such a token costs no statement.
 */
import type { RefreshTokenRow } from '../../../../storage/oauth/refresh-tokens.js'
import type { RefreshFamilyCacheSettings } from '../settings.js'

/** The members of the row that decide the refusal. */
export type DeadFamily = Pick<
  RefreshTokenRow,
  'clientId' | 'revokedAt' | 'sessionEndedAt' | 'expiresAt'
>

export class DeadFamilies {
  private readonly entriesMax: number
  private readonly entries = new Map<string, DeadFamily>()

  constructor(settings: RefreshFamilyCacheSettings | undefined) {
    this.entriesMax = settings?.enabled === true ? settings.max_entries : 0
  }

  /** @param tokenHash SHA-256 of the refresh token. */
  find(tokenHash: Uint8Array): DeadFamily | undefined {
    return this.entriesMax === 0 ? undefined : this.entries.get(keyOf(tokenHash))
  }

  /** Remembers the row of a token if its family is dead. The oldest entry makes room. */
  note(tokenHash: Uint8Array, row: RefreshTokenRow): void {
    if (this.entriesMax === 0 || (row.revokedAt === null && row.sessionEndedAt === null)) return
    if (this.entries.size >= this.entriesMax) {
      this.entries.delete(this.entries.keys().next().value!)
    }
    const { clientId, revokedAt, sessionEndedAt, expiresAt } = row
    this.entries.set(keyOf(tokenHash), { clientId, revokedAt, sessionEndedAt, expiresAt })
  }
}

function keyOf(tokenHash: Uint8Array): string {
  return Buffer.from(tokenHash).toString('base64url')
}
