/**
 * The ways in of an account: everything that signs a person in. Every question about them reads the one list below, so
 * that a new way in counts everywhere. Global, so every transaction here crosses tenants.
 */
import { allRows, type Transaction } from '../../platform/sql.js'

type WayInKind =
  | 'password'
  | 'passkey'
  | 'phone'
  | 'wallet'
  | 'federated'
  /** A verified mailbox, which gets codes, links and password resets. */
  | 'mailbox'
  /** The browser session of a guest. */
  | 'guest'

type WayIn = {
  readonly kind: WayInKind
  readonly id: string
  /** The tenant whose own provider it is: a way into this tenant alone. Null: a way in that is the person's own. */
  readonly tenantId: string | null
}

/** One row for each way in of the account `a`. */
const WAYS_IN = `(
  select 'password' as kind, a.id, null::uuid as tenant_id where a.password_hash is not null
  union all select 'passkey', p.id, null from passkeys p where p.account_id = a.id
  union all select 'phone', n.account_id, null from account_phones n where n.account_id = a.id
  union all select 'wallet', w.id, null from account_wallets w where w.account_id = a.id
  union all select 'federated', i.id, i.tenant_id from upstream_identities i where i.account_id = a.id
  union all select 'mailbox', a.id, null where a.email_verified and a.guest_since is null
  union all select 'guest', a.id, null where a.guest_since is not null) way`

/** The account `a` has a way in other than its mailbox or the session of a guest. */
export const HAS_KEY = `exists (select from ${WAYS_IN} where way.kind not in ('mailbox', 'guest'))`

/** The account `a` has such a way into the tenant of this column: the person's own, or the tenant's provider. */
export const hasKeyIn = (tenantId: string): string =>
  `exists (select from ${WAYS_IN} where way.kind not in ('mailbox', 'guest')
     and (way.tenant_id is null or way.tenant_id = ${tenantId}))`

/** The account `a` has a second factor. */
export const HAS_FACTOR = `(exists (select from totp_factors f
    where f.account_id = a.id and f.confirmed_at is not null)
  or exists (select from passkeys p where p.account_id = a.id and p.user_verified))`

/** The account `a` has a way into the tenant of this column, or a factor: an invitation sets no first password. */
export const hasKeyOrFactorIn = (tenantId: string): string =>
  `(${hasKeyIn(tenantId)} or ${HAS_FACTOR})`

export const listWaysIn = (tx: Transaction, accountId: string) =>
  allRows<WayIn>(tx, {
    name: 'ways_in.list',
    text: `select way.kind, way.id, way.tenant_id as "tenantId"
           from accounts a cross join lateral ${WAYS_IN} where a.id = $1`,
    values: [accountId],
  })

/**
 * Judges the removal of a way in. Locks the account until the transaction ends, so concurrent removals of the last two
 * leave one. `last`: no other way in would be left that the account keeps and that opens what this one opens.
 */
export async function judgeRemoval(
  tx: Transaction,
  accountId: string,
  { kind, id, tenantId }: Pick<WayIn, 'kind' | 'id'> & { readonly tenantId?: string | undefined },
): Promise<'removable' | 'last' | 'unknown'> {
  await tx.query({
    name: 'ways_in.hold_account',
    text: 'select from accounts where id = $1 for update',
    values: [accountId],
  })
  const ways = await listWaysIn(tx, accountId)
  const removed = ways.find((way) => way.kind === kind && way.id === id)
  if (removed === undefined || (removed.tenantId !== null && removed.tenantId !== tenantId))
    return 'unknown'
  const isLeft = ways.some(
    (way) =>
      way !== removed &&
      way.kind !== 'mailbox' &&
      way.kind !== 'guest' &&
      (way.tenantId === null || way.tenantId === removed.tenantId),
  )
  return isLeft ? 'removable' : 'last'
}
