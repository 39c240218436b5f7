/** What the actors of commerce are given: rows of `furnish.ts`, in the order of `planes.ts`. */
import { checkoutActor } from '../actors/checkout/actor.js'
import { commerceActor } from '../actors/commerce/actor.js'
import { settlementActor } from '../actors/settlement/actor.js'
import { billingActor } from '../actors/billing/actor.js'
import { paymentOutcomes } from '../actors/commerce/metrics.js'
import { type Furnishing, furnish } from './kernel/furnishing.js'
import type { House } from './house.js'
import { offerMeans } from './payment-chains.js'
import { paymentRails } from './rails.js'

export function commerceFurnishings(house: House): readonly Furnishing[] {
  const { settings, database, sealer, clock, random, metrics } = house
  const { registry } = metrics

  return [
    furnish(checkoutActor, () => ({
      database,
      sealer,
      clock,
      random,
      rails: paymentRails({ database, clock }),
      paid: paymentOutcomes(registry),
      x402: offerMeans(settings),
      settings: settings.commerce,
    })),
    furnish(commerceActor, () => ({
      database,
      clock,
      random,
      rails: paymentRails({ database, clock }),
    })),
    furnish(settlementActor, () => ({
      database,
      clock,
      random,
      rails: paymentRails({ database, clock }),
    })),
    furnish(billingActor, () => ({
      database,
      clock,
      random,
      rails: paymentRails({ database, clock }),
      paid: paymentOutcomes(registry),
      byTimer: settings.commerce.enabled && settings.deployment.background_tasks_enabled,
    })),
  ]
}
