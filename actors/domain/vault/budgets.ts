/** Budgets of grants: what their calls may use in a window of the calendar, in UTC. */
import { z } from 'zod'
import type { RecordOf } from '../entities/record.js'

const LIMIT = z.int().min(1).max(Number.MAX_SAFE_INTEGER)

const BUDGET_WINDOWS = ['hour', 'day', 'month', 'total'] as const
export type BudgetWindow = (typeof BUDGET_WINDOWS)[number]

const limits = {
  requests: LIMIT.optional().meta({ description: 'Calls' }),
  bytes: LIMIT.optional().meta({ description: 'Bytes of the bodies of requests and responses' }),
  llm_tokens: LIMIT.optional().meta({
    description: 'Input and output tokens that model providers report in their answers',
  }),
}
const window = z.enum(BUDGET_WINDOWS).meta({
  description: 'A calendar hour, day or month in UTC; total: all calls of the grant',
})

export const NewBudget = z
  .strictObject({
    ...limits,
    amount_minor: LIMIT.optional().meta({ description: 'Refused: calls spend no money' }),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/)
      .optional(),
    window,
  })
  .meta({ id: 'CreateVaultGrantBudget' })

const count = z.int().optional()

/** A budget with what is used of it in the current window. */
export const GrantBudget = z
  .object({
    ...limits,
    window,
    used: z.object({ requests: count, bytes: count, llm_tokens: count }),
    window_ends_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'VaultGrantBudget' })

/** Amounts of what a budget limits. */
export type Amounts<Amount = number> = Readonly<Record<'requests' | 'bytes' | 'llmTokens', Amount>>

/** A budget as it is stored. Null: not limited. */
export type Budget = Amounts<number | null> & { readonly window: BudgetWindow }

/** True if it limits nothing. */
export const isEmpty = ({ requests, bytes, llmTokens }: Budget) =>
  requests === null && bytes === null && llmTokens === null

/** The name of each amount in the API. */
export const BUDGETED = {
  requests: 'requests',
  bytes: 'bytes',
  llmTokens: 'llm_tokens',
} as const satisfies Amounts<string>
export type Budgeted = (typeof BUDGETED)[keyof typeof BUDGETED]

/** The limits in the names of the API. */
export function wireBudget({ window, ...limits }: Budget): Readonly<Record<string, unknown>> {
  const named = Object.entries(BUDGETED).flatMap(([name, wire]) => {
    const limit = limits[name as keyof Amounts]
    return limit === null ? [] : [[wire, limit]]
  })
  return { ...Object.fromEntries(named), window }
}

/** Why a call is refused, as members of the problem. */
export const RefusedBudget = z.object({
  grant_id: z.uuid(),
  budget: z.enum(['requests', 'bytes', 'llm_tokens']),
  limit: z.int(),
  left: z.int(),
  window,
  window_ends_at: z.iso.datetime().nullable(),
})
export type BudgetRefusal = RecordOf<typeof RefusedBudget.shape>

const EPOCH = new Date(0)

/** The window of a time. */
export function windowAt(
  window: BudgetWindow,
  time: Date,
): { readonly began: Date; readonly endsAt: Date | null } {
  const [year, month, day, hour] = [
    time.getUTCFullYear(),
    time.getUTCMonth(),
    time.getUTCDate(),
    time.getUTCHours(),
  ]
  const between = (began: number, endsAt: number) => ({
    began: new Date(began),
    endsAt: new Date(endsAt),
  })
  switch (window) {
    case 'hour':
      return between(Date.UTC(year, month, day, hour), Date.UTC(year, month, day, hour + 1))
    case 'day':
      return between(Date.UTC(year, month, day), Date.UTC(year, month, day + 1))
    case 'month':
      return between(Date.UTC(year, month), Date.UTC(year, month + 1))
    case 'total':
      return { began: EPOCH, endsAt: null }
  }
}

/** What is used of a budget in the current window. */
export type Used = Amounts & { readonly began: Date | null }

/** A budget as the API shows it. */
export function budgetNow({ window, ...limits }: Budget, used: Used, now: Date) {
  const { began, endsAt } = windowAt(window, now)
  const isOver = used.began === null || used.began < began
  const usedOf = (name: keyof Amounts) => (limits[name] === null ? null : isOver ? 0 : used[name])
  return {
    ...limits,
    window,
    used: {
      requests: usedOf('requests'),
      bytes: usedOf('bytes'),
      llmTokens: usedOf('llmTokens'),
    },
    windowEndsAt: endsAt,
  }
}

/** What is left of a budget in the current window. Null: not limited. */
export function budgetLeft(budget: Budget, used: Used, now: Date) {
  const { used: counted, windowEndsAt } = budgetNow(budget, used, now)
  const leftOf = (name: keyof Amounts) => {
    const limit = budget[name]
    return limit === null ? null : Math.max(0, limit - (counted[name] ?? 0))
  }
  return {
    requests: leftOf('requests'),
    bytes: leftOf('bytes'),
    llmTokens: leftOf('llmTokens'),
    windowEndsAt,
  }
}

/** The first amount of which too little is left for a call with a body of this size. */
export function lackOf(
  id: string,
  budget: Budget,
  used: Used,
  bodyBytes: number,
  now: Date,
): BudgetRefusal | undefined {
  const { window } = budget
  const { windowEndsAt, ...amounts } = budgetLeft(budget, used, now)
  for (const name of Object.keys(BUDGETED) as (keyof Amounts)[]) {
    const [limit, left] = [budget[name], amounts[name]]
    if (limit === null || left === null) continue
    const needed = name === 'bytes' ? Math.max(1, bodyBytes) : 1
    if (left < needed)
      return { grantId: id, budget: BUDGETED[name], limit, left, window, windowEndsAt }
  }
  return undefined
}
