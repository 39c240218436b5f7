/**
 * Receives webhooks of the card provider. A webhook is verified, stored once by its id, and
 * acknowledged. A worker of the async plane then looks up the state of the object. The order of
 * webhooks therefore does not matter, and a webhook cannot move money by what it claims.
 */
import type { Handler } from '../../../../runtime/kernel/actor.js'
import { receiveCardEventRow } from '../../../../storage/commerce/card-payments.js'
import { CARD_PROVIDER } from '../card/card-provider.js'
import type { CheckoutNeeds } from './needs.js'
import type { CheckoutProtocol } from './protocol.js'

const RECEIVED = { tag: 'received' } as const

export const receiveCardEvent: Handler<
  CheckoutNeeds,
  CheckoutProtocol,
  'receiveCardEvent'
> = async ({ database, clock, providers, countWebhook }, { body, signature }, { signal, log }) => {
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
    (tx) => receiveCardEventRow(tx, { ...event, about, receivedAt }),
    {
      signal,
    },
  )
  countWebhook(isNew ? 'received' : 'repeated')
  return RECEIVED
}
