/** Sign-in flows: what is demanded of the user, and the return path. */
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

type SignInFlowRow = {
  tenantId: string
  level: 1 | 2 | 3
  maxAgeSecs: number | null
  since: Date | null
  sub: string | null
  returnTo: string
  /** Plain JSON, interpreted by the actor. */
  reason: unknown
  loginHint: string | null
  uiLocales: string | null
  formTargets: readonly string[]
  createdAt: Date
  expiresAt: Date
}

export const insertSignInFlow = (tx: Transaction, tokenSha256: Uint8Array, flow: SignInFlowRow) =>
  execute(tx, {
    name: 'sign_in_flow.insert',
    text: `insert into sign_in_flows (tenant_id, token_sha256, level, max_age_secs, since, sub,
             return_to, reason, login_hint, ui_locales, form_targets, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      flow.tenantId,
      Buffer.from(tokenSha256),
      flow.level,
      flow.maxAgeSecs,
      flow.since,
      flow.sub,
      flow.returnTo,
      JSON.stringify(flow.reason),
      flow.loginHint,
      flow.uiLocales,
      flow.formTargets,
      flow.createdAt,
      flow.expiresAt,
    ],
  })

export type SignInFlowFound = SignInFlowRow & {
  readonly tenantName: string
  /** The tenant's settings, as stored. */
  readonly tenantSettings: Readonly<Record<string, unknown>>
  /** The tenant of the operators of the deployment. */
  readonly controlPlane: boolean
}

/** An unexpired flow of an active tenant. Its tenant is unknown before. */
export const findSignInFlow = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<SignInFlowFound>(tx, {
    name: 'sign_in_flow.find',
    text: `select ${columnsOf(
      `tenant_id level max_age_secs since sub return_to reason login_hint ui_locales
       form_targets created_at expires_at`,
      'f',
    )},
             t.name as "tenantName", t.settings as "tenantSettings", t.control_plane as "controlPlane"
           from sign_in_flows f join tenants t on t.id = f.tenant_id and t.status = 'active'
           where f.token_sha256 = $1 and f.expires_at > $2`,
    values: [Buffer.from(tokenSha256), now],
  })

/** The tenant of a flow, even if expired, until its row is removed. */
export async function findFlowPlace(
  tx: Transaction,
  tokenSha256: Uint8Array,
): Promise<
  Pick<SignInFlowFound, 'tenantId' | 'tenantName' | 'tenantSettings' | 'uiLocales'> | undefined
> {
  return firstRow<
    Pick<SignInFlowFound, 'tenantId' | 'tenantName' | 'tenantSettings' | 'uiLocales'>
  >(tx, {
    name: 'sign_in_flow.find_place',
    text: `select t.id as "tenantId", t.name as "tenantName", t.settings as "tenantSettings",
             f.ui_locales as "uiLocales"
           from sign_in_flows f join tenants t on t.id = f.tenant_id and t.status = 'active'
           where f.token_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })
}

/** Name and settings of a tenant, for pages without a flow. */
export const findTenantBranding = (tx: Transaction, tenantId: string) =>
  firstRow<Pick<SignInFlowFound, 'tenantName' | 'tenantSettings'>>(tx, {
    name: 'sign_in_flow.tenant_face',
    text: `select name as "tenantName", settings as "tenantSettings" from tenants where id = $1`,
    values: [tenantId],
  })

/** Removes up to `limit` flows that expired before `before`. */
export const removeExpiredSignInFlows = removing(
  'sign_in_flow.remove_expired',
  'sign_in_flows',
  'expires_at',
  '(tenant_id, token_sha256)',
)
