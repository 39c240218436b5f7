/** Counts mail per tenant and per address, to limit both. Days are in UTC. */
import type { Email } from '../../actors/domain/email.js'
import { createHash } from 'node:crypto'
import { firstRow, firstValue, type Transaction } from '../platform/sql.js'

/** Facts that decide whether a tenant may write to an address. */
export type MailStanding = {
  readonly environment: 'sandbox' | 'production'
  /** The tenant's organization has verified the domain. */
  readonly domainVerified: boolean
  /** The address belongs to an owner of the organization. */
  readonly isOwner: boolean
}

/** Crosses tenants. */
export const findMailStanding = (
  tx: Transaction,
  tenantId: string,
  address: Email,
  domain: string,
) =>
  firstRow<MailStanding>(tx, {
    name: 'mail_share.standing',
    text: `select t.environment,
             exists (select from domain_owners d
               where d.domain = $3 and d.organization_id = t.organization_id) as "domainVerified",
             exists (select from accounts a join organization_members m on m.member_id = a.id
               where a.email_key = lower($2) and m.member_type = 'account' and m.role = 'owner'
                 and m.organization_id = t.organization_id) as "isOwner"
           from tenants t where t.id = $1`,
    values: [tenantId, address, domain],
  })

/** Null: counted. Otherwise seconds until the next attempt, at least 1. */
type RetryAfterSecs = number

type AddressBounds = { readonly perDayMax: number; readonly gapSecs: number }

/**
 * Counts one invitation to an address in one statement. Concurrent ones wait for the transaction
 * and see its result. Crosses tenants.
 */
export async function takeAddressShare(
  tx: Transaction,
  address: Email,
  { perDayMax, gapSecs }: AddressBounds,
): Promise<RetryAfterSecs | null> {
  const key = createHash('sha256').update(address.toLowerCase()).digest()
  const { rowCount } = await tx.query({
    name: 'mail_share.take_address',
    text: `insert into mail_address_shares as s (address_sha256, day, letters, last_at)
           values ($1, ${TODAY}, 1, clock_timestamp())
           on conflict (address_sha256) do update
             set letters = case when s.day = excluded.day then s.letters + 1 else 1 end,
               day = excluded.day, last_at = excluded.last_at
             where (s.day <> excluded.day or s.letters < $2)
               and s.last_at <= clock_timestamp() - make_interval(secs => $3)`,
    values: [key, perDayMax, gapSecs],
  })
  if (rowCount === 1) return null
  const { rows } = await tx.query<{ secs: number }>({
    name: 'mail_share.address_wait',
    text: `select greatest(1, ceil(extract(epoch from greatest(
             s.last_at + make_interval(secs => $3) - clock_timestamp(),
             case when s.day = ${TODAY} and s.letters >= $2 then ${UNTIL_TOMORROW} end))))::integer
               as secs
           from mail_address_shares s where s.address_sha256 = $1`,
    values: [key, perDayMax, gapSecs],
  })
  return rows[0]?.secs ?? 1
}

/** Counts one message of a tenant, in one statement. */
export const takeTenantShare = async (tx: Transaction, tenantId: string, perDayMax: number) =>
  (await firstValue<number | null>(tx, {
    name: 'mail_share.take_tenant',
    text: `with taken as (
             insert into mail_tenant_shares as s (tenant_id, day, letters)
             values ($1, ${TODAY}, 1)
             on conflict (tenant_id, day) do update set letters = s.letters + 1
               where s.letters < $2
             returning 1)
           select case when not exists (select from taken)
             then greatest(1, ceil(extract(epoch from ${UNTIL_TOMORROW})))::integer end as secs`,
    values: [tenantId, perDayMax],
  })) ?? null

const TODAY = `(clock_timestamp() at time zone 'UTC')::date`
const UNTIL_TOMORROW = `(((${TODAY} + 1)::timestamp at time zone 'UTC') - clock_timestamp())`

/** Deletes up to `limit` counters of each kind that are older than the day of `before`. */
export async function sweepMailShares(
  tx: Transaction,
  before: Date,
  limit: number,
): Promise<number> {
  const addresses = await tx.query({
    name: 'mail_share.sweep_addresses',
    text: `delete from mail_address_shares where address_sha256 in (
             select address_sha256 from mail_address_shares
             where day < ($1::timestamptz at time zone 'UTC')::date
             order by day limit $2 for update skip locked)`,
    values: [before, limit],
  })
  const tenants = await tx.query({
    name: 'mail_share.sweep_tenants',
    text: `delete from mail_tenant_shares where (tenant_id, day) in (
             select tenant_id, day from mail_tenant_shares
             where day < ($1::timestamptz at time zone 'UTC')::date
             order by day limit $2 for update skip locked)`,
    values: [before, limit],
  })
  return Math.max(addresses.rowCount, tenants.rowCount)
}
