/** The due work of single items: charges, settlements, refunds, payouts and statements. */
import { type ChargeRow, findCharge, isAbandoned } from '../../../../storage/commerce/charges.js'
import { postEntry } from '../../../../storage/commerce/ledger.js'
import { insertMerchantStatement } from '../../../../storage/commerce/merchant-statements.js'
import { finishPayout, type PayoutRow } from '../../../../storage/commerce/payouts.js'
import type { RefundRow } from '../../../../storage/commerce/refunds.js'
import { lockSettlement, type SettlementRow } from '../../../../storage/commerce/settlements.js'
import { appendEvents, type NewEvent } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { askProvider, providerNamed, recordAnswer } from '../charge-processing.js'
import { RELEASED, stepSettlement } from '../disputes.js'
import { payoutEvent, statementEvent } from '../events.js'
import type { FinalDone } from '../payment-provider.js'
import { applyRefund } from '../refunds.js'
import { inBackground, type RoundNeeds } from './needs.js'

/** Asks the provider for the outcome of a charge that has none. */
export async function concludeCharge(needs: RoundNeeds, charge: ChargeRow): Promise<void> {
  const { tenantId, id: chargeId, amountMinor, currency } = charge
  const options = inBackground(needs)
  const provider = providerNamed(needs, charge.rail)
  const abandoned = await needs.database.tenant(
    tenantId,
    (tx) => isAbandoned(tx, tenantId, chargeId, needs.clock.now()),
    options,
  )
  const order = { tenantId, chargeId, amountMinor, currency, abandoned }
  const answer = await askProvider(needs.signal, (signal) => provider.conclude(order, signal))
  await recordAnswer(needs, charge, provider, answer, options)
}

/** created -> held while the payment clears -> released. */
export async function settle(
  needs: RoundNeeds,
  { tenantId, chargeId, rail }: SettlementRow,
): Promise<void> {
  const { database, clock, providers } = needs
  const clearedAt = new Date(clock.now().getTime() + (providers.get(rail)?.clearingMs ?? 0))
  await database.tenant(
    tenantId,
    async (tx) => {
      const now = await lockSettlement(tx, tenantId, chargeId)
      if (now === undefined || now.holdReason === 'dispute') return
      const clearing = { to: 'held', holdReason: 'clearing', dueAt: clearedAt } as const
      const moved =
        now.status === 'created'
          ? await stepSettlement(tx, needs, now, clearing)
          : await stepSettlement(tx, needs, now, RELEASED)
      appendEvents(tx, moved?.events ?? [])
    },
    inBackground(needs),
  )
}

/** Asks the provider for a refund that it has not answered. */
export async function giveBack(needs: RoundNeeds, refund: RefundRow): Promise<void> {
  const { database } = needs
  const { tenantId, id: refundId, chargeId, amountMinor } = refund
  const options = inBackground(needs)
  const charge = await database.tenant(
    tenantId,
    (tx) => findCharge(tx, tenantId, chargeId),
    options,
  )
  if (charge === undefined) throw new Error('a refund has no charge')
  const order = { tenantId, refundId, chargeId, amountMinor, currency: charge.currency }
  const provider = providerNamed(needs, charge.rail)
  const answer = await askProvider(needs.signal, (signal) => provider.refund(order, signal))
  if (answer.tag === 'pending') return
  await database.tenant(
    tenantId,
    async (tx) => appendEvents(tx, (await applyRefund(tx, needs, refund, answer)) ?? []),
    options,
  )
}

/** Sends a payout. */
export async function payOut(needs: RoundNeeds, payout: PayoutRow): Promise<void> {
  const { tenantId, id: payoutId, amountMinor, currency } = payout
  const order = { tenantId, payoutId, amountMinor, currency }
  const provider = providerNamed(needs, payout.rail)
  const answer = await askProvider(needs.signal, (signal) => provider.payOut(order, signal))
  if (answer.tag === 'pending') return
  await needs.database.tenant(
    tenantId,
    async (tx) => appendEvents(tx, await applyPayout(tx, needs, payout, answer)),
    inBackground(needs),
  )
}

/** @returns the events to emit: none when the payout has ended before. */
async function applyPayout(
  tx: Transaction,
  needs: RoundNeeds,
  { tenantId, id, rail, currency, amountMinor }: PayoutRow,
  answer: FinalDone,
): Promise<readonly NewEvent[]> {
  const { clock, random } = needs
  const now = clock.now()
  const code = answer.tag === 'refused' ? answer.code : null
  const row = await finishPayout(tx, tenantId, id, code, now)
  if (row === undefined) return []
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: code === null ? 'payout.paid' : 'payout.failed',
    subjectId: id,
    createdAt: now,
    lines: [
      { account: 'in_transit', rail, amountMinor },
      { account: code === null ? 'clearing' : 'available', rail, amountMinor: -amountMinor },
    ],
  })
  const type = code === null ? 'commerce.payout.paid' : 'commerce.payout.failed'
  return [payoutEvent(type, row, needs)]
}

/** Issues the statement of a ledger book. */
export async function closeBook(
  needs: RoundNeeds,
  { tenantId, currency }: { readonly tenantId: string; readonly currency: string },
): Promise<void> {
  const { database, clock, random } = needs
  await database.tenant(
    tenantId,
    async (tx) => {
      const row = await insertMerchantStatement(tx, tenantId, currency, random.uuid(), clock.now())
      if (row === undefined) return
      appendEvents(tx, [statementEvent('commerce.statement.created', row, needs)])
    },
    inBackground(needs),
  )
}
