/**
 * Webhooks of the card provider. A webhook is verified, written down once by its id, and answered; the
 * async plane looks up what became of its object. So nothing depends on the order of webhooks, and a
 * webhook that claims something moves no money.
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
        log.warn({ reason }, 'a webhook of the card provider was refused')
        return { tag: 'event_refused', reason }
      }
      const { about } = event
      if (about === 'nothing') {
        heard('ignored')
        return RECEIVED
      }
      // Crosses tenants: the provider sends the events of one account and names no tenant.
      const isNew = await database.system(
        (tx) => receiveCardEvent(tx, { ...event, about, receivedAt }),
        { signal },
      )
      heard(isNew ? 'received' : 'repeated')
      return RECEIVED
    },
  }
}
