/**
 * Receives webhooks of the card provider. A webhook is verified, stored once by its id, and
 * acknowledged. A worker of the async plane then looks up the state of the object. The order of
 * webhooks therefore does not matter, and a webhook cannot move money by what it claims.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { receiveCardEvent } from '../../../storage/commerce/card-payments.js'
import { CARD_RAIL } from '../card/card-provider.js'
import type { CheckoutNeeds } from './needs.js'
import type { CardEvent, CardEventReceived, CardEventRefused, NoCardProvider } from './protocol.js'

const RECEIVED: CardEventReceived = { tag: 'received' }

export function cardEvents({ database, clock, rails, heard }: CheckoutNeeds) {
  return {
    async receiveCardEvent(
      { body, signature }: CardEvent,
      { signal, log }: MessageContext,
    ): Promise<CardEventReceived | CardEventRefused | NoCardProvider> {
      const provider = rails.get(CARD_RAIL)?.provider
      if (provider === undefined) return { tag: 'no_provider' }
      const receivedAt = clock.now()
      const event = provider.readWebhook(body, signature, receivedAt)
      if (event.tag === 'refused') {
        heard('refused')
        const { reason } = event
        log.warn({ reason }, 'card webhook refused')
        return { tag: 'event_refused', reason }
      }
      const { about } = event
      if (about === 'nothing') {
        heard('ignored')
        return RECEIVED
      }
      // Crosses tenants: the provider sends the events of one account without naming a tenant.
      const isNew = await database.system(
        (tx) => receiveCardEvent(tx, { ...event, about, receivedAt }),
        { signal },
      )
      heard(isNew ? 'received' : 'repeated')
      return RECEIVED
    },
  }
}
