/** Federated sign-ins in progress (`state` parameters). Each state can be used once. */
import { tenantInForce } from '../platform/in-force.js'
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

export type UpstreamSignInRow = {
  readonly tenantId: string
  readonly provider: string
  /** The session that links an identity to its account; null: a sign-in. */
  readonly linkingSessionId: string | null
  readonly sealed: Uint8Array
  /** Re-authentication is required. */
  readonly fresh: boolean
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Associated data of the sealed part of a state. */
export const upstreamSignInContext = (stateSha256: Uint8Array): string =>
  `upstream_sign_in:${Buffer.from(stateSha256).toString('hex')}`

export const insertUpstreamSignIn = (
  tx: Transaction,
  row: UpstreamSignInRow & {
    readonly stateSha256: Uint8Array
    readonly browserSha256: Uint8Array
  },
) =>
  execute(tx, {
    name: 'upstream_sign_in.insert',
    text: `insert into upstream_sign_ins (tenant_id, state_sha256, browser_sha256, provider,
             linking_session_id, sealed, fresh, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    values: [
      row.tenantId,
      Buffer.from(row.stateSha256),
      Buffer.from(row.browserSha256),
      row.provider,
      row.linkingSessionId,
      Buffer.from(row.sealed),
      row.fresh,
      row.createdAt,
      row.expiresAt,
    ],
  })

/**
 * Uses up a state, only for the browser that was redirected and the provider it was redirected to. The tenant is
 * unknown before, so the transaction crosses tenants.
 */
export const takeUpstreamSignIn = (
  tx: Transaction,
  key: {
    readonly stateSha256: Uint8Array
    readonly browserSha256: Uint8Array
    readonly provider: string
  },
  now: Date,
) =>
  firstRow<UpstreamSignInRow>(tx, {
    name: 'upstream_sign_in.take',
    text: `delete from upstream_sign_ins
           where state_sha256 = $1 and browser_sha256 = $2 and provider = $3 and expires_at > $4
             and ${tenantInForce('upstream_sign_ins.tenant_id')}
           returning ${columnsOf('tenant_id provider linking_session_id sealed fresh created_at expires_at')}`,
    values: [Buffer.from(key.stateSha256), Buffer.from(key.browserSha256), key.provider, now],
  })

/** Reads a state without using it up: for a browser that returned to another host. */
export const findUpstreamSignIn = (
  tx: Transaction,
  key: { readonly stateSha256: Uint8Array; readonly provider: string },
  now: Date,
) =>
  firstRow<Pick<UpstreamSignInRow, 'tenantId' | 'sealed'>>(tx, {
    name: 'upstream_sign_in.find',
    text: `select tenant_id as "tenantId", sealed from upstream_sign_ins
           where state_sha256 = $1 and provider = $2 and expires_at > $3`,
    values: [Buffer.from(key.stateSha256), key.provider, now],
  })

/** Removes up to `limit` expired states. */
export const removeExpiredUpstreamSignIns = removing(
  'upstream_sign_in.remove_expired',
  'upstream_sign_ins',
  'expires_at',
  '(tenant_id, state_sha256)',
)
