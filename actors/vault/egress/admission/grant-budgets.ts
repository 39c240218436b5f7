/** Budgets of grants in admission: what running calls take, what their ends settle, and what refuses a call. */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { AuthorityRow } from '../../../../storage/vault/egress-authorities.js'
import {
  type BudgetHold,
  type BudgetSettlement,
  findBudgetUse,
  settleBudget,
  spendBudgetBytes,
  takeFromBudget,
  tellBudgetExceeded,
} from '../../../../storage/vault/grant-budgets.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { type BudgetRefusal, lackOf, windowAt } from '../../../domain/vault/budgets.js'
import type { RelayReport } from '../protocol.js'
import type { CallFacts } from './events.js'
import type { ProxiedCall } from './rules.js'

/** Takes more bytes for a running call; 0 when too few are left. */
export async function moreOfBudget(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  tenantId: string,
  hold: BudgetHold,
  bytes: { readonly bytesMin: number; readonly bytesMax: number },
): Promise<number> {
  const grant = { id: hold.grantId, budget: hold.budget }
  const taking = { requests: 0, ...bytes, now: clock.now() } as const
  const taken = await database.tenant(tenantId, (tx) => takeFromBudget(tx, tenantId, grant, taking))
  if (taken === undefined) return 0
  hold.bytesBegan = taken.began
  return taken.bytes
}

/** What the end of a call changes in the budget of its grant. */
export function settlementOf(
  { hold }: CallFacts,
  { isHeard, requestBytes, tokens, unreportedTokens }: RelayReport,
  unusedBytes: number,
): BudgetSettlement | null {
  if (hold === undefined) return null
  const { input, output } = tokens
  return {
    hold,
    requestsBack: isHeard ? 0 : 1,
    bytesBack: isHeard ? unusedBytes : unusedBytes + requestBytes,
    tokens:
      hold.budget.llmTokens === null ? 0 : Math.max((input ?? 0) + (output ?? 0), unreportedTokens),
  }
}

/** The end of a call. */
type Ending = { readonly settles: BudgetSettlement | null; readonly spends: boolean }

/** Spends budgets that have cut a call, and then settles all of them: what is spent does not come back. */
export async function settleBudgets(
  tx: Transaction,
  tenantId: string,
  ends: readonly Ending[],
  now: Date,
): Promise<void> {
  await Promise.all(
    ends.map(({ settles, spends }) =>
      settles === null || !spends ? null : spendBudgetBytes(tx, tenantId, settles.hold, now),
    ),
  )
  await Promise.all(ends.map(({ settles }) => settles && settleBudget(tx, tenantId, settles)))
}

/**
 * The first budget that has too little left for a call. Undefined: something else refuses it.
 * `isFirst`: the budget has refused no other call in its window.
 */
export async function refusalOf(
  tx: Transaction,
  tenantId: string,
  { call: { bodyBytes } }: { readonly call: ProxiedCall },
  authorities: readonly AuthorityRow[],
  now: Date,
): Promise<{ readonly budget: BudgetRefusal; readonly isFirst: boolean } | undefined> {
  for (const { id, budget } of authorities) {
    if (budget === null) continue
    const used = await findBudgetUse(tx, tenantId, id)
    const lack = used && lackOf(id, budget, used, bodyBytes, now)
    if (lack === undefined) continue
    const { began } = windowAt(budget.window, now)
    return { budget: lack, isFirst: await tellBudgetExceeded(tx, tenantId, id, began) }
  }
  return undefined
}
