/** Rows as merchants see them. */
import type { DisputeRow } from '../../../storage/commerce/disputes.js'
import type { LedgerBalance } from '../../../storage/commerce/ledger.js'
import type { PayoutRow } from '../../../storage/commerce/payouts.js'
import type { SettlementRow } from '../../../storage/commerce/settlements.js'
import type { MerchantStatementRow } from '../../../storage/commerce/merchant-statements.js'
import type { Balance, Dispute, Payout, Settlement, Statement } from './protocol.js'

export function settlementOf({ tenantId: _tenant, ...settlement }: SettlementRow): Settlement {
  return settlement
}

export function disputeOf({ tenantId: _tenant, ...dispute }: DisputeRow): Dispute {
  return dispute
}

export function payoutOf({ tenantId: _tenant, ...payout }: PayoutRow): Payout {
  return payout
}

export function statementOf(row: MerchantStatementRow): Statement {
  const { id, currency, openingBalanceMinor, closingBalanceMinor, totals } = row
  const { periodStart, periodEnd, createdAt } = row
  return {
    id,
    currency,
    openingBalanceMinor,
    closingBalanceMinor,
    totals,
    periodStart,
    periodEnd,
    createdAt,
  }
}

/** Money owed to the merchant is a credit (negative) in the ledger, so the sign is inverted. */
export function balancesOf(rows: readonly LedgerBalance[]): readonly Balance[] {
  const balances = new Map<string, { -readonly [K in keyof Balance]: Balance[K] }>()
  for (const { currency, rail, account, balanceMinor } of rows) {
    const key = `${currency} ${rail}`
    const balance = balances.get(key) ?? {
      currency,
      rail,
      pendingMinor: 0,
      heldMinor: 0,
      availableMinor: 0,
      inTransitMinor: 0,
    }
    balances.set(key, balance)
    // Avoids -0.
    const owed = 0 - balanceMinor
    if (account === 'pending') balance.pendingMinor = owed
    if (account === 'held') balance.heldMinor = owed
    if (account === 'available') balance.availableMinor = owed
    if (account === 'in_transit') balance.inTransitMinor = owed
  }
  return [...balances.values()]
}
