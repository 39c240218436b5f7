/** Calls that have left the service, from the audit chain: the ends of egress calls, and calls of MCP tools. */
import type { Budget } from '../../actors/domain/vault/budgets.js'
import type { AuditParty, AuditResource } from '../operations/audit-chain.js'
import { numberEvents } from '../platform/event-numbers.js'
import { allRows, type Transaction } from '../platform/sql.js'

/** Events of which one page looks through at most so many. */
const SCANNED_MAX = 5_000
/** Calls of one read of a follower. */
const FOLLOWED_MAX = 500

export type EgressCallRow = {
  readonly id: string
  readonly sequence: number
  readonly type: string
  readonly occurredAt: Date
  readonly subject: AuditParty | null
  readonly actors: readonly AuditParty[]
  readonly delegationId: string | null
  readonly grantId: string | null
  readonly resource: AuditResource | null
  readonly requestId: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** Null: any. */
export type CallFilter = {
  readonly agentId: string | null
  readonly credentialId: string | null
  readonly host: string | null
  readonly outcome: string | null
}

const COLUMNS = `id, sequence, type, occurred_at as "occurredAt", subject, actors, delegation_id as "delegationId",
  grant_id as "grantId", resource, request_id as "requestId", data`

/** SQL: whether an event matches the filter, with parameters from a number on, and their values. */
function matching({ agentId, credentialId, host, outcome }: CallFilter, first: number) {
  const [agent, credential, at, end] = [0, 1, 2, 3].map((index) => `$${first + index}::text`)
  return {
    text: `(${agent} is null or subject ->> 'sub' = ${agent}
        or actors @> jsonb_build_array(jsonb_build_object('sub', ${agent})))
      and (${credential} is null or coalesce(data ->> 'credential_id', resource ->> 'id') = ${credential})
      and (${at} is null or data ->> 'host' = ${at})
      and (${end} is null or data ->> 'outcome' = ${end})`,
    values: [agentId, credentialId, host, outcome],
  }
}

type Place = { readonly createdAt: Date; readonly id: string }
type Range = {
  readonly types: readonly string[]
  readonly since: Date | null
  /** Exclusive. */
  readonly until: Date | null
  readonly limit: number
  /** The last event of the page before. */
  readonly after: Place | null
}

/**
 * The newest calls that match, of the newest events of these types.
 * @returns also the last event that was looked at, if older ones may match.
 */
export async function listEgressCallRows(
  tx: Transaction,
  tenantId: string,
  { types, since, until, limit, after }: Range,
  filter: CallFilter,
): Promise<{ readonly rows: readonly EgressCallRow[]; readonly scanned: Place | null }> {
  await numberEvents(tx, tenantId)
  const match = matching(filter, 9)
  const found = await allRows<
    Partial<EgressCallRow> & { scanned: number; lastAt: Date | null; lastId: string | null }
  >(tx, {
    name: 'egress_call.list',
    text: `with recent as materialized (
             select e.* from unnest($2::text[]) as t (wanted)
             cross join lateral (
               select * from audit_events a
               where a.tenant_id = $1 and a.type = t.wanted
                 and ($3::timestamptz is null or a.occurred_at >= $3)
                 and ($4::timestamptz is null or a.occurred_at < $4)
                 and ($6::timestamptz is null or (a.occurred_at, a.sequence) < ($6, coalesce(
                   (select seen.sequence from audit_events seen
                    where seen.tenant_id = $1 and seen.occurred_at = $6 and seen.id = $7::uuid), 0)))
               order by a.occurred_at desc, a.sequence desc limit $8) e
             order by e.occurred_at desc, e.sequence desc limit $8),
           looked as (
             select count(*)::int as scanned, (array_agg(id order by occurred_at, sequence))[1] as "lastId",
               min(occurred_at) as "lastAt" from recent)
           select looked.*, found.* from looked left join lateral (
             select ${COLUMNS} from recent where ${match.text}
             order by occurred_at desc, sequence desc limit $5) found on true
           order by found."occurredAt" desc, found.sequence desc`,
    values: [
      tenantId,
      types,
      since,
      until,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
      SCANNED_MAX,
      ...match.values,
    ],
  })
  const [first] = found
  const isCut = first !== undefined && first.scanned === SCANNED_MAX && first.lastAt !== null
  return {
    rows: found.filter(({ id }) => id !== null) as readonly EgressCallRow[],
    scanned: isCut ? { createdAt: first.lastAt!, id: first.lastId! } : null,
  }
}

/**
 * Events after a sequence, of which calls that match are returned, in order.
 * @returns also the last event that was looked at, and whether it stopped at the most calls of a read.
 */
export async function egressCallsAfter(
  tx: Transaction,
  tenantId: string,
  { types, sequence }: { readonly types: readonly string[]; readonly sequence: number },
  filter: CallFilter,
): Promise<{
  readonly rows: readonly EgressCallRow[]
  readonly sequence: number
  readonly isMore: boolean
}> {
  await numberEvents(tx, tenantId)
  const match = matching(filter, 6)
  const found = await allRows<Partial<EgressCallRow> & { reached: number | null }>(tx, {
    name: 'egress_call.after',
    text: `with next as materialized (
             select * from audit_events where tenant_id = $1 and sequence > $3 order by sequence limit $4)
           select (select max(sequence) from next) as reached, found.* from (select) one left join lateral (
             select ${COLUMNS} from next where type = any($2::text[]) and ${match.text}
             order by sequence limit $5) found on true
           order by found.sequence`,
    values: [tenantId, types, sequence, SCANNED_MAX, FOLLOWED_MAX, ...match.values],
  })
  const rows = found.filter(({ id }) => id !== null) as readonly EgressCallRow[]
  if (rows.length === FOLLOWED_MAX) return { rows, sequence: rows.at(-1)!.sequence, isMore: true }
  return { rows, sequence: found[0]?.reached ?? sequence, isMore: false }
}

export type GrantBudgetRow = {
  readonly id: string
  readonly budget: Budget
  readonly began: Date | null
  readonly requests: number
  readonly bytes: number
  readonly llmTokens: number
}

/** The budgets of grants, of those that have one. */
export const findGrantBudgets = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<GrantBudgetRow>(tx, {
    name: 'egress_call.budgets',
    text: `select id, budget, budget_began as began, budget_requests as requests, budget_bytes as bytes,
             budget_llm_tokens as "llmTokens"
           from vault_grants where tenant_id = $1 and id = any($2::uuid[]) and budget is not null`,
    values: [tenantId, ids],
  })
