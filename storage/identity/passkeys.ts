/** Passkeys of accounts. Global, so every transaction here crosses tenants. */
import { allRows, firstRow, isChanged, onlyRow, type Transaction } from '../platform/sql.js'
import { judgeRemoval } from './ways/ways-in.js'

export type PasskeyRow = {
  readonly accountId: string
  readonly id: string
  readonly credentialId: Uint8Array
  /** COSE (RFC 9052 section 7). */
  readonly publicKey: Uint8Array
  readonly deviceBound: boolean
  readonly backedUp: boolean
  /** A response with user verification proved it. False: possession only, so it is no second factor. */
  readonly userVerified: boolean
  readonly transports: readonly string[]
  readonly name: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

type NewPasskey = Omit<PasskeyRow, 'lastUsedAt'> & {
  readonly counter: number
  readonly aaguid: string
}

/** Limit per account, because every ceremony lists them. */
const PASSKEYS_MAX = 20

const COLUMNS = `account_id as "accountId", id, credential_id as "credentialId",
  public_key as "publicKey", device_bound as "deviceBound", backed_up as "backedUp",
  user_verified as "userVerified", transports,
  name, created_at as "createdAt", last_used_at as "lastUsedAt"`

/** Oldest first. */
export const listPasskeys = (tx: Transaction, accountId: string) =>
  allRows<PasskeyRow>(tx, {
    name: 'passkey.list',
    text: `select ${COLUMNS} from passkeys where account_id = $1 order by created_at, id`,
    values: [accountId],
  })

export const findPasskey = (tx: Transaction, credentialId: Uint8Array) =>
  firstRow<PasskeyRow>(tx, {
    name: 'passkey.find',
    text: `select ${COLUMNS} from passkeys where credential_id = $1`,
    values: [Buffer.from(credentialId)],
  })

/**
 * Adds a passkey; false when the credential is already registered to any account, or the account is at its limit.
 * Concurrent inserts wait for each other at the account row.
 */
export async function insertPasskey(tx: Transaction, passkey: NewPasskey): Promise<boolean> {
  const p = passkey
  await tx.query({
    name: 'passkey.lock_account',
    text: 'select from accounts where id = $1 for update',
    values: [p.accountId],
  })
  return isChanged(tx, {
    name: 'passkey.insert',
    text: `insert into passkeys (account_id, id, credential_id, public_key, counter, device_bound,
             backed_up, transports, aaguid, name, created_at, user_verified)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
           where (select count(*) from passkeys where account_id = $1) < ${PASSKEYS_MAX}
           on conflict (credential_id) do nothing`,
    values: [
      p.accountId,
      p.id,
      Buffer.from(p.credentialId),
      Buffer.from(p.publicKey),
      p.counter,
      p.deviceBound,
      p.backedUp,
      p.transports,
      p.aaguid,
      p.name,
      p.createdAt,
      p.userVerified,
    ],
  })
}

/**
 * Stores the signature counter. False when it did not increase: one of two devices with the key is a clone (WebAuthn
 * section 6.1.1). Authenticators without a counter always send 0.
 */
export const spendPasskeyCounter = (
  tx: Transaction,
  { accountId, id }: Pick<PasskeyRow, 'accountId' | 'id'>,
  use: { readonly counter: number; readonly backedUp: boolean; readonly userVerified: boolean },
  now: Date,
) =>
  isChanged(tx, {
    name: 'passkey.spend_counter',
    text: `update passkeys set counter = $3, backed_up = $4, last_used_at = $5,
             user_verified = user_verified or $6
           where account_id = $1 and id = $2 and (counter < $3 or (counter = 0 and $3 = 0))`,
    values: [accountId, id, use.counter, use.backedUp, now, use.userVerified],
  })

export const renamePasskey = (tx: Transaction, accountId: string, id: string, name: string) =>
  isChanged(tx, {
    name: 'passkey.rename',
    text: 'update passkeys set name = $3 where account_id = $1 and id = $2',
    values: [accountId, id, name],
  })

/**
 * Removes a passkey unless it is the account's only sign-in method. If it was the last factor, the recovery codes are
 * removed too. Locks the account first, so concurrent removals of the last two methods leave one.
 */
export async function removePasskey(
  tx: Transaction,
  accountId: string,
  id: string,
): Promise<'removed' | 'last' | 'unknown'> {
  const verdict = await judgeRemoval(tx, accountId, { kind: 'passkey', id })
  if (verdict !== 'removable') return verdict
  await tx.query({
    name: 'passkey.remove',
    text: `with removed as (
             delete from passkeys where account_id = $1 and id = $2 returning account_id),
           codes as (
             delete from recovery_codes where account_id in (select account_id from removed)
               and not exists (select from totp_factors f
                 where f.account_id = $1 and f.confirmed_at is not null)
               and not exists (select from passkeys p where p.account_id = $1 and p.id <> $2
                 and p.user_verified))
           select from removed`,
    values: [accountId, id],
  })
  return 'removed'
}

/** The factors of an account in addition to a password. */
export type AccountFactors = {
  readonly totp: boolean
  readonly passkey: boolean
  /** A device-bound passkey. */
  readonly deviceBound: boolean
}

export const accountFactors = (tx: Transaction, accountId: string) =>
  onlyRow<AccountFactors>(tx, {
    name: 'passkey.account_factors',
    text: `select exists (select from totp_factors
               where account_id = $1 and confirmed_at is not null) as totp,
             count(*) > 0 as passkey, coalesce(bool_or(device_bound), false) as "deviceBound"
           from passkeys where account_id = $1 and user_verified`,
    values: [accountId],
  })

/** The factors of a tenant's user, by subject. Crosses tenants. */
export async function personFactors(
  tx: Transaction,
  tenantId: string,
  sub: string,
): Promise<AccountFactors> {
  const { rows } = await tx.query<{ accountId: string }>({
    name: 'tenant_user.account_of_sub',
    text: `select account_id as "accountId" from tenant_users where tenant_id = $1 and sub = $2`,
    values: [tenantId, sub],
  })
  const [person] = rows
  return person === undefined
    ? { totp: false, passkey: false, deviceBound: false }
    : accountFactors(tx, person.accountId)
}
