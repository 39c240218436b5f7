/** Applies a provider's answer to a payout. */
import { postEntry } from '../../../storage/commerce/ledger.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import { finishPayout, type PayoutRow } from '../../../storage/commerce/payouts.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { ChargeDeps } from './events.js'
import { payoutEvent } from './events.js'
import type { FinalDone } from './payment-provider.js'

/** @returns the events to emit. Undefined when the payout has ended before. */
export async function applyPayout(
  tx: Transaction,
  deps: ChargeDeps,
  { tenantId, id, rail, currency, amountMinor }: PayoutRow,
  answer: FinalDone,
): Promise<readonly NewEvent[] | undefined> {
  const { clock, random } = deps
  const now = clock.now()
  const code = answer.tag === 'refused' ? answer.code : null
  const row = await finishPayout(tx, tenantId, id, code, now)
  if (row === undefined) return undefined
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
  return [payoutEvent(type, row, deps)]
}
