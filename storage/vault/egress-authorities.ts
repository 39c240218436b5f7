/** Egress authorities: the grants and leases that allow calls, with their limits and usage. */
import type { Budget } from '../../actors/domain/vault/budgets.js'
import { appendAtCommit, eventValues, INSERT_EVENTS, type OutboxEvent } from '../platform/outbox.js'
import { connectionInForce } from '../platform/in-force.js'
import type { Statement, Transaction } from '../platform/sql.js'
import type { ApprovalMode } from '../../actors/domain/vault/approvals.js'
import type { CapabilitySnapshot } from './vault-grants.js'
import type { Grantee } from './vault-credentials.js'

/** A grant, or a lease, which is a grant with a byte budget. */
export type AuthorityRow = {
  kind: 'grant' | 'lease'
  id: string
  snapshot: CapabilitySnapshot
  methods: string[] | null
  pathPrefixes: string[] | null
  /** Whether the caller's Range header is relayed. */
  allowRange: boolean
  /** The approval that a call needs: none once an approval has opened a grant with `first` for this caller. */
  approval: ApprovalMode
  maxRequests: number | null
  maxBytes: number | null
  /** Calls of a grant with a budget are decided in the database (grant-budgets.ts). */
  budget: Budget | null
  requestsUsed: number
  bytesUsed: number
  /** Its byte budget has cut a call. It admits no other, whatever running calls give back. */
  isSpent: boolean
  expiresAt: Date | null
  revokedAt: Date | null
}

/** Identifies an authority. */
export type AuthorityRef = Pick<AuthorityRow, 'kind' | 'id'>

/** A grantee and the credential it wants to use. */
export type AuthorityQuery = Grantee & { readonly credentialId: string }

/** Active ones come first, so that the row limit drops expired ones, which may be many. */
const IN_FORCE = `("revokedAt" is null and ("expiresAt" is null or "expiresAt" > $5))`

/**
 * The authorities of each query, in the order of the queries: active before ended, leases before grants,
 * newest first. Includes grants to sign, so that their holders get an error that says what the
 * credential is for.
 */
export async function findEgressAuthorities(
  tx: Transaction,
  tenantId: string,
  queries: readonly AuthorityQuery[],
  now: Date,
): Promise<AuthorityRow[][]> {
  const { rows } = await tx.query<AuthorityRow & { place: number }>({
    name: 'egress_authority.of_grantees',
    text: `select q.place, a.kind, a.id, a.snapshot, a.methods, a."pathPrefixes", a."allowRange", a.approval,
             a."maxRequests", a."maxBytes", a.budget, a."requestsUsed", a."bytesUsed", a."isSpent",
             a."expiresAt", a."revokedAt"
           from unnest($2::uuid[], $3::text[], $4::text[], $6::text[]) with ordinality
             as q (credential_id, agent_id, delegation_id, person, place)
           cross join lateral (
             select * from (
               select 'lease' as kind, id, snapshot, null::text[] as methods,
                 null::text[] as "pathPrefixes", true as "allowRange", 'none' as approval,
                 null::bigint as "maxRequests",
                 byte_budget as "maxBytes", null::jsonb as budget, 0::bigint as "requestsUsed", bytes_used as "bytesUsed",
                 spent_at is not null as "isSpent", expires_at as "expiresAt", revoked_at as "revokedAt", created_at
               from vault_leases
               where tenant_id = $1 and credential_id = q.credential_id
                 and recipient_id = q.agent_id
               union all
               select 'grant', id, snapshot, methods, path_prefixes, allow_range,
                 case when approval = 'first' and (approved_at is not null or q.delegation_id = any (approved_delegations))
                   then 'none' else approval end,
                 max_requests, max_bytes, budget,
                 requests_used, bytes_used, spent_at is not null, expires_at, revoked_at, created_at
               from vault_grants
               where tenant_id = $1 and credential_id = q.credential_id
                 and capabilities && '{use,sign}' and (grantee_type, grantee_id) in
                   (('agent', q.agent_id), ('delegation', q.delegation_id))
                 and ${connectionInForce('vault_grants', 'q.person', '$5')}
             ) each
             order by ${IN_FORCE} desc, kind desc, created_at desc, id desc limit 200) a
           order by q.place, ${IN_FORCE} desc, a.kind desc, a.created_at desc, a.id desc`,
    values: [
      tenantId,
      queries.map(({ credentialId }) => credentialId),
      queries.map(({ agentId }) => agentId),
      queries.map(({ delegationId }) => delegationId),
      now,
      queries.map(({ person }) => person),
    ],
  })
  const found: AuthorityRow[][] = queries.map(() => [])
  for (const { place, ...row } of rows) found[place - 1]!.push(row)
  return found
}

export type Taking = {
  /** 1 for a new call, 0 for more bytes of a running one. */
  readonly requests: 0 | 1
  /** Takes nothing when fewer bytes are left. */
  readonly bytesMin: number
  /** Takes at most this many bytes. */
  readonly bytesMax: number
  readonly now: Date
}

/** Beyond what it needs, a call takes at most this part of what is left, so that others find some too. */
export const PORTION_PART = 8
/** Smaller portions are not worth their statement. */
export const PORTION_BYTES_MIN = 16 * 1024

/** What a call takes of what is left: its least ($3) and a portion. */
export function withPortion(left: string): string {
  return `least($3::bigint + greatest(${PORTION_BYTES_MIN}, (${left} - $3::bigint) / ${PORTION_PART}), ${left})`
}

/**
 * Takes requests and bytes from the limits, in one statement; the row lock serialises concurrent calls.
 * @returns the bytes taken (0 without a byte limit); undefined when too little is left or the authority
 * has ended.
 */
export async function takeFromAuthority(
  tx: Transaction,
  tenantId: string,
  { kind, id }: AuthorityRef,
  { requests, bytesMin, bytesMax, now }: Taking,
): Promise<number | undefined> {
  const values = [tenantId, id, bytesMin, bytesMax, now]
  const { rows } = await tx.query<{ bytes: number }>(
    kind === 'lease'
      ? {
          name: 'egress_authority.take_from_lease',
          text: `with before as (
                   select least($4::bigint, ${withPortion('byte_budget - bytes_used')}) as taken
                   from vault_leases
                   where tenant_id = $1 and id = $2 and revoked_at is null and spent_at is null
                     and (expires_at is null or expires_at > $5)
                     and byte_budget - bytes_used >= greatest($3::bigint, 1) for update)
                 update vault_leases l set bytes_used = l.bytes_used + before.taken
                 from before where l.tenant_id = $1 and l.id = $2
                 returning before.taken as bytes`,
          values,
        }
      : {
          name: 'egress_authority.take_from_grant',
          text: `with before as (
                   select coalesce(least($4::bigint, ${withPortion('max_bytes - bytes_used')}), 0) as taken
                   from vault_grants
                   where tenant_id = $1 and id = $2 and revoked_at is null and spent_at is null
                     and (expires_at is null or expires_at > $5)
                     and (max_requests is null or requests_used + $6 <= max_requests)
                     and (max_bytes is null or max_bytes - bytes_used >= greatest($3::bigint, 1))
                   for update)
                 update vault_grants g set requests_used = g.requests_used + $6,
                   bytes_used = g.bytes_used + before.taken
                 from before where g.tenant_id = $1 and g.id = $2
                 returning before.taken as bytes`,
          values: [...values, requests],
        },
  )
  return rows[0]?.bytes
}

/** Returns bytes that a call has taken and not used, and requests and bytes of a closed block. A spent budget stays spent. */
export async function returnToAuthority(
  tx: Transaction,
  tenantId: string,
  { kind, id }: AuthorityRef,
  { requests, bytes }: { readonly requests: number; readonly bytes: number },
): Promise<void> {
  const values = [tenantId, id, bytes]
  await tx.query(
    kind === 'lease'
      ? {
          name: 'egress_authority.return_to_lease',
          text: `update vault_leases set bytes_used = bytes_used - $3
                 where tenant_id = $1 and id = $2 and spent_at is null`,
          values,
        }
      : {
          name: 'egress_authority.return_to_grant',
          text: `update vault_grants set requests_used = requests_used - $4,
                   bytes_used = bytes_used - case when spent_at is null then $3 else 0 end
                 where tenant_id = $1 and id = $2`,
          values: [...values, requests],
        },
  )
}

const SPEND = {
  lease: {
    name: 'egress_authority.spend_leases',
    text: `update vault_leases set bytes_used = byte_budget, spent_at = $3
           where tenant_id = $1 and id = any($2::uuid[]) and spent_at is null`,
  },
  grant: {
    name: 'egress_authority.spend_grants',
    text: `update vault_grants set bytes_used = max_bytes, spent_at = $3
           where tenant_id = $1 and id = any($2::uuid[]) and spent_at is null`,
  },
}

/**
 * Spends what is left of byte budgets that have cut a call. A rest that is smaller than a chunk would let calls reach
 * the upstream forever, each cut at its first bytes.
 */
export async function spendAuthorities(
  tx: Transaction,
  tenantId: string,
  authorities: readonly AuthorityRef[],
  now: Date,
): Promise<void> {
  await Promise.all(
    Object.entries(SPEND).map(async ([wanted, statement]) => {
      const ids = authorities.flatMap(({ kind, id }) => (kind === wanted ? id : []))
      if (ids.length > 0) await tx.query({ ...statement, values: [tenantId, ids, now] })
    }),
  )
}

/** Stamps credentials as used and appends the events, in one statement with the commit. */
export function bookUses(
  tx: Transaction,
  tenantId: string,
  credentialIds: readonly string[],
  now: Date,
  events: readonly OutboxEvent[],
): void {
  appendAtCommit(tx, {
    name: 'egress_authority.book_uses',
    text: `with touched as (
             update vault_credentials set last_used_at = greatest(last_used_at, $9)
             where tenant_id = $7 and id = any($8::uuid[]))
           ${INSERT_EVENTS}`,
    values: [...eventValues(events), tenantId, credentialIds, now],
  })
}

/** Stamps credentials as used. */
export function stampingUses(
  tenantId: string,
  credentialIds: readonly string[],
  now: Date,
): Statement {
  return {
    name: 'egress_authority.stamp_uses',
    text: `update vault_credentials set last_used_at = greatest(last_used_at, $3)
           where tenant_id = $1 and id = any($2::uuid[])`,
    values: [tenantId, credentialIds, now],
  }
}

/** The ids of those grants and leases that are active and whose credential is active. */
export async function authoritiesInForce(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
  now: Date,
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'egress_authority.in_force',
    text: `select a.id from (
             select tenant_id, id, credential_id, revoked_at, expires_at from vault_grants
             where tenant_id = $1 and id = any($2::uuid[])
               and ${connectionInForce('vault_grants', 'null', '$3')}
             union all
             select tenant_id, id, credential_id, revoked_at, expires_at from vault_leases
             where tenant_id = $1 and id = any($2::uuid[])
           ) a join vault_credentials c
             on c.tenant_id = a.tenant_id and c.id = a.credential_id and c.status = 'active'
           where a.revoked_at is null and (a.expires_at is null or a.expires_at > $3)`,
    values: [tenantId, ids, now],
  })
  return new Set(rows.map(({ id }) => id))
}
