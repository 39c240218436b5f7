/**
 * The sandbox payment provider: no money, everything else. It keeps books, as a card processor does, and answers as the
 * buyer chooses on the page (docs/reference/commerce.md, Sandbox). It is never offered to production tenants, and
 * refuses them itself.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  answerOnce,
  insertMandate,
  mandateOutcome,
  type SandboxQuestion,
} from '../../../storage/commerce/sandbox-provider.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import type {
  ChargeOrder,
  DoneAnswer,
  FinalAnswer,
  OrderName,
  PaymentProvider,
} from './payment-provider.js'
import { inTenant } from '../../platform/in-tenant.js'

export const SANDBOX_PROVIDER = 'sandbox'

/**
 * Refunds and payouts whose amount ends in these two digits are refused, so that callers can test
 * refusals.
 */
const REFUSED_ENDING = 13
const DECLINED = 'card_declined'
const NEVER_ASKED = 'abandoned'
/** Refusal for a tenant that was a sandbox before: its old subscriptions and balances remain. */
const SANDBOX_ONLY = 'sandbox_only'

export function sandboxProvider(needs: {
  readonly database: Database
  readonly clock: Clock
}): PaymentProvider {
  const { database, clock } = needs

  function ask(
    tx: Transaction,
    { tenantId, amountMinor, currency }: Omit<OrderName, 'chargeId'>,
    question: Pick<SandboxQuestion, 'id' | 'kind' | 'outcome'>,
  ): Promise<string> {
    return answerOnce(tx, { tenantId, amountMinor, currency, now: clock.now(), ...question })
  }

  async function isSandbox(tx: Transaction, tenantId: string): Promise<boolean> {
    return (await findTenant(tx, tenantId))?.environment === 'sandbox'
  }

  async function outcomeOf(tx: Transaction, { tenantId, by }: ChargeOrder): Promise<string> {
    if (!(await isSandbox(tx, tenantId))) return SANDBOX_ONLY
    if (by.tag === 'buyer') return by.instruction ?? 'succeed'
    return (await mandateOutcome(tx, tenantId, by.mandate)) ?? 'decline'
  }

  return {
    name: SANDBOX_PROVIDER,
    offers: (environment) => environment === 'sandbox',
    leadsTo: [],
    clearingMs: 0,

    take: (order, signal) =>
      inTenant(database, order.tenantId, { signal }, async (tx) => {
        const { tenantId, chargeId, by } = order
        const outcome = await outcomeOf(tx, order)
        const answered = await ask(tx, order, { id: chargeId, kind: 'charge', outcome })
        if (answered !== 'succeed' && answered !== 'dispute') return answerOf(answered, chargeId)
        if (by.tag === 'buyer' && by.again) {
          await insertMandate(tx, tenantId, chargeId, clock.now())
        }
        const mandate = by.tag === 'mandate' ? by.mandate : by.again ? chargeId : null
        return { ...answerOf(answered, chargeId), mandate }
      }),

    conclude: (order, signal) =>
      inTenant(database, order.tenantId, { signal }, async (tx) => {
        const { tenantId, chargeId } = order
        const question = { id: chargeId, kind: 'charge', outcome: NEVER_ASKED } as const
        const answered = await ask(tx, order, question)
        const kept = (await mandateOutcome(tx, tenantId, chargeId)) !== undefined
        return { ...answerOf(answered, chargeId), mandate: kept ? chargeId : null }
      }),

    refund: (order, signal) =>
      inTenant(database, order.tenantId, { signal }, async (tx): Promise<DoneAnswer> => {
        const outcome = succeeds(order.amountMinor) ? 'succeed' : 'refund_refused'
        return doneOf(await ask(tx, order, { id: order.refundId, kind: 'refund', outcome }))
      }),

    payOut: (order, signal) =>
      inTenant(database, order.tenantId, { signal }, async (tx): Promise<DoneAnswer> => {
        const sandboxOutcome = succeeds(order.amountMinor) ? 'succeed' : 'account_closed'
        const outcome = (await isSandbox(tx, order.tenantId)) ? sandboxOutcome : SANDBOX_ONLY
        return doneOf(await ask(tx, order, { id: order.payoutId, kind: 'payout', outcome }))
      }),
  }
}

function answerOf(outcome: string, chargeId: string): FinalAnswer {
  switch (outcome) {
    case 'succeed':
      return { tag: 'taken', reference: `sandbox_${chargeId}`, mandate: null, disputed: null }
    case 'dispute':
      return {
        tag: 'taken',
        reference: `sandbox_${chargeId}`,
        mandate: null,
        disputed: 'fraudulent',
      }
    case 'decline':
      return { tag: 'refused', code: DECLINED }
    default:
      return { tag: 'refused', code: outcome }
  }
}

function succeeds(amountMinor: number): boolean {
  return amountMinor % 100 !== REFUSED_ENDING
}

function doneOf(outcome: string): DoneAnswer {
  return outcome === 'succeed' ? { tag: 'done' } : { tag: 'refused', code: outcome }
}
