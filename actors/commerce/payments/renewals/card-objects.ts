/**
 * Disputes and refunds at the card provider. Its webhooks arrive in any order and repeatedly, so
 * each one triggers a look-up of its object, and our object is brought to the same state.
 */
import { createHash } from 'node:crypto'
import {
  type CardEventRow,
  type CardPaymentRow,
  cardPaymentOf,
  finishCardEvent,
} from '../../../../storage/commerce/card-payments.js'
import { type ChargeView, findCharge, lockCharge } from '../../../../storage/commerce/charges.js'
import { findDisputeOf } from '../../../../storage/commerce/disputes.js'
import { appendEvents, type NewEvent } from '../../../../storage/platform/outbox.js'
import {
  findRefund,
  insertRefund,
  reserveForeignRefund,
} from '../../../../storage/commerce/refunds.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { CARD_PROVIDER } from '../card/card-provider.js'
import { askProvider } from '../charge-processing.js'
import { endDispute, openDispute } from '../disputes.js'
import type { ProviderDispute, ProviderRefund, ProviderNotifications } from '../payment-provider.js'
import { applyRefund, takeRefundBack } from '../refunds.js'
import { inBackground, type RoundNeeds } from './needs.js'

/** `refunds.reason` of refunds that were made at the provider. */
const MADE_AT_PROVIDER = 'made at the card provider'

type Follow = (tx: Transaction, charge: ChargeView) => Promise<readonly NewEvent[]>
/** The payment that a webhook is about, and what its object changes. */
type Change = { readonly paymentId: string; readonly follow: Follow }

export async function followCardEvent(needs: RoundNeeds, event: CardEventRow): Promise<void> {
  const { database, providers, log } = needs
  const notifications = providers.get(CARD_PROVIDER)?.notifications
  if (notifications === undefined) throw new Error('no card provider is configured')
  const change = await look(needs, notifications, event)
  const options = inBackground(needs)
  // Crosses tenants: the provider does not name a tenant.
  const payment =
    change && (await database.system((tx) => cardPaymentOf(tx, change.paymentId), options))
  if (change !== undefined && payment !== undefined) {
    return execute(needs, event, payment, change.follow)
  }
  const { id: eventId, type } = event
  log.warn({ eventId, type }, 'card webhook for an unknown payment')
  await database.system((tx) => finishCardEvent(tx, eventId), options)
}

/** @returns undefined when the provider does not know the object. */
async function look(
  needs: RoundNeeds,
  notifications: ProviderNotifications,
  { about, objectId }: CardEventRow,
): Promise<Change | undefined> {
  if (about === 'dispute') {
    const object = await askProvider(needs.signal, (to) => notifications.dispute(objectId, to))
    return (
      object && {
        paymentId: object.paymentId,
        follow: (tx, charge) => followDispute(tx, needs, charge, object),
      }
    )
  }
  const object = await askProvider(needs.signal, (to) => notifications.refund(objectId, to))
  return (
    object && {
      paymentId: object.paymentId,
      follow: (tx, charge) => followRefund(tx, needs, charge, objectId, object),
    }
  )
}

function execute(
  needs: RoundNeeds,
  event: CardEventRow,
  { tenantId, chargeId }: CardPaymentRow,
  follow: Follow,
): Promise<void> {
  return needs.database.tenant(
    tenantId,
    async (tx) => {
      // Lock order: the charge, then its settlement.
      await lockCharge(tx, tenantId, chargeId)
      const charge = await findCharge(tx, tenantId, chargeId)
      // Paid at the provider but not stored here yet: retried when the lease ends.
      if (charge === undefined || charge.status === 'pending') {
        throw new Error('a dispute or refund precedes its payment')
      }
      if (charge.status === 'failed') throw new Error('a failed charge was refunded')
      const events = await follow(tx, charge)
      await finishCardEvent(tx, event.id)
      appendEvents(tx, events)
    },
    inBackground(needs),
  )
}

async function followDispute(
  tx: Transaction,
  needs: RoundNeeds,
  charge: ChargeView,
  object: ProviderDispute,
): Promise<readonly NewEvent[]> {
  const { tenantId, id: chargeId } = charge
  const amountMinor =
    object.currency === charge.currency ? (object.amountMinor ?? undefined) : undefined
  const opened = await openDispute(tx, needs, charge, object.reason, amountMinor)
  const events = opened?.events ?? []
  if (object.status === 'open') return events
  const dispute = opened?.row ?? (await findDisputeOf(tx, tenantId, chargeId))
  if (dispute === undefined) throw new Error('a new dispute is missing')
  const { id } = dispute
  const closed = await endDispute(tx, needs, { tenantId, id, outcome: object.status })
  return [...events, ...(closed?.events ?? [])]
}

async function followRefund(
  tx: Transaction,
  needs: RoundNeeds,
  { tenantId, id: chargeId, currency }: ChargeView,
  objectId: string,
  object: ProviderRefund,
): Promise<readonly NewEvent[]> {
  const id = object.refundId ?? uuidOf(objectId)
  const known = await findRefund(tx, tenantId, id)
  const isOfCharge = known === undefined || known.chargeId === chargeId
  if (!isOfCharge || object.currency !== currency) {
    throw new Error('a refund of the card provider does not match its charge')
  }
  const { answer } = object
  if (known?.status === 'succeeded' && answer.tag === 'refused') {
    return (await takeRefundBack(tx, needs, known, answer.code)) ?? []
  }
  // A pending refund of ours is finished by its own look-up.
  if (known !== undefined || object.refundId !== null || answer.tag !== 'done') return []
  const { amountMinor } = object
  const now = needs.clock.now()
  if (!(await reserveForeignRefund(tx, tenantId, chargeId, amountMinor, now))) {
    throw new Error('the card provider refunded more than the rest of a charge')
  }
  const refund = { id, tenantId, chargeId, amountMinor, externalReference: null }
  const reason = MADE_AT_PROVIDER
  const status = 'pending'
  await insertRefund(tx, { ...refund, status, reason, createdAt: now, dueAt: now })
  return (await applyRefund(tx, needs, refund, answer)) ?? []
}

/** The same UUIDv8 for the same provider object (RFC 9562 section 5.8). */
function uuidOf(objectId: string): string {
  const digest = createHash('sha256').update(`svc-card-refund-v1\n${objectId}`).digest()
  digest[6] = (digest[6]! & 0x0f) | 0x80
  digest[8] = (digest[8]! & 0x3f) | 0x80
  const hex = digest.toString('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join('-')
}
