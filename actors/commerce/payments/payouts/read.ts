/** Lists and reads the money of a merchant. */
import type { Handler } from '../../../../runtime/kernel/actor.js'
import { disputeRows, type DisputeRow } from '../../../../storage/commerce/disputes.js'
import {
  balanceRows,
  type LedgerAccount,
  type LedgerBalance,
} from '../../../../storage/commerce/ledger.js'
import {
  type MerchantStatementRow,
  statementRows,
} from '../../../../storage/commerce/merchant-statements.js'
import { payoutRows, type PayoutRow } from '../../../../storage/commerce/payouts.js'
import { settlementRows, type SettlementRow } from '../../../../storage/commerce/settlements.js'
import type { CommerceNeeds } from '../needs.js'
import { lists, reads } from '../reading.js'
import type {
  Balance,
  Dispute,
  Payout,
  PayoutsProtocol,
  Settlement,
  Statement,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

export const listSettlements = lists(settlementRows, settlementOf)
export const listDisputes = lists(disputeRows, disputeOf)
export const listPayouts = lists(payoutRows, payoutOf)
export const getPayout = reads(payoutRows, payoutOf)
export const listStatements = lists(statementRows, statementOf)
export const getStatement = reads(statementRows, statementOf)

export const listBalances: Handler<CommerceNeeds, PayoutsProtocol, 'listBalances'> = async (
  { database },
  { tenantId },
  context,
) => {
  const rows = await inTenant(database, tenantId, context, (tx) => balanceRows(tx, tenantId))
  return { tag: 'balances', balances: balancesOf(rows) }
}

function settlementOf({ tenantId: _tenant, ...settlement }: SettlementRow): Settlement {
  return settlement
}

/** The dispute as the merchant sees it. */
export function disputeOf({ tenantId: _tenant, ...dispute }: DisputeRow): Dispute {
  return dispute
}

/** The payout as the merchant sees it. */
export function payoutOf({ tenantId: _tenant, ...payout }: PayoutRow): Payout {
  return payout
}

/** The statement as the merchant sees it. */
export function statementOf(row: MerchantStatementRow): Statement {
  const { tenantId: _tenant, firstSequence: _first, lastSequence: _last, ...statement } = row
  return statement
}

const NOTHING = { pendingMinor: 0, heldMinor: 0, availableMinor: 0, inTransitMinor: 0 }
const MEMBER_OF: { readonly [A in LedgerAccount]?: keyof typeof NOTHING } = {
  pending: 'pendingMinor',
  held: 'heldMinor',
  available: 'availableMinor',
  in_transit: 'inTransitMinor',
}

/** Money owed to the merchant is a credit (negative) in the ledger, so the sign is inverted. */
function balancesOf(rows: readonly LedgerBalance[]): readonly Balance[] {
  const balances = new Map<string, Balance>()
  for (const { currency, rail, account, balanceMinor } of rows) {
    const key = `${currency} ${rail}`
    const balance = balances.get(key) ?? { currency, rail, ...NOTHING }
    const member = MEMBER_OF[account]
    // 0 - x avoids -0.
    balances.set(key, member === undefined ? balance : { ...balance, [member]: 0 - balanceMinor })
  }
  return [...balances.values()]
}
