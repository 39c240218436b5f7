/** Challenges of passkey ceremonies: issued to one browser, used once (WebAuthn section 13.4.3). */
import { isChanged, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

export type PasskeyCeremony = {
  readonly tenantId: string
  readonly challengeSha256: Uint8Array
  /** `conditional`: the browser may create a passkey without asking the user (WebAuthn Level 3 section 5.1.3). */
  readonly purpose: 'sign_in' | 'second_factor' | 'registration' | 'conditional'
  readonly browserSha256: Uint8Array
  /** Null: not signed in yet. */
  readonly sessionId: string | null
}

export async function insertPasskeyCeremony(
  tx: Transaction,
  ceremony: PasskeyCeremony,
  expiresAt: Date,
): Promise<void> {
  const { tenantId, challengeSha256, purpose, browserSha256, sessionId } = ceremony
  await tx.query({
    name: 'passkey_ceremony.insert',
    text: `insert into passkey_ceremonies
             (tenant_id, challenge_sha256, purpose, browser_sha256, session_id, expires_at)
           values ($1, $2, $3, $4, $5, $6)`,
    values: [
      tenantId,
      Buffer.from(challengeSha256),
      purpose,
      Buffer.from(browserSha256),
      sessionId,
      expiresAt,
    ],
  })
}

/** Uses up a challenge. True only for the first call with the browser and session it was issued to. */
export async function spendPasskeyCeremony(
  tx: Transaction,
  ceremony: PasskeyCeremony,
  now: Date,
): Promise<boolean> {
  const { tenantId, challengeSha256, purpose, browserSha256, sessionId } = ceremony
  return isChanged(tx, {
    name: 'passkey_ceremony.spend',
    text: `delete from passkey_ceremonies
           where tenant_id = $1 and challenge_sha256 = $2 and purpose = $3
             and browser_sha256 = $4 and session_id is not distinct from $5 and expires_at > $6`,
    values: [
      tenantId,
      Buffer.from(challengeSha256),
      purpose,
      Buffer.from(browserSha256),
      sessionId,
      now,
    ],
  })
}

/** Removes up to `limit` challenges that expired before `before`. */
export const removeExpiredPasskeyCeremonies = removing(
  'passkey_ceremony.remove_expired',
  'passkey_ceremonies',
  'expires_at',
  '(tenant_id, challenge_sha256)',
)
