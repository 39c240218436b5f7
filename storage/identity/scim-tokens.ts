/** The bearer tokens of directories (docs/reference/identity.md, SCIM). Only their SHA-256 is stored. */
import { execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'

export type ScimTokenRow = {
  readonly id: string
  readonly tenantId: string
  readonly organizationId: string | null
  readonly description: string | null
  /** The roles above member that the token may give and take. */
  readonly roles: readonly ('admin' | 'owner')[]
  readonly createdAt: Date
  /** Null: the token does not expire. */
  readonly expiresAt: Date | null
}

export const insertScimToken = (
  tx: Transaction,
  token: ScimTokenRow & { readonly tokenSha256: Uint8Array },
) =>
  execute(tx, {
    name: 'scim_token.insert',
    text: `insert into scim_tokens (tenant_id, id, token_sha256, organization_id, description, roles, created_at,
             expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [
      token.tenantId,
      token.id,
      Buffer.from(token.tokenSha256),
      token.organizationId,
      token.description,
      token.roles,
      token.createdAt,
      token.expiresAt,
    ],
  })

const COLUMNS = `s.id, s.tenant_id as "tenantId", s.organization_id as "organizationId", s.description, s.roles,
  s.created_at as "createdAt", s.expires_at as "expiresAt"`

/** A page of a tenant's tokens, newest first, also expired ones. */
export const listScimTokenRows = listing<ScimTokenRow>(
  'scim_token.list',
  `select ${COLUMNS} from scim_tokens s where s.tenant_id = $1`,
  's',
)

/**
 * Finds a token that is not expired, of an active tenant. The tenant is not known before, so the transaction crosses
 * tenants.
 */
export const findScimToken = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<ScimTokenRow>(tx, {
    name: 'scim_token.find',
    text: `select ${COLUMNS} from scim_tokens s join tenants t on t.id = s.tenant_id and t.status = 'active'
           where s.token_sha256 = $1 and (s.expires_at is null or s.expires_at > $2)`,
    values: [Buffer.from(tokenSha256), now],
  })

/** Deletes a token. False if the id is unknown. */
export const deleteScimTokenRow = (tx: Transaction, tenantId: string, id: string) =>
  isChanged(tx, {
    name: 'scim_token.delete',
    text: 'delete from scim_tokens where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })

/** True if the organization is the one that the tenant belongs to. */
export async function isOrganizationOfTenant(
  tx: Transaction,
  tenantId: string,
  organizationId: string,
): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'scim_token.organization',
    text: 'select from tenants where id = $1 and organization_id = $2',
    values: [tenantId, organizationId],
  })
  return rows.length === 1
}
