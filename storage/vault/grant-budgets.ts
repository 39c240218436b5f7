/**
 * Budgets of grants. A call takes from the budget before it is sent, in one statement, and its end settles what it has
 * used. The first call of a window sets the counts of the window before to zero.
 */
import { type Budget, type Used, windowAt } from '../../actors/domain/vault/budgets.js'
import { execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { withPortion, type Taking } from './egress-authorities.js'

/** What a running call has taken from a budget. */
export type BudgetHold = {
  readonly grantId: string
  readonly budget: Budget
  /** The window of its request and its token. */
  readonly began: Date
  /** The window of its last bytes. */
  bytesBegan: Date
}

/**
 * Takes a call, or bytes of a running one, from the limits and the budget of a grant; the row lock serialises
 * concurrent calls. A call holds one token until its end, so that at most as many calls run as tokens are left.
 * @returns undefined when too little is left or the grant has ended.
 */
export const takeFromBudget = (
  tx: Transaction,
  tenantId: string,
  { id, budget }: { readonly id: string; readonly budget: Budget },
  { requests, bytesMin, bytesMax, now }: Taking,
) =>
  firstRow<{ bytes: number; began: Date }>(tx, {
    name: 'grant_budget.take',
    text: `with held as (
             select greatest(budget_began, $7::timestamptz) as began, max_bytes - bytes_used as limit_left,
               case when budget_began >= $7 then budget_requests else 0 end as requests,
               case when budget_began >= $7 then budget_bytes else 0 end as bytes,
               case when budget_began >= $7 then budget_llm_tokens else 0 end as tokens,
               (budget ->> 'requests')::bigint as requests_max, (budget ->> 'bytes')::bigint as bytes_max,
               (budget ->> 'llmTokens')::bigint as tokens_max, budget_spent
             from vault_grants
             where tenant_id = $1 and id = $2 and revoked_at is null and spent_at is null
               and (expires_at is null or expires_at > $5)
               and (max_requests is null or requests_used + $6 <= max_requests)
               and (max_bytes is null or max_bytes - bytes_used >= greatest($3::bigint, 1))
             for update),
           taking as (
             select *, case when limit_left is null and bytes_max is null then 0
               else least($4::bigint, ${withPortion('limit_left')}, ${withPortion('(bytes_max - bytes)')}) end as taken
             from held
             where (requests_max is null or requests + $6 <= requests_max)
               and (bytes_max is null or bytes_max - bytes >= greatest($3::bigint, 1))
               and (bytes_max is null or budget_spent is distinct from began)
               and (tokens_max is null or $6 = 0 or tokens < tokens_max))
           update vault_grants g set requests_used = g.requests_used + $6, bytes_used = g.bytes_used + taking.taken,
             budget_began = taking.began, budget_requests = taking.requests + $6,
             budget_bytes = taking.bytes + taking.taken,
             budget_llm_tokens = taking.tokens + case when tokens_max is null then 0 else $6 end
           from taking where g.tenant_id = $1 and g.id = $2
           returning taking.taken as bytes, taking.began`,
    values: [tenantId, id, bytesMin, bytesMax, now, requests, windowAt(budget.window, now).began],
  })

/** What the end of a call changes in the budget of its grant. */
export type BudgetSettlement = {
  readonly hold: BudgetHold
  /** The upstream never heard of the call: its request does not count. */
  readonly requestsBack: number
  readonly bytesBack: number
  /** Tokens that the answer reports. */
  readonly tokens: number
}

/** Settles the budget at the end of a call. What was taken in an earlier window is not given back to this one. */
export const settleBudget = (
  tx: Transaction,
  tenantId: string,
  { hold, requestsBack, bytesBack, tokens }: BudgetSettlement,
) =>
  execute(tx, {
    name: 'grant_budget.settle',
    text: `update vault_grants set
             budget_requests = budget_requests - case when budget_began = $3 then $5::bigint else 0 end,
             budget_bytes = budget_bytes - case
               when budget_began = $4 and budget_spent is distinct from $4 then $6::bigint else 0 end,
             budget_llm_tokens = budget_llm_tokens + $7 - case when budget_began = $3 then $8::bigint else 0 end
           where tenant_id = $1 and id = $2`,
    values: [
      tenantId,
      hold.grantId,
      hold.began,
      hold.bytesBegan,
      requestsBack,
      bytesBack,
      tokens,
      hold.budget.llmTokens === null ? 0 : 1,
    ],
  })

/**
 * Spends what is left of the bytes that have cut a call: of the limit of the grant, or of the window of its budget, if
 * that has fewer left.
 */
export const spendBudgetBytes = (
  tx: Transaction,
  tenantId: string,
  { grantId, bytesBegan }: BudgetHold,
  now: Date,
) =>
  execute(tx, {
    name: 'grant_budget.spend',
    text: `with cut as (
             select coalesce((budget ->> 'bytes')::bigint - budget_bytes < max_bytes - bytes_used, max_bytes is null)
               as by_budget
             from vault_grants where tenant_id = $1 and id = $2 and spent_at is null for update)
           update vault_grants g set
             bytes_used = case when by_budget then bytes_used else max_bytes end,
             spent_at = case when by_budget then null else $3::timestamptz end,
             budget_bytes = case when by_budget and budget_began = $4
               then greatest(budget_bytes, (budget ->> 'bytes')::bigint) else budget_bytes end,
             budget_spent = case when by_budget then $4 else budget_spent end
           from cut where g.tenant_id = $1 and g.id = $2`,
    values: [tenantId, grantId, now, bytesBegan],
  })

/** What is used of the budget of a grant. */
export const findBudgetUse = (tx: Transaction, tenantId: string, grantId: string) =>
  firstRow<Used>(tx, {
    name: 'grant_budget.find_use',
    text: `select budget_began as began, budget_requests as requests, budget_bytes as bytes,
             budget_llm_tokens as "llmTokens"
           from vault_grants where tenant_id = $1 and id = $2`,
    values: [tenantId, grantId],
  })

/** True once in a window: a call was refused because the budget is used up. */
export const tellBudgetExceeded = (
  tx: Transaction,
  tenantId: string,
  grantId: string,
  began: Date,
) =>
  isChanged(tx, {
    name: 'grant_budget.tell_exceeded',
    text: `update vault_grants set budget_told = $3
           where tenant_id = $1 and id = $2 and (budget_told is null or budget_told < $3)`,
    values: [tenantId, grantId, began],
  })
