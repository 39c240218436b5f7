/** What entitles a caller to use a credential through the egress proxy, and how much of it is left. */
import { appendAtCommit, appended, APPENDING, type NewEvent } from '../platform/outbox.js'
import type { Transaction } from '../platform/sql.js'
import type { CapabilitySnapshot } from './vault-grants.js'
import type { Grantee } from './vault-credentials.js'

/** A grant, or a lease, which is a grant with a budget of bytes. */
export type AuthorityRow = {
  kind: 'grant' | 'lease'
  id: string
  snapshot: CapabilitySnapshot
  methods: string[] | null
  pathPrefixes: string[] | null
  /** Whether the caller's Range goes to the upstream. */
  allowRange: boolean
  maxRequests: number | null
  maxBytes: number | null
  requestsUsed: number
  bytesUsed: number
  expiresAt: Date | null
  revokedAt: Date | null
}

/** Names one in statements. */
export type AuthorityRef = Pick<AuthorityRow, 'kind' | 'id'>

/** Somebody who wants to use a credential. */
export type AuthorityQuery = Grantee & { readonly credentialId: string }

/** Those that ended by time pile up where each task is given one of its own: they hide none that has not. */
const IN_FORCE = `("revokedAt" is null and ("expiresAt" is null or "expiresAt" > $5))`

/**
 * What entitles each of the queries, in their order: those in force before ended ones, leases before
 * grants, the newest first. Grants to sign are among them, of SSH authorities: whoever holds one is told
 * that nothing else is done with the credential.
 */
export async function findEgressAuthorities(
  tx: Transaction,
  tenantId: string,
  queries: readonly AuthorityQuery[],
  now: Date,
): Promise<AuthorityRow[][]> {
  const { rows } = await tx.query<AuthorityRow & { place: number }>({
    name: 'egress_authority.of_grantees',
    text: `select q.place, a.kind, a.id, a.snapshot, a.methods, a."pathPrefixes", a."allowRange", a."maxRequests",
             a."maxBytes", a."requestsUsed", a."bytesUsed", a."expiresAt", a."revokedAt"
           from unnest($2::uuid[], $3::text[], $4::text[]) with ordinality
             as q (credential_id, agent_id, delegation_id, place)
           cross join lateral (
             select * from (
               select 'lease' as kind, id, snapshot, null::text[] as methods,
                 null::text[] as "pathPrefixes", true as "allowRange", null::bigint as "maxRequests",
                 byte_budget as "maxBytes", 0::bigint as "requestsUsed", bytes_used as "bytesUsed",
                 expires_at as "expiresAt", revoked_at as "revokedAt", created_at
               from vault_leases
               where tenant_id = $1 and credential_id = q.credential_id
                 and recipient_id = q.agent_id
               union all
               select 'grant', id, snapshot, methods, path_prefixes, allow_range, max_requests, max_bytes,
                 requests_used, bytes_used, expires_at, revoked_at, created_at
               from vault_grants
               where tenant_id = $1 and credential_id = q.credential_id
                 and capabilities && '{use,sign}' and (grantee_type, grantee_id) in
                   (('agent', q.agent_id), ('delegation', q.delegation_id))
             ) each
             order by ${IN_FORCE} desc, kind desc, created_at desc, id desc limit 200) a
           order by q.place, ${IN_FORCE} desc, a.kind desc, a.created_at desc, a.id desc`,
    values: [
      tenantId,
      queries.map(({ credentialId }) => credentialId),
      queries.map(({ agentId }) => agentId),
      queries.map(({ delegationId }) => delegationId),
      now,
    ],
  })
  const found: AuthorityRow[][] = queries.map(() => [])
  for (const { place, ...row } of rows) found[place - 1]!.push(row)
  return found
}

export type Taking = {
  /** 1 for a new call, 0 for more bytes of a running one. */
  readonly requests: 0 | 1
  /** Bytes without which nothing is taken. */
  readonly bytesMin: number
  /** Bytes that are taken when there are as many. */
  readonly bytesMax: number
  readonly now: Date
}

/**
 * Takes from what is left, in one statement: calls that run side by side take turns on the row.
 * @returns the bytes taken (0 where bytes are not limited); undefined: not enough is left, or the
 * authority has ended.
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
                   select bytes_used, least($4::bigint, byte_budget - bytes_used) as taken
                   from vault_leases
                   where tenant_id = $1 and id = $2 and revoked_at is null
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
                   select coalesce(least($4::bigint, max_bytes - bytes_used), 0) as taken
                   from vault_grants
                   where tenant_id = $1 and id = $2 and revoked_at is null
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

/** Puts back what a call has taken and not used. */
export async function returnToAuthority(
  tx: Transaction,
  tenantId: string,
  { kind, id }: AuthorityRef,
  bytes: number,
): Promise<void> {
  const values = [tenantId, id, bytes]
  await tx.query(
    kind === 'lease'
      ? {
          name: 'egress_authority.return_to_lease',
          text: `update vault_leases set bytes_used = bytes_used - $3
                 where tenant_id = $1 and id = $2`,
          values,
        }
      : {
          name: 'egress_authority.return_to_grant',
          text: `update vault_grants set bytes_used = bytes_used - $3
                 where tenant_id = $1 and id = $2`,
          values,
        },
  )
}

/** Writes down that credentials are being used, and the events of it, in one statement with the commit. */
export function recordUses(
  tx: Transaction,
  tenantId: string,
  credentialIds: readonly string[],
  now: Date,
  events: readonly NewEvent[],
): void {
  appendAtCommit(tx, {
    name: 'egress_authority.book_uses',
    text: `with touched as (
             update vault_credentials set last_used_at = greatest(last_used_at, $9)
             where tenant_id = $7 and id = any($8::uuid[]))
           select ${APPENDING}`,
    values: [...appended(events), tenantId, credentialIds, now],
  })
}

/** Which of these grants and leases are in force still, with their credentials. */
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
