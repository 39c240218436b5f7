/**
 * TOTP factors and recovery codes of accounts. Each code is used up by one conditional statement. Global, so every
 * transaction here crosses tenants.
 */
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { firstRow, isChanged, onlyRow, onlyValue, type Transaction } from '../platform/sql.js'

export type TotpFactorRow = {
  readonly id: string
  readonly secretSealed: Uint8Array
  readonly createdAt: Date
  readonly confirmedAt: Date | null
  readonly lastUsedAt: Date | null
}

/** Associated data of a sealed secret: it can be unsealed only for its own row. */
export const totpSecretContext = (id: string) => ({ rewritten: `totp_factor:${id}:secret` })

const COLUMNS = `id, ${stamped('secret_sealed')} as "secretSealed", created_at as "createdAt",
  confirmed_at as "confirmedAt", last_used_at as "lastUsedAt"`

/** The confirmed factor of an account. */
export const findTotpFactor = (tx: Transaction, accountId: string) =>
  firstRow<TotpFactorRow>(tx, {
    name: 'totp_factor.find',
    text: `select ${COLUMNS} from totp_factors
           where account_id = $1 and confirmed_at is not null`,
    values: [accountId],
  })

/** The secret being enrolled, if created after `since`. */
export const findOfferedTotp = (tx: Transaction, accountId: string, since: Date) =>
  firstRow<TotpFactorRow>(tx, {
    name: 'totp_factor.find_offered',
    text: `select ${COLUMNS} from totp_factors
           where account_id = $1 and confirmed_at is null and created_at > $2`,
    values: [accountId, since],
  })

/** Offers a secret, replacing one offered before `since`. A younger one stays. Returns the one in effect. */
export async function offerTotp(
  tx: Transaction,
  accountId: string,
  factor: { readonly id: string; readonly secretSealed: Uint8Array; readonly createdAt: Date },
  since: Date,
): Promise<TotpFactorRow | undefined> {
  const { sealed, stamp } = partsOf(factor.secretSealed)
  await tx.query({
    name: 'totp_factor.offer',
    text: `insert into totp_factors as f (account_id, id, secret_sealed, secret_sealed_stamp,
             created_at)
           values ($1, $2, $3, $6, $4)
           on conflict (account_id) where confirmed_at is null do update
             set id = excluded.id, secret_sealed = excluded.secret_sealed,
                 secret_sealed_stamp = excluded.secret_sealed_stamp,
                 created_at = excluded.created_at
             where f.created_at <= $5`,
    values: [accountId, factor.id, sealed, factor.createdAt, since, stamp],
  })
  return findOfferedTotp(tx, accountId, since)
}

/**
 * Confirms the offered secret as the account's factor. The stored secret is the one derived for the session. True only
 * for the first call.
 */
export const confirmTotp = (
  tx: Transaction,
  accountId: string,
  { id, secretSealed }: Pick<TotpFactorRow, 'id' | 'secretSealed'>,
  step: number,
  now: Date,
) => {
  const { sealed, stamp } = partsOf(secretSealed)
  return isChanged(tx, {
    name: 'totp_factor.confirm',
    text: `update totp_factors
           set secret_sealed = $5, secret_sealed_stamp = $6, confirmed_at = $4, last_step = $3, last_used_at = $4
           where account_id = $1 and id = $2 and confirmed_at is null
             and not exists (select from totp_factors o
               where o.account_id = $1 and o.confirmed_at is not null)`,
    values: [accountId, id, step, now, sealed, stamp],
  })
}

/** Uses up a time step: steps at or before the last used one are refused (RFC 6238 section 5.2). */
export const spendTotpStep = (
  tx: Transaction,
  accountId: string,
  id: string,
  step: number,
  now: Date,
) =>
  isChanged(tx, {
    name: 'totp_factor.spend_step',
    text: `update totp_factors set last_step = $3, last_used_at = $4
           where account_id = $1 and id = $2 and confirmed_at is not null and last_step < $3`,
    values: [accountId, id, step, now],
  })

/** Removes the factor of an account, and its recovery codes if no passkey is left; false for an unknown factor. */
export const removeTotpFactor = (tx: Transaction, accountId: string, id: string) =>
  isChanged(tx, {
    name: 'totp_factor.remove',
    text: `with removed as (
             delete from totp_factors
             where account_id = $1 and id = $2 and confirmed_at is not null returning account_id),
           codes as (
             delete from recovery_codes where account_id in (select account_id from removed)
               and not exists (select from passkeys p
                 where p.account_id = $1 and p.user_verified))
           select from removed`,
    values: [accountId, id],
  })

/** What `removeFactors` removed. */
type RemovedFactors = {
  readonly passkeys: number
  readonly authenticators: number
  readonly phones: number
}

/**
 * Removes the passkeys, authenticator apps and recovery codes of an account in one statement. Passkeys and phones are
 * ways in too: the caller sees to it that one is left. @param phones removes the phone number too.
 */
export const removeFactors = (
  tx: Transaction,
  accountId: string,
  { phones }: { readonly phones: boolean },
) =>
  onlyRow<RemovedFactors>(tx, {
    name: 'second_factors.remove',
    text: `with p as (delete from passkeys where account_id = $1 returning 1),
             f as (delete from totp_factors where account_id = $1 returning confirmed_at),
             n as (delete from account_phones where account_id = $1 and $2 returning 1),
             c as (delete from recovery_codes where account_id = $1)
           select (select count(*)::int from p) as passkeys,
             (select count(*)::int from f where confirmed_at is not null) as authenticators,
             (select count(*)::int from n) as phones`,
    values: [accountId, phones],
  })

/** Replaces the recovery codes of an account. Concurrent calls wait for each other, so one set remains. */
export async function replaceRecoveryCodes(
  tx: Transaction,
  accountId: string,
  hashes: readonly Uint8Array[],
  now: Date,
): Promise<void> {
  await tx.query({
    name: 'recovery_code.hold_account',
    text: 'select from accounts where id = $1 for update',
    values: [accountId],
  })
  await tx.query({
    name: 'recovery_code.clear',
    text: 'delete from recovery_codes where account_id = $1',
    values: [accountId],
  })
  await tx.query({
    name: 'recovery_code.insert',
    text: `insert into recovery_codes (account_id, code_sha256, created_at)
           select $1, hash, $3 from unnest($2::bytea[]) as hash`,
    values: [accountId, hashes.map((hash) => Buffer.from(hash)), now],
  })
}

/** Uses up a recovery code. */
export const spendRecoveryCode = (
  tx: Transaction,
  accountId: string,
  codeSha256: Uint8Array,
  now: Date,
) =>
  isChanged(tx, {
    name: 'recovery_code.spend',
    text: `update recovery_codes set used_at = $3
           where account_id = $1 and code_sha256 = $2 and used_at is null`,
    values: [accountId, Buffer.from(codeSha256), now],
  })

export const countRecoveryCodes = (tx: Transaction, accountId: string) =>
  onlyValue<number>(tx, {
    name: 'recovery_code.count',
    text: `select count(*)::int as count from recovery_codes
           where account_id = $1 and used_at is null`,
    values: [accountId],
  })
