/** Signing keys: at most one next and one current per tenant and algorithm, and any number of retired ones. */
import { lockUntilEnd } from '../platform/portable/locks.js'
import { allRows, isChanged, type Transaction } from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** The associated data with which a private key is sealed. It contains the kid of its row. */
export function privateKeyContext(kid: string): string {
  return `signing_key:${kid}:private`
}

export type SigningKeyRow = {
  kid: string
  algorithm: 'ES256' | 'EdDSA' | 'RS256'
  state: 'next' | 'current' | 'retired'
  publicJwk:
    | { kty: 'EC' | 'OKP'; crv: 'P-256' | 'Ed25519'; x: string; y?: string }
    | { kty: 'RSA'; n: string; e: string }
  /** Null after retirement. */
  privateSealed: Uint8Array | null
  createdAt: Date
  currentSince: Date | null
  /** When the last token that it may have signed has expired. Null until it is retired. */
  verifiableUntil: Date | null
}

/** Serialises the rotations of all processes until the transaction ends. */
export async function lockSigningKeys(tx: Transaction, tenantId: string): Promise<void> {
  await lockUntilEnd(tx, { kind: 'signing_keys', tenantId })
}

export const listSigningKeys = (tx: Transaction, tenantId: string) =>
  allRows<SigningKeyRow>(tx, {
    name: 'signing_key.list',
    text: `select ${columnsOf(`kid algorithm state public_jwk private_sealed created_at current_since
             verifiable_until`)}
           from signing_keys where tenant_id = $1
           order by array_position(array['current', 'next', 'retired'], state), algorithm,
             created_at desc, kid`,
    values: [tenantId],
  })

/** A key of a tenant that issues credentials. */
export type TenantSigningKeyRow = Omit<SigningKeyRow, 'publicJwk' | 'privateSealed'> & {
  tenantId: string
  tenantSlug: string
}

/** The keys of all tenants, without the service's keys. Crosses tenants. */
export const listTenantSigningKeys = (tx: Transaction, serviceTenantId: string) =>
  allRows<TenantSigningKeyRow>(tx, {
    name: 'signing_key.of_tenants',
    text: `select k.tenant_id as "tenantId", t.slug as "tenantSlug",
             ${columnsOf('kid algorithm state created_at current_since verifiable_until', 'k')}
           from signing_keys k join tenants t on t.id = k.tenant_id
           where k.tenant_id <> $1
           order by t.slug, array_position(array['current', 'next', 'retired'], k.state),
             k.created_at desc, k.kid`,
    values: [serviceTenantId],
  })

/** False if the algorithm already has a key in that state. */
export const insertSigningKey = (tx: Transaction, tenantId: string, key: SigningKeyRow) =>
  isChanged(tx, {
    name: 'signing_key.insert',
    text: `insert into signing_keys (tenant_id, kid, algorithm, state, public_jwk, private_sealed,
             created_at, current_since)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           on conflict do nothing`,
    values: [
      tenantId,
      key.kid,
      key.algorithm,
      key.state,
      JSON.stringify(key.publicJwk),
      key.privateSealed,
      key.createdAt,
      key.currentSince,
    ],
  })

/** current -> retired. Deletes the private key, so that it never signs again. */
export const retireSigningKey = (
  tx: Transaction,
  tenantId: string,
  kid: string,
  verifiableUntil: Date,
) =>
  isChanged(tx, {
    name: 'signing_key.retire',
    text: `update signing_keys
           set state = 'retired', private_sealed = null, verifiable_until = $3
           where tenant_id = $1 and kid = $2 and state = 'current'`,
    values: [tenantId, kid, verifiableUntil],
  })

/** next -> current. */
export const promoteSigningKey = (tx: Transaction, tenantId: string, kid: string, now: Date) =>
  isChanged(tx, {
    name: 'signing_key.promote',
    text: `update signing_keys set state = 'current', current_since = $3
           where tenant_id = $1 and kid = $2 and state = 'next'`,
    values: [tenantId, kid, now],
  })

/** Deletes a retired key whose tokens have all expired. */
export const deleteSigningKey = (tx: Transaction, tenantId: string, kid: string, now: Date) =>
  isChanged(tx, {
    name: 'signing_key.delete',
    text: `delete from signing_keys
           where tenant_id = $1 and kid = $2 and state = 'retired' and verifiable_until <= $3`,
    values: [tenantId, kid, now],
  })
