/**
 * The books of the sandbox provider, which stand for the data of a card processor. The first answer
 * to a request id is final.
 */
import { execute, firstValue, type Transaction } from '../platform/sql.js'

export type SandboxQuestion = {
  readonly tenantId: string
  /** Id of the charge, refund or payout. */
  readonly id: string
  readonly kind: 'charge' | 'refund' | 'payout'
  readonly amountMinor: number
  readonly currency: string
  /** The answer, unless one is stored already. */
  readonly outcome: string
  readonly now: Date
}

/** @returns the answer that was stored first. */
export async function answerOnce(tx: Transaction, question: SandboxQuestion): Promise<string> {
  const { tenantId, id, kind, amountMinor, currency, outcome, now } = question
  await tx.query({
    name: 'sandbox.answer',
    text: `insert into sandbox_payments (tenant_id, id, kind, amount_minor, currency, outcome,
             created_at)
           values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
    values: [tenantId, id, kind, amountMinor, currency, outcome, now],
  })
  const { rows } = await tx.query<{ outcome: string }>({
    name: 'sandbox.answered',
    text: 'select outcome from sandbox_payments where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })
  return rows[0]!.outcome
}

type SandboxConsent = 'succeed' | 'decline'

export const insertMandate = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  execute(tx, {
    name: 'sandbox.mandate_insert',
    text: `insert into sandbox_mandates (tenant_id, id, outcome, created_at)
           values ($1, $2, 'succeed', $3) on conflict do nothing`,
    values: [tenantId, id, now],
  })

export const mandateOutcome = (tx: Transaction, tenantId: string, id: string) =>
  firstValue<SandboxConsent>(tx, {
    name: 'sandbox.mandate',
    text: 'select outcome from sandbox_mandates where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })

/** Sets the outcome of future payments under a mandate. */
export const changeMandate = (
  tx: Transaction,
  tenantId: string,
  id: string,
  outcome: SandboxConsent,
) =>
  execute(tx, {
    name: 'sandbox.mandate_change',
    text: 'update sandbox_mandates set outcome = $3 where tenant_id = $1 and id = $2',
    values: [tenantId, id, outcome],
  })
