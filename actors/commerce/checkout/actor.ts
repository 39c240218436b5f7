/**
 * Buyer-facing operations: checkouts, the payment page and the fulfillment lookup
 * (docs/reference/commerce.md).
 */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { fulfillments } from './fulfillment.js'
import { checkouts } from './open.js'
import { payments } from './pay.js'
import {
  type CheckoutProtocol,
  checkout,
  type CardEvent,
  type CardEventReceived,
  type CardEventRefused,
  type NoCardProvider,
} from './protocol.js'
import type { CheckoutNeeds } from './needs.js'
import { receiveCardEvent } from '../../../storage/commerce/card-payments.js'
import { CARD_PROVIDER } from '../card/card-provider.js'

export const checkoutActor = defineActor<CheckoutProtocol, CheckoutNeeds>({
  address: checkout,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const opening = checkouts(needs)
    const { createCheckoutSession, createSubscriptionCheckoutSession, checkoutPaymentLink } =
      opening
    return {
      createCheckoutSession,
      createSubscriptionCheckoutSession,
      checkoutPaymentLink,
      ...payments(needs, opening),
      ...fulfillments(needs),
      ...cardEvents(needs),
    }
  },
})

const RECEIVED: CardEventReceived = { tag: 'received' }

/**
 * Receives webhooks of the card provider. A webhook is verified, stored once by its id, and
 * acknowledged. A worker of the async plane then looks up the state of the object. The order of
 * webhooks therefore does not matter, and a webhook cannot move money by what it claims.
 */
function cardEvents({ database, clock, providers, countWebhook }: CheckoutNeeds) {
  return {
    async receiveCardEvent(
      { body, signature }: CardEvent,
      { signal, log }: MessageContext,
    ): Promise<CardEventReceived | CardEventRefused | NoCardProvider> {
      const notifications = providers.get(CARD_PROVIDER)?.notifications
      if (notifications === undefined) return { tag: 'no_provider' }
      const receivedAt = clock.now()
      const event = notifications.readWebhook(body, signature, receivedAt)
      if (event.tag === 'refused') {
        countWebhook('refused')
        const { reason } = event
        log.warn({ reason }, 'card webhook refused')
        return { tag: 'event_refused', reason }
      }
      const { about } = event
      if (about === 'nothing') {
        countWebhook('ignored')
        return RECEIVED
      }
      // Crosses tenants: the provider sends the events of one account without naming a tenant.
      const isNew = await database.system(
        (tx) => receiveCardEvent(tx, { ...event, about, receivedAt }),
        { signal },
      )
      countWebhook(isNew ? 'received' : 'repeated')
      return RECEIVED
    },
  }
}
