/** Identity providers of a tenant. The client secret is already sealed. */
import { ending } from '../platform/ends/ending.js'
import { allRows, execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { columnsOf, listing } from '../platform/portable/tenant-rows.js'

export type IdentityProviderRow = {
  readonly tenantId: string
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecretSealed: Uint8Array | null
  readonly tokenEndpointAuthMethod: 'client_secret_basic' | 'client_secret_post' | 'none'
  readonly scopes: readonly string[]
  /** Null: use discovery. */
  readonly authorizationEndpoint: string | null
  readonly tokenEndpoint: string | null
  readonly userinfoEndpoint: string | null
  readonly jwksUri: string | null
  readonly trustedAcrValues: readonly string[]
  readonly provision: boolean
  readonly active: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Associated data of the sealed client secret. */
export const providerSecretContext = (id: string) => ({
  rewritten: `sso_provider:${id}:client_secret`,
})

const COLUMNS = `${stamped('client_secret_sealed')} as "clientSecretSealed",
  ${columnsOf(`tenant_id id name issuer client_id token_endpoint_auth_method scopes authorization_endpoint token_endpoint
  userinfo_endpoint jwks_uri trusted_acr_values provision active created_at updated_at`)}`

function valuesOf(row: IdentityProviderRow) {
  const secret = row.clientSecretSealed && partsOf(row.clientSecretSealed)
  return [
    row.tenantId,
    row.id,
    row.name,
    row.issuer,
    row.clientId,
    secret?.sealed ?? null,
    row.tokenEndpointAuthMethod,
    row.scopes,
    row.authorizationEndpoint,
    row.tokenEndpoint,
    row.userinfoEndpoint,
    row.jwksUri,
    row.trustedAcrValues,
    row.provision,
    row.active,
    row.updatedAt,
    secret?.stamp ?? null,
  ]
}

/** Inserts a provider unless the tenant has `most`; then false. Concurrent inserts wait for each other. */
export async function insertIdentityProvider(
  tx: Transaction,
  row: IdentityProviderRow,
  most: number,
): Promise<boolean> {
  await tx.query({
    name: 'sso_provider.turn',
    text: 'select from tenants where id = $1 for no key update',
    values: [row.tenantId],
  })
  return isChanged(tx, {
    name: 'sso_provider.insert',
    text: `insert into sso_providers (tenant_id, id, name, issuer, client_id, client_secret_sealed,
             token_endpoint_auth_method, scopes, authorization_endpoint, token_endpoint,
             userinfo_endpoint, jwks_uri, trusted_acr_values, provision, active, created_at,
             updated_at, client_secret_sealed_stamp)
           select $1::uuid, $2::uuid, $3, $4, $5, $6::bytea, $7, $8::text[], $9, $10, $11, $12,
             $13::text[], $14::boolean, $15::boolean, $16::timestamptz, $16::timestamptz,
             $17::bytea
           where (select count(*) from sso_providers where tenant_id = $1) < $18`,
    values: [...valuesOf(row), most],
  })
}

/** Updates all columns of a provider. Its row must be locked. */
export const replaceIdentityProviderRow = (tx: Transaction, row: IdentityProviderRow) =>
  execute(tx, {
    name: 'sso_provider.replace',
    text: `update sso_providers set name = $3, issuer = $4, client_id = $5,
             client_secret_sealed = $6, token_endpoint_auth_method = $7, scopes = $8,
             authorization_endpoint = $9, token_endpoint = $10, userinfo_endpoint = $11,
             jwks_uri = $12, trusted_acr_values = $13, provision = $14, active = $15,
             updated_at = $16, client_secret_sealed_stamp = $17
           where tenant_id = $1 and id = $2`,
    values: valuesOf(row),
  })

export const findIdentityProvider = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<IdentityProviderRow>(tx, {
    name: 'sso_provider.find',
    text: `select ${COLUMNS} from sso_providers where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** The same, locked until the transaction ends. */
export const lockIdentityProvider = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<IdentityProviderRow>(tx, {
    name: 'sso_provider.lock',
    text: `select ${COLUMNS} from sso_providers where tenant_id = $1 and id = $2 for update`,
    values: [tenantId, id],
  })

/** An active provider by its id alone, for its own requests. Its tenant is unknown, so the transaction crosses tenants. */
export const findActiveProvider = (tx: Transaction, id: string) =>
  firstRow<IdentityProviderRow>(tx, {
    name: 'sso_provider.active',
    text: `select ${COLUMNS} from sso_providers where id = $1 and active`,
    values: [id],
  })

/** A page of a tenant's providers, newest first. */
export const listIdentityProviders = listing<IdentityProviderRow>(
  'sso_provider.list',
  `select ${COLUMNS} from sso_providers where tenant_id = $1`,
)

/** The enabled providers, ordered by name. */
export const offeredIdentityProviders = (tx: Transaction, tenantId: string) =>
  allRows<{ readonly id: string; readonly name: string }>(tx, {
    name: 'sso_provider.offered',
    text: `select id::text, name from sso_providers where tenant_id = $1 and active
           order by lower(name), id`,
    values: [tenantId],
  })

/**
 * Deletes a provider with the identities linked through it, and ends the sessions that it opened. Identities are visible
 * only to a transaction that crosses tenants.
 */
export async function deleteIdentityProvider(
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
): Promise<void> {
  await ending(tx, 'browser_session.ended').query({
    name: 'sso_provider.delete',
    text: `with gone as (
             delete from sso_providers where tenant_id = $1 and id = $2 returning id),
           identities as (
             delete from upstream_identities
             where tenant_id = $1 and provider in (select id::text from gone))
           update browser_sessions set ended_at = $3, ended_reason = 'provider_removed'
           where tenant_id = $1 and provider in (select id::text from gone) and ended_at is null
           returning tenant_id as "tenantId", id`,
    values: [tenantId, id, now],
  })
}
