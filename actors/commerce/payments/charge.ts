/**
 * The desk where rails are asked and their answers to charges written down: the same one for the
 * buyer's page, for renewals, and for the worker that takes up what a crash left open.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { type ChargeRow, remindOfCharge } from '../../../storage/commerce/charges.js'
import { roomInBooks } from '../../../storage/commerce/ledger.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction, TransactionOptions } from '../../../storage/platform/sql.js'
import { applyAnswer } from './outcome.js'
import type { Rail, Rails, TakeAnswer } from './payment-provider.js'

/** How long a worker waits for a rail; shorter than its lease. */
const RAIL_MS = 20_000

export type DeskNeeds = {
  readonly database: Pick<Database, 'tenant'>
  readonly clock: Clock
  readonly random: Random
  readonly rails: Rails
  /** Counts payments by what became of them. */
  readonly paid: (rail: string, outcome: 'succeeded' | 'failed') => void
}

type Asked = Pick<ChargeRow, 'tenantId' | 'id' | 'subscriptionId' | 'subscriptionPeriod'>

export function railDesk({ database, clock, random, rails, paid }: DeskNeeds) {
  const means = { clock, random }

  return {
    /** @throws where there is no such rail any more: what waits for it is tried again later. */
    railOf(name: string | null): Rail {
      const rail = rails.get(name ?? '')
      if (rail === undefined) throw new Error(`there is no rail ${name}`)
      return rail
    },

    /** Until when an answer is waited for. */
    limit: (ending: AbortSignal) => AbortSignal.any([ending, AbortSignal.timeout(RAIL_MS)]),

    /**
     * Whether what is taken could be booked. To be asked before the rail is: money that was taken
     * has to be booked.
     */
    canBook: (
      tx: Transaction,
      { tenantId, currency, amountMinor }: Pick<ChargeRow, 'tenantId' | 'currency' | 'amountMinor'>,
      rail: Rail,
    ) => roomInBooks(tx, tenantId, currency, rail.name, amountMinor),

    /**
     * Writes down what follows from the answer, and emits its events, unless it was written down before.
     * A pending answer sets the time at which the rail is asked again.
     */
    async record(
      charge: Asked,
      rail: Rail,
      answer: TakeAnswer,
      { requestId, ...options }: TransactionOptions & { readonly requestId?: string | undefined },
    ): Promise<void> {
      const { tenantId, id: chargeId } = charge
      if (answer.tag === 'pending') {
        const reminder = { tenantId, chargeId, dueAt: answer.askAgainAt, now: clock.now() }
        return database.tenant(tenantId, (tx) => remindOfCharge(tx, reminder), options)
      }
      const events = await database.tenant(
        tenantId,
        async (tx) => {
          const told = await applyAnswer(tx, means, charge, rail.name, answer, requestId)
          appendEvents(tx, told ?? [])
          return told
        },
        options,
      )
      if (events === undefined) return
      paid(rail.name, answer.tag === 'taken' ? 'succeeded' : 'failed')
    },
  }
}
