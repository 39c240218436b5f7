/**
 * Token status lists (draft-ietf-oauth-status-list): one bit per token. An index is drawn at random and
 * never given twice, so that the numbers of two tokens tell nothing about their holders.
 */
import {
  allRows,
  allValues,
  changedRows,
  execute,
  firstRow,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'
import type { TokenStatusQuery } from './token-sessions.js'

/** What the tokens of a list are. */
export type StatusPurpose = 'credential' | 'access_token'

/** A position in a list, as the claim `status.status_list` names it. */
export type StatusIndex = { readonly listId: string; readonly idx: number }

type StatusAllocation = {
  readonly tenantId: string
  readonly purpose: StatusPurpose
  /** The `iss` of the token: a list has tokens of one issuer only. */
  readonly issuer: string
  /** What ends the token later: `invalidateStatusEntries` finds the entry by it. Several entries may share it. */
  readonly ref: string
  readonly now: Date
  /** The parties that can end an access token. Null for a credential. */
  readonly query?: TokenStatusQuery | null | undefined
  /** Expiry of the token. A list is deleted when all of its tokens have expired. */
  readonly expiresAt: Date
}

/** Source of ids and of indices. */
type StatusRandom = {
  uuid(): string
  bytes(count: number): Uint8Array
}

/** Sixteen draws from a list that is four fifths full find no free place in 3 % of the cases. */
const DRAWS = 16
/** The list is counted when this many draws were taken. Below it is hardly full. */
const TAKEN_SUSPECT = 11
const ATTEMPTS_MAX = 50

/** The URL of a list: the claim `status.status_list.uri`, and the `sub` of the list token. */
export function statusListUri(baseUrl: string, listId: string): string {
  return `${baseUrl}/status-lists/${listId}`
}

/**
 * Allocates an index. It is one statement in nearly all cases, and it locks nothing that another
 * allocation waits for, except while the first list of an issuer is created.
 */
export async function allocateStatus(
  tx: Transaction,
  random: StatusRandom,
  allocation: StatusAllocation,
): Promise<StatusIndex> {
  const { tenantId, purpose, issuer, ref, now, expiresAt, query = null } = allocation
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const { rows } = await tx.query<StatusIndex & { taken: number }>({
      name: 'status_entry.allocate',
      text: `with open as materialized (
               select id, size from status_lists
               where tenant_id = $1 and purpose = $2 and issuer = $3 and full_at is null),
             created as (
               insert into status_lists (tenant_id, id, purpose, issuer, created_at)
               select $1, $4, $2, $3, $5 where not exists (select from open)
               on conflict (tenant_id, purpose, issuer) where full_at is null do nothing
               returning id, size),
             drawn as materialized (
               select l.id, d.place, d.bits & (l.size - 1) as idx,
                 exists (select from status_entries e
                   where e.tenant_id = $1 and e.list_id = l.id
                     and e.idx = (d.bits & (l.size - 1)) offset 0) as taken
               from (select * from open union all select * from created) l
               cross join unnest($6::integer[]) with ordinality as d (bits, place)),
             allocated as (
               insert into status_entries (tenant_id, list_id, idx, ref, expires_at, status_query)
               select $1, id, idx, $7, $8, $9 from drawn where not taken order by place limit 1
               on conflict do nothing
               returning list_id, idx)
             select list_id as "listId", idx,
               (select count(*) from drawn where taken)::integer as taken
             from allocated`,
      values: [
        tenantId,
        purpose,
        issuer,
        random.uuid(),
        now,
        draws(random),
        ref,
        expiresAt,
        query === null ? null : JSON.stringify(query),
      ],
    })
    const allocated = rows[0]
    // No row: every draw was taken, or another transaction took the index or created the list.
    if (allocated === undefined) continue
    if (allocated.taken >= TAKEN_SUSPECT) await closeFullList(tx, tenantId, allocated.listId, now)
    return { listId: allocated.listId, idx: allocated.idx }
  }
  throw new Error('no index of the status list is free')
}

/** Non-negative integers. */
function draws(random: StatusRandom): number[] {
  const bytes = random.bytes(DRAWS * 4)
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  return Array.from({ length: DRAWS }, (_, at) => view.getUint32(at * 4) >>> 1)
}

/** Ends allocations in a list of which four fifths are used. */
const closeFullList = (tx: Transaction, tenantId: string, listId: string, now: Date) =>
  execute(tx, {
    name: 'status_list.close',
    text: `update status_lists l set full_at = $3
           where tenant_id = $1 and id = $2 and full_at is null
             and (select count(*) from status_entries where tenant_id = $1 and list_id = $2) * 5 >= l.size * 4`,
    values: [tenantId, listId, now],
  })

type StatusChange = {
  readonly tenantId: string
  /** The `ref` of the allocations. */
  readonly refs: readonly string[]
  readonly now: Date
}

/**
 * Sets the entries of `refs` to INVALID (0x01), in the transaction of what ends their tokens. List tokens
 * show it within a second, and relying parties after the `ttl` of the list.
 * @returns the number of entries that this call changed.
 */
export const invalidateStatusEntries = (tx: Transaction, { tenantId, refs, now }: StatusChange) =>
  changedRows(tx, {
    name: 'status_entry.invalidate',
    text: `update status_entries set invalid_at = $3
           where tenant_id = $1 and ref = any($2::text[]) and invalid_at is null`,
    values: [tenantId, refs, now],
  })

export type StatusListRow = {
  readonly tenantId: string
  readonly id: string
  readonly purpose: StatusPurpose
  readonly issuer: string
  readonly size: number
  /** The current number of invalid entries. It only grows, so it is the version of the list. */
  readonly invalid: number
  /** The current list token. Null before the first. */
  readonly token: string | null
  /** The number of invalid entries that the token shows. */
  readonly tokenInvalid: number | null
  readonly signedAt: Date | null
  /** When a process last took the right to sign. Null before the first time. */
  readonly signingAt: Date | null
}

/** Needs a transaction that crosses tenants, because a list is public and its URL names no tenant. */
export const findStatusList = (tx: Transaction, id: string) =>
  firstRow<StatusListRow>(tx, {
    name: 'status_list.find',
    text: `select l.tenant_id as "tenantId", l.id, l.purpose, l.issuer, l.size, l.token,
             l.token_invalid as "tokenInvalid", l.signed_at as "signedAt", l.signing_at as "signingAt",
             (select count(*) from status_entries e
               where e.tenant_id = l.tenant_id and e.list_id = l.id
                 and e.invalid_at is not null)::integer as invalid
           from status_lists l where l.id = $1`,
    values: [id],
  })

type LiveEntry = { readonly idx: number; readonly query: TokenStatusQuery }

/** Access tokens of a list that are neither expired nor known to have ended, after `afterIdx` in the list. */
export const liveEntries = (
  tx: Transaction,
  { tenantId, listId }: { readonly tenantId: string; readonly listId: string },
  {
    now,
    afterIdx,
    limit,
  }: { readonly now: Date; readonly afterIdx: number; readonly limit: number },
) =>
  allRows<LiveEntry>(tx, {
    name: 'status_entry.live',
    text: `select idx, status_query as query from status_entries
           where tenant_id = $1 and list_id = $2 and idx > $4 and invalid_at is null
             and expires_at > $3 and status_query is not null
           order by idx limit $5`,
    values: [tenantId, listId, now, afterIdx, limit],
  })

/** Sets entries to INVALID by their indices. */
export const invalidateEntries = (
  tx: Transaction,
  { tenantId, listId }: { readonly tenantId: string; readonly listId: string },
  indices: readonly number[],
  now: Date,
) =>
  execute(tx, {
    name: 'status_entry.invalidate_indices',
    text: `update status_entries set invalid_at = $4
           where tenant_id = $1 and list_id = $2 and idx = any($3::integer[]) and invalid_at is null`,
    values: [tenantId, listId, indices, now],
  })

/** The indices of the invalid entries of a list. */
export const invalidIndices = async (tx: Transaction, tenantId: string, listId: string) =>
  (await onlyValue<number[] | null>(tx, {
    name: 'status_list.invalid_indices',
    text: `select array_agg(idx) as indices from status_entries
           where tenant_id = $1 and list_id = $2 and invalid_at is not null`,
    values: [tenantId, listId],
  })) ?? []

/** Takes the right to sign a list. False if a process took it within the last second. */
export const claimSigning = (tx: Transaction, tenantId: string, listId: string) =>
  isChanged(tx, {
    name: 'status_list.claim_signing',
    text: `update status_lists set signing_at = statement_timestamp()
           where tenant_id = $1 and id = $2
             and coalesce(signing_at <= statement_timestamp() - interval '1 second', true)`,
    values: [tenantId, listId],
  })

type SignedStatusList = {
  readonly tenantId: string
  readonly id: string
  readonly token: string
  readonly invalid: number
  readonly signedAt: Date
}

/** Stores a list token. An older one never replaces one with more invalid entries. */
export async function storeStatusListToken(tx: Transaction, list: SignedStatusList): Promise<void> {
  const { tenantId, id, token, invalid, signedAt } = list
  await tx.query({
    name: 'status_list.store_token',
    text: `update status_lists set token = $3, token_invalid = $4, signed_at = $5
           where tenant_id = $1 and id = $2 and coalesce(token_invalid <= $4, true)`,
    values: [tenantId, id, token, invalid, signedAt],
  })
}

/** Ids of the lists of all tenants, newest first. Crosses tenants. */
export const statusListIds = (tx: Transaction, limit: number) =>
  allValues<string>(tx, {
    name: 'status_list.ids',
    text: `select id from status_lists order by created_at desc, id desc limit $1`,
    values: [limit],
  })

/** Deletes up to `limit` closed lists whose tokens have all expired. Crosses tenants. */
export const removeEndedStatusLists = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'status_list.remove_ended',
    text: `delete from status_lists where (tenant_id, id) in (
             select l.tenant_id, l.id from status_lists l
             where l.full_at < $1 and not exists (select from status_entries e
               where e.tenant_id = l.tenant_id and e.list_id = l.id and e.expires_at > $1)
             order by l.full_at limit $2 for update skip locked)`,
    values: [before, limit],
  })
