/** What the actors of commerce are given: rows of `wireActor.ts`, in the order of `planes.ts`. */
import { checkoutActor } from '../../../actors/commerce/payments/checkout/actor.js'
import { commerceActor } from '../../../actors/commerce/payments/actor.js'
import { payoutsActor } from '../../../actors/commerce/payments/payouts/actor.js'
import { renewalsWorker } from '../../../actors/commerce/payments/renewals/worker.js'
import { walletPool, walletsActor } from '../../../actors/commerce/wallets/actor.js'
import type { WalletModule } from '../../../actors/commerce/wallets/draft.js'
import { walletsMetrics } from '../../../actors/commerce/wallets/metrics.js'
import { knownAssets } from '../../../actors/commerce/payments/x402/known-assets.js'
import { paymentOutcomes, providerEvents } from '../../../actors/commerce/payments/metrics.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'
import { x402Means } from './payment-chains.js'
import { paymentProviders } from './payment-providers.js'
import { pooled, processors } from './pools.js'

export function commerceWirings(resources: ProcessResources): readonly ActorWiring[] {
  const { settings, database, sealer, clock, random, metrics } = resources
  const { registry } = metrics

  return [
    wireActor(checkoutActor, ({ onStop }) => ({
      database,
      sealer,
      clock,
      random,
      providers: paymentProviders(resources, onStop),
      countPayment: paymentOutcomes(registry),
      countWebhook: providerEvents(registry),
      baseUrl: settings.oidc.issuer_url,
      x402: x402Means(settings),
      settings: settings.commerce,
    })),
    wireActor(commerceActor, ({ onStop }) => ({
      database,
      clock,
      random,
      providers: paymentProviders(resources, onStop),
    })),
    wireActor(payoutsActor, ({ onStop }) => ({
      database,
      clock,
      random,
      providers: paymentProviders(resources, onStop),
    })),
    wireActor(renewalsWorker, ({ onStop }) => ({
      database,
      clock,
      random,
      providers: paymentProviders(resources, onStop),
      countPayment: paymentOutcomes(registry),
      x402: x402Means(settings),
      baseUrl: settings.oidc.issuer_url,
    })),
  ]
}

export function walletWiring(resources: ProcessResources): ActorWiring {
  const { settings, database, sealer, clock, random, metrics } = resources
  return wireActor(walletsActor, (context) => ({
    database,
    sealer,
    clock,
    random,
    compute: pooled<WalletModule>(context, resources, walletPool(processors(context))),
    metrics: walletsMetrics(metrics.registry),
    assets: knownAssets(settings.chains),
    settings: settings.wallet,
  }))
}
