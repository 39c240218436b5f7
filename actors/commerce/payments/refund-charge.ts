/** Handles a merchant's refund request (docs/reference/commerce.md, Refunds). */
import type { Handler, MessageContext } from '../../../runtime/kernel/actor.js'
import { findCharge } from '../../../storage/commerce/charges.js'
import { createOnce } from '../../platform/creation.js'
import { kept } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { postEntry } from '../../../storage/commerce/ledger.js'
import {
  findRefund,
  insertRefund,
  recordRefunded,
  type RefundRow,
  reserveRefund,
} from '../../../storage/commerce/refunds.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import type { CommerceNeeds } from './needs.js'
import { paymentEvent, refundFields } from './events.js'
import type { CommerceProtocol, RefundCharge, RefundOutcome } from './protocol.js'
import { chargeOf, refundOf } from './records.js'
import { applyRefund } from './refunds.js'

/** After this a worker asks the provider again. Longer than any request lasts. */
const ASK_AGAIN_MS = 120_000
const UNKNOWN = { tag: 'unknown' } as const
/**
 * The merchant receives payments by this provider directly, so only the merchant can refund them.
 */
const DIRECT_PROVIDER = 'x402'
const TOO_MUCH = {
  tag: 'invalid',
  pointer: '/amount_minor',
  detail: 'More than the refundable rest of the charge.',
} as const
const NO_REFERENCE = {
  tag: 'invalid',
  pointer: '/external_reference',
  detail: 'This payment provider cannot refund. Name the payment by which you sent the money back.',
} as const

type Reserved = { readonly tag: 'reserved'; readonly refundId: string; readonly replayed?: boolean }

export const refundCharge: Handler<CommerceNeeds, CommerceProtocol, 'refundCharge'> = async (
  needs,
  message,
  context,
) => {
  const { database } = needs
  const { caller, chargeId } = message
  const { tenantId } = caller.principal
  if (!isUuid(chargeId)) return UNKNOWN
  const begun = await createOnce(
    needs,
    message,
    context,
    (tx) => reserve(tx, needs, message, context),
    kept('reserved'),
  )
  if (begun.tag !== 'reserved') return begun
  const { refundId } = begun
  const refund = await database.tenant(tenantId, (tx) => findRefund(tx, tenantId, refundId))
  if (refund?.status === 'pending') await execute(needs, message, refund, context)
  const [charge, ended] = await database.tenant(tenantId, async (tx) => [
    await findCharge(tx, tenantId, chargeId),
    await findRefund(tx, tenantId, refundId),
  ])
  if (charge === undefined || ended === undefined) return UNKNOWN
  if (ended.status === 'failed') return { tag: 'refused', code: ended.failureCode ?? 'refused' }
  return {
    tag: 'refunded',
    charge: chargeOf(charge),
    refund: refundOf(ended),
    replayed: begun.replayed === true,
  }
}

async function reserve(
  tx: Transaction,
  needs: CommerceNeeds,
  message: RefundCharge,
  context: MessageContext,
): Promise<Reserved | RefundOutcome> {
  const { clock, random, providers } = needs
  const { caller, chargeId, amountMinor, reason, externalReference } = message
  const { tenantId } = caller.principal
  const charge = await findCharge(tx, tenantId, chargeId)
  if (charge === undefined) return UNKNOWN
  if (charge.disputeStatus === 'opened') return { tag: 'disputed' }
  if (charge.status === 'pending' || charge.status === 'failed') return { tag: 'not_paid' }
  if (charge.rail === DIRECT_PROVIDER) return recordDirect(tx, needs, message, context)
  if (!providers.has(charge.rail ?? '')) return { tag: 'no_refunds' }
  const now = clock.now()
  const reserved = await reserveRefund(tx, charge, amountMinor, now)
  if (reserved === 'funds') return { tag: 'insufficient_funds' }
  if (reserved === 'left') return TOO_MUCH
  const refundId = random.uuid()
  await insertRefund(tx, {
    id: refundId,
    tenantId,
    chargeId,
    amountMinor: reserved,
    reason,
    status: 'pending',
    externalReference,
    createdAt: now,
    dueAt: new Date(now.getTime() + ASK_AGAIN_MS),
  })
  return { tag: 'reserved', refundId }
}

/** Records a refund that the merchant sent. The ledger books it in and out, like the charge. */
async function recordDirect(
  tx: Transaction,
  needs: CommerceNeeds,
  { caller, chargeId, amountMinor: asked, reason, externalReference }: RefundCharge,
  { requestId }: MessageContext,
): Promise<Reserved | RefundOutcome> {
  const { clock, random } = needs
  const { tenantId } = caller.principal
  if (externalReference === null) return NO_REFERENCE
  const now = clock.now()
  const amountMinor = await recordRefunded(tx, tenantId, chargeId, asked, now)
  if (amountMinor === undefined) return TOO_MUCH
  const id = random.uuid()
  const refund = { id, tenantId, chargeId, amountMinor, reason, externalReference }
  await insertRefund(tx, { ...refund, status: 'recorded', createdAt: now, dueAt: null })
  const charge = await findCharge(tx, tenantId, chargeId)
  if (charge === undefined || charge.rail === null) throw new Error('a refund has no paid charge')
  const { rail, currency } = charge
  const entry = { tenantId, currency, subjectId: id, createdAt: now }
  for (const [kind, minor] of [
    ['refund', amountMinor],
    ['refund.direct', -amountMinor],
  ] as const) {
    await postEntry(tx, {
      ...entry,
      id: random.uuid(),
      kind,
      lines: [
        { account: 'pending', rail, amountMinor: minor },
        { account: 'clearing', rail, amountMinor: -minor },
      ],
    })
  }
  const deps = { clock, random, requestId }
  appendEvents(tx, [
    paymentEvent(deps, 'commerce.payment.refunded', charge, refundFields(refund), caller),
  ])
  return { tag: 'reserved', refundId: id }
}

/** Calls the provider and stores its answer. Stores nothing when the provider is unavailable. */
async function execute(
  needs: CommerceNeeds,
  { caller }: RefundCharge,
  refund: RefundRow,
  { log, requestId }: MessageContext,
): Promise<void> {
  const { database, providers } = needs
  const { tenantId, id: refundId, chargeId, amountMinor } = refund
  const charge = await database.tenant(tenantId, (tx) => findCharge(tx, tenantId, chargeId))
  const provider = providers.get(charge?.rail ?? '')
  if (charge === undefined || provider === undefined) return
  const order = { tenantId, refundId, chargeId, amountMinor, currency: charge.currency }
  const answer = await provider
    .refund(order, AbortSignal.timeout(ASK_AGAIN_MS / 2))
    .catch((error: unknown) => {
      log.warn({ err: error, refundId }, 'payment provider unavailable')
      return undefined
    })
  if (answer === undefined || answer.tag === 'pending') return
  await database.tenant(tenantId, async (tx) => {
    const events = await applyRefund(tx, { ...needs, requestId }, refund, answer, caller)
    appendEvents(tx, events ?? [])
  })
}
