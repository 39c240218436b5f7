/**
 * Merchant operations on money: balances, settlements, disputes, payouts and statements
 * (docs/reference/commerce.md).
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { findCharge } from '../../../storage/commerce/charges.js'
import { findDispute, listDisputes, type DisputeRow } from '../../../storage/commerce/disputes.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import {
  listBalances,
  lockAvailable,
  postEntry,
  type LedgerBalance,
} from '../../../storage/commerce/ledger.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import {
  findPayout,
  insertPayout,
  listPayouts,
  type PayoutRow,
} from '../../../storage/commerce/payouts.js'
import { listSettlements, type SettlementRow } from '../../../storage/commerce/settlements.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import {
  findStatement,
  insertMerchantStatement,
  listStatements,
  type MerchantStatementRow,
} from '../../../storage/commerce/merchant-statements.js'
import { closeDispute } from '../payments/disputes.js'
import { payoutEvent, statementEvent } from '../payments/events.js'
import type {
  Created,
  Found,
  Invalid,
  Listed,
  ListOf,
  Named,
  Unknown,
} from '../payments/protocol.js'
import type { PaymentProviders } from '../payments/payment-provider.js'
import { listedOf } from '../payments/records.js'
import { SANDBOX_PROVIDER } from '../payments/sandbox-provider.js'
import { isUuid } from '../../domain/ids.js'
import {
  type CreatePayout,
  type Payout,
  type PayoutsProtocol,
  payouts,
  type Balance,
  type Dispute,
  type Settlement,
  type Statement,
} from './protocol.js'

export type PayoutsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly providers: PaymentProviders
}

export const payoutsActor = defineActor<PayoutsProtocol, PayoutsNeeds>({
  address: payouts,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { closeDispute: ({ id }) => id },
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, providers }) => {
    const deps = { clock, random }

    type Rows<Row> = (
      tx: Transaction,
      tenantId: string,
      limit: number,
      after: ListOf['after'],
    ) => Promise<Row[]>
    const list =
      <Row extends { createdAt: Date; id: string }, Shown>(
        rowsOf: Rows<Row>,
        show: (row: Row) => Shown,
      ) =>
      (
        { tenantId, limit, after }: ListOf,
        { signal }: { readonly signal: AbortSignal },
      ): Promise<Listed<Shown>> =>
        database.tenant(
          tenantId,
          async (tx) => listedOf(await rowsOf(tx, tenantId, limit + 1, after), limit, show),
          { signal },
        )

    const read =
      <Row, Shown>(
        find: (tx: Transaction, tenantId: string, id: string) => Promise<Row | undefined>,
        show: (row: Row) => Shown,
      ) =>
      async (
        { tenantId, id }: Named,
        { signal }: { readonly signal: AbortSignal },
      ): Promise<Found<Shown> | Unknown> => {
        if (!isUuid(id)) return { tag: 'unknown' }
        const row = await database.tenant(tenantId, (tx) => find(tx, tenantId, id), { signal })
        return row === undefined ? { tag: 'unknown' } : { tag: 'found', row: show(row) }
      }

    /** The lock of the book prevents two payouts from sending the same money. */
    async function submit(
      tx: Transaction,
      { caller, rail, currency, amountMinor }: CreatePayout,
      requestId: string | undefined,
    ): Promise<Created<Payout> | Invalid> {
      const { tenantId } = caller.principal
      const available = await lockAvailable(tx, tenantId, currency, rail)
      const amount = amountMinor ?? available
      if (amount <= 0 || amount > available) {
        return {
          tag: 'invalid',
          pointer: '/amount_minor',
          detail: 'More than the available balance.',
        }
      }
      const now = clock.now()
      const id = random.uuid()
      const row = await insertPayout(tx, {
        id,
        tenantId,
        rail,
        amountMinor: amount,
        currency,
        createdAt: now,
        dueAt: now,
      })
      await postEntry(tx, {
        tenantId,
        id: random.uuid(),
        currency,
        kind: 'payout',
        subjectId: id,
        createdAt: now,
        lines: [
          { account: 'available', rail, amountMinor: amount },
          { account: 'in_transit', rail, amountMinor: -amount },
        ],
      })
      const transition = payoutEvent('commerce.payout.submitted', row, deps, requestId, caller)
      appendEvents(tx, [transition])
      return { tag: 'created', row: payoutOf(row), replayed: false }
    }

    return {
      listSettlements: list(listSettlements, settlementOf),
      listDisputes: list(listDisputes, disputeOf),
      listPayouts: list(listPayouts, payoutOf),
      getPayout: read(findPayout, payoutOf),
      listStatements: list(listStatements, statementOf),
      getStatement: read(findStatement, statementOf),

      async listBalances({ tenantId }, { signal }) {
        const rows = await database.tenant(tenantId, (tx) => listBalances(tx, tenantId), { signal })
        return { tag: 'balances', balances: balancesOf(rows) }
      },

      async closeDispute(message, { signal, requestId }) {
        const { tenantId } = message.caller.principal
        if (!isUuid(message.id)) return { tag: 'unknown' }
        return database.tenant(
          tenantId,
          async (tx) => {
            const found = await findDispute(tx, tenantId, message.id)
            if (found === undefined) return { tag: 'unknown' }
            const charge = await findCharge(tx, tenantId, found.chargeId)
            if (charge?.rail !== SANDBOX_PROVIDER) return { tag: 'not_sandbox' }
            const transition = await closeDispute(tx, deps, { ...message, tenantId }, requestId)
            if (transition?.changed !== true) return { tag: 'closed' }
            appendEvents(tx, transition.events)
            return { tag: 'changed', row: disputeOf(transition.row) }
          },
          { signal },
        )
      },

      async createPayout(message, { signal, requestId }) {
        if (!providers.has(message.rail)) {
          return {
            tag: 'invalid',
            pointer: '/rail',
            detail: 'The payment provider does not exist.',
          }
        }
        return database.tenant(
          message.caller.principal.tenantId,
          (tx) =>
            idempotently(
              tx,
              message.idempotency,
              () => submit(tx, message, requestId),
              (outcome) => (outcome.tag === 'created' ? outcome : undefined),
            ),
          { signal },
        )
      },

      async createStatement({ caller, currency, idempotency }, { signal, requestId }) {
        const { tenantId } = caller.principal
        return database.tenant(
          tenantId,
          (tx) =>
            idempotently(
              tx,
              idempotency,
              async () => {
                const now = clock.now()
                const row = await insertMerchantStatement(
                  tx,
                  tenantId,
                  currency,
                  random.uuid(),
                  now,
                )
                if (row === undefined) return NOTHING_BOOKED
                appendEvents(tx, [
                  statementEvent('commerce.statement.created', row, deps, requestId, caller),
                ])
                return { tag: 'created' as const, row: statementOf(row), replayed: false }
              },
              (outcome) => (outcome.tag === 'created' ? outcome : undefined),
            ),
          { signal },
        )
      },
    }
  },
})

const NOTHING_BOOKED: Invalid = {
  tag: 'invalid',
  pointer: '/currency',
  detail: 'No ledger entry in this currency since the last statement.',
}

function settlementOf({ tenantId: _tenant, ...settlement }: SettlementRow): Settlement {
  return settlement
}

function disputeOf({ tenantId: _tenant, ...dispute }: DisputeRow): Dispute {
  return dispute
}

function payoutOf({ tenantId: _tenant, ...payout }: PayoutRow): Payout {
  return payout
}

function statementOf(row: MerchantStatementRow): Statement {
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
function balancesOf(rows: readonly LedgerBalance[]): readonly Balance[] {
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
