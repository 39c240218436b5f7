/**
 * Calls payment providers and stores their answers to charges. Shared by the payment page,
 * renewals, and the worker that finishes charges after a crash.
 */
import { type Clock, limitedTo } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { type ChargeRow, remindOfCharge } from '../../../storage/commerce/charges.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, TransactionOptions } from '../../../storage/platform/sql.js'
import { applyAnswer } from './outcome.js'
import type { PaymentProvider, PaymentProviders, TakeAnswer } from './payment-provider.js'

/** Maximum time that a worker waits for a provider. Shorter than its lease. */
const PROVIDER_MS = 20_000

export type ChargeProcessingNeeds = {
  readonly database: Pick<Database, 'tenant'>
  readonly clock: Clock
  readonly random: Random
  readonly providers: PaymentProviders
  readonly countPayment: (rail: string, outcome: 'succeeded' | 'failed') => void
}

type PendingCharge = Pick<ChargeRow, 'tenantId' | 'id' | 'subscriptionId' | 'subscriptionPeriod'>

/** @throws when the provider is no longer configured. The work is then retried later. */
export function providerNamed(
  { providers }: Pick<ChargeProcessingNeeds, 'providers'>,
  name: string | null,
): PaymentProvider {
  const provider = providers.get(name ?? '')
  if (provider === undefined) throw new Error(`unknown payment provider: ${name}`)
  return provider
}

/** Asks a provider, and aborts the wait for its answer in time. */
export function askProvider<Answer>(
  ending: AbortSignal,
  work: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  return limitedTo(PROVIDER_MS, ending, work)
}

/**
 * Stores the consequences of the answer and emits its events, once. A pending answer sets the
 * time at which the provider is asked again.
 */
export async function recordAnswer(
  needs: ChargeProcessingNeeds,
  charge: PendingCharge,
  { name }: PaymentProvider,
  answer: TakeAnswer,
  { requestId, ...options }: TransactionOptions & { readonly requestId?: string | undefined },
): Promise<void> {
  const { database, clock, countPayment } = needs
  const { tenantId, id: chargeId } = charge
  if (answer.tag === 'pending') {
    const reminder = { tenantId, chargeId, dueAt: answer.askAgainAt, now: clock.now() }
    return database.tenant(tenantId, (tx) => remindOfCharge(tx, reminder), options)
  }
  const events = await database.tenant(
    tenantId,
    async (tx) => {
      const emitted = await applyAnswer(tx, { ...needs, requestId }, charge, name, answer)
      appendEvents(tx, emitted ?? [])
      return emitted
    },
    options,
  )
  if (events === undefined) return
  countPayment(name, answer.tag === 'taken' ? 'succeeded' : 'failed')
}
