/**
 * Messages about settlements, disputes, balances, payouts and merchant statements.
 * docs/reference/commerce.md.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Changed, Created, Found, Invalid, ListOf, Named, Unknown } from '../protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { Creation, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { TenantId } from '../../../domain/ids.js'
import type { Listed } from '../../../domain/paging.js'

export type PayoutsProtocol = {
  listSettlements: Ask<ListOf, Listed<Settlement>>
  listDisputes: Ask<ListOf, Listed<Dispute>>
  closeDispute: Ask<CloseDispute, Changed<Dispute> | Unknown | Closed | NotSandbox>
  listPayouts: Ask<ListOf, Listed<Payout>>
  getPayout: Ask<Named, Found<Payout> | Unknown>
  createPayout: Ask<CreatePayout, Created<Payout> | Invalid | IdempotencyRefused>
  listBalances: Ask<{ readonly tenantId: TenantId }, BalancesListed>
  listStatements: Ask<ListOf, Listed<Statement>>
  getStatement: Ask<Named, Found<Statement> | Unknown>
  createStatement: Ask<CreateStatement, Created<Statement> | Invalid | IdempotencyRefused>
}

export type Settlement = {
  readonly id: string
  readonly chargeId: string
  readonly rail: string
  readonly amountMinor: number
  readonly currency: string
  readonly status: 'created' | 'held' | 'released'
  readonly holdReason: 'clearing' | 'dispute' | null
  readonly createdAt: Date
  readonly updatedAt: Date
}
export type Dispute = {
  readonly id: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
  readonly reason: string
  readonly status: 'opened' | 'closed'
  readonly outcome: 'won' | 'lost' | null
  readonly createdAt: Date
  readonly updatedAt: Date
}
export type Payout = {
  readonly id: string
  readonly rail: string
  readonly amountMinor: number
  readonly currency: string
  readonly status: 'submitted' | 'paid' | 'failed'
  readonly failureCode: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}
export type Statement = {
  readonly id: string
  readonly currency: string
  readonly openingBalanceMinor: number
  readonly closingBalanceMinor: number
  readonly totals: Readonly<
    Record<string, { readonly count: number; readonly amount_minor: number }>
  >
  readonly periodStart: Date
  readonly periodEnd: Date
  readonly createdAt: Date
}
/** The merchant's money by ledger account. All accounts and `clearing` sum to zero. */
export type Balance = {
  readonly currency: string
  readonly rail: string
  readonly pendingMinor: number
  readonly heldMinor: number
  readonly availableMinor: number
  readonly inTransitMinor: number
}
export type BalancesListed = { readonly tag: 'balances'; readonly balances: readonly Balance[] }

/** For sandboxes. Other providers close their disputes themselves. */
export type CloseDispute = {
  readonly caller: Caller
  readonly id: string
  readonly outcome: 'won' | 'lost'
}
export type Closed = { readonly tag: 'closed' }
export type NotSandbox = { readonly tag: 'not_sandbox' }

export type CreatePayout = Creation & {
  readonly rail: string
  readonly currency: string
  /** Null: the whole available balance. */
  readonly amountMinor: number | null
}
export type CreateStatement = Creation & { readonly currency: string }

export const payouts = address<PayoutsProtocol>('payouts', {
  idempotent: [
    'listSettlements',
    'listDisputes',
    'listPayouts',
    'getPayout',
    'listBalances',
    'listStatements',
    'getStatement',
  ],
})
