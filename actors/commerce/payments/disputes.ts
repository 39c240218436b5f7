/** Opens and closes disputes, and moves settlements and the ledger with them. */
import type { ChargeRow } from '../../../storage/commerce/charges.js'
import { findCharge, lockCharge, reverseCharge } from '../../../storage/commerce/charges.js'
import {
  closeDisputeRow,
  type DisputeRow,
  disputeRows,
  insertDispute,
} from '../../../storage/commerce/disputes.js'
import { type LedgerAccount, postEntry } from '../../../storage/commerce/ledger.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import {
  lockSettlement,
  moveSettlement,
  reduceSettlement,
  type SettlementRow,
  type SettlementStatus,
} from '../../../storage/commerce/settlements.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { Transition } from './charges.js'
import type { ChargeDeps } from './events.js'
import { disputeEvent, settlementEvent } from './events.js'

/** The ledger account of a settlement by its status. */
export const ACCOUNT_OF: Readonly<Record<SettlementStatus, LedgerAccount>> = {
  created: 'pending',
  held: 'held',
  released: 'available',
}

/**
 * Opens a dispute over the rest of a paid charge and holds that amount.
 * @param amountMinor the disputed amount when it is less than the rest.
 * @returns undefined when the charge was disputed before.
 */
export async function openDispute(
  tx: Transaction,
  deps: ChargeDeps,
  charge: ChargeRow,
  reason: string,
  amountMinor?: number,
): Promise<Transition<DisputeRow> | undefined> {
  const { clock, random } = deps
  const { tenantId, id: chargeId, currency } = charge
  const settlement = await lockSettlement(tx, tenantId, chargeId)
  const rest = settlement?.amountMinor ?? charge.amountMinor
  const row = await insertDispute(tx, {
    id: random.uuid(),
    tenantId,
    chargeId,
    amountMinor: Math.min(rest, amountMinor ?? rest),
    currency,
    reason,
    createdAt: clock.now(),
  })
  if (row === undefined) return undefined
  const events = [disputeEvent('commerce.dispute.opened', row, deps)]
  const held =
    settlement === undefined
      ? undefined
      : await stepSettlement(tx, deps, settlement, {
          to: 'held',
          holdReason: 'dispute',
          dueAt: null,
        })
  return { row, events: held === undefined ? events : [...events, ...held.events] }
}

/**
 * Closes a dispute. Won: the held amount is released. Lost: the provider takes it back.
 * @returns undefined when there is no such dispute. `changed` is false when it was closed before.
 */
export async function endDispute(
  tx: Transaction,
  deps: ChargeDeps,
  ending: {
    readonly tenantId: string
    readonly id: string
    readonly outcome: 'won' | 'lost'
    /** Undefined when the provider closes it. */
    readonly caller?: Caller | undefined
  },
): Promise<(Transition<DisputeRow> & { readonly changed: boolean }) | undefined> {
  const { tenantId, id, outcome, caller } = ending
  const found = await disputeRows.find(tx, tenantId, id)
  if (found === undefined) return undefined
  // Lock order: the charge, then its settlement.
  await lockCharge(tx, tenantId, found.chargeId)
  const settlement = await lockSettlement(tx, tenantId, found.chargeId)
  const now = deps.clock.now()
  const row = await closeDisputeRow(tx, tenantId, id, outcome, now)
  if (row === undefined) return { row: found, events: [], changed: false }
  const events: NewEvent[] = [disputeEvent('commerce.dispute.closed', row, deps, caller)]
  if (settlement !== undefined) {
    const taken = outcome === 'lost' ? await takeBack(tx, deps, row, settlement) : 0
    const rest = { ...settlement, amountMinor: settlement.amountMinor - taken }
    const released = await stepSettlement(tx, deps, rest, RELEASED)
    events.push(...(released?.events ?? []))
  }
  return { row, events, changed: true }
}

/**
 * Takes back the disputed amount, limited to the rest of the charge without pending refunds.
 * @returns the amount taken.
 */
async function takeBack(
  tx: Transaction,
  { clock, random }: ChargeDeps,
  { id: subjectId, chargeId, amountMinor: disputedMinor }: DisputeRow,
  { tenantId, id, rail, currency, status }: SettlementRow,
): Promise<number> {
  const charge = await findCharge(tx, tenantId, chargeId)
  if (charge === undefined) throw new Error('a dispute has no charge')
  const { refundedAmountMinor, refundingAmountMinor } = charge
  const leftMinor = charge.amountMinor - refundedAmountMinor - refundingAmountMinor
  const amountMinor = Math.min(leftMinor, disputedMinor)
  const now = clock.now()
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: 'dispute.lost',
    subjectId,
    createdAt: now,
    lines: [
      { account: ACCOUNT_OF[status], rail, amountMinor },
      { account: 'clearing', rail, amountMinor: -amountMinor },
    ],
  })
  await reduceSettlement(tx, tenantId, id, amountMinor, now)
  await reverseCharge(tx, tenantId, chargeId, amountMinor, now)
  return amountMinor
}

type SettlementStep = {
  readonly to: 'held' | 'released'
  readonly holdReason: 'clearing' | 'dispute' | null
  readonly dueAt: Date | null
}
export const RELEASED = { to: 'released', holdReason: null, dueAt: null } as const

/**
 * Moves a settlement and its money: emits `commerce.settlement.held` or `.released`.
 * @returns undefined when the settlement has another status by now.
 */
export async function stepSettlement(
  tx: Transaction,
  deps: ChargeDeps,
  settlement: SettlementRow,
  { to, holdReason, dueAt }: SettlementStep,
): Promise<Transition<SettlementRow> | undefined> {
  const { clock, random } = deps
  const { tenantId, id, status: from, rail, currency, amountMinor } = settlement
  const now = clock.now()
  const row = await moveSettlement(tx, { tenantId, id, from, to, holdReason, dueAt, now })
  if (row === undefined) return undefined
  if (from !== to) {
    await postEntry(tx, {
      tenantId,
      id: random.uuid(),
      currency,
      kind: `settlement.${to}`,
      subjectId: id,
      createdAt: now,
      lines: [
        { account: ACCOUNT_OF[from], rail, amountMinor },
        { account: ACCOUNT_OF[to], rail, amountMinor: -amountMinor },
      ],
    })
  }
  const type = to === 'held' ? 'commerce.settlement.held' : 'commerce.settlement.released'
  return { row, events: [settlementEvent(type, row, deps)] }
}
