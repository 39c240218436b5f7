/**
 * The providers of this build. Another processor is an implementation of `PaymentProvider`
 * (actors/commerce/payments/payment-provider.ts), put into this list.
 */
import { createCardClient } from '../../../actors/commerce/payments/card/client.js'
import { cardProvider } from '../../../actors/commerce/payments/card/card-provider.js'
import { providerCalls } from '../../../actors/commerce/payments/metrics.js'
import {
  type PaymentProvider,
  type PaymentProviders,
  providersByName,
} from '../../../actors/commerce/payments/payment-provider.js'
import { sandboxProvider } from '../../../actors/commerce/payments/sandbox-provider.js'
import { createDialer } from '../../../actors/platform/outbound-http/dialer.js'
import { TenantGroups } from '../../../actors/platform/tenant-groups.js'
import type { ProcessResources } from '../process-resources.js'

const CONNECT_TIMEOUT_MS = 3_000
const DAY_MS = 86_400_000

type ProviderResources = Pick<ProcessResources, 'settings' | 'database' | 'clock' | 'metrics'>

/** @param onStop called with what closes the connections of the providers. */
export function paymentProviders(
  resources: ProviderResources,
  onStop: (close: () => Promise<void>) => void,
): PaymentProviders {
  const { database, clock } = resources
  return providersByName([
    sandboxProvider({ database, clock }),
    ...cardProviders(resources, onStop),
  ])
}

function cardProviders(
  { settings, database, clock, metrics }: ProviderResources,
  onStop: (close: () => Promise<void>) => void,
): readonly PaymentProvider[] {
  const { card } = settings.commerce
  const { secret_key: secretKey, webhook_secret: webhookSecret } = card
  if (card.provider === 'none' || secretKey === undefined || webhookSecret === undefined) return []
  const isLocal = !settings.security.production
  const client = createCardClient({
    apiBaseUrl: card.api_base_url,
    secretKey,
    timeoutMs: card.timeout_secs * 1_000,
    // The operator names the provider, so its name is resolved by the system.
    connector: createDialer({
      privateNetworks: isLocal,
      dnsOverrides: {},
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      proxy: settings.proxy,
    }),
    countCall: providerCalls(metrics.registry),
    counts: metrics.shares,
    groups: new TenantGroups({ database, clock }),
  })
  onStop(() => client.close())
  return [
    cardProvider({
      database,
      clock,
      client,
      webhookSecret,
      checkoutHosts: card.checkout_hosts,
      plainHttp: isLocal,
      clearingMs: card.clearing_days * DAY_MS,
    }),
  ]
}
