/**
 * The rails of this build. A processor of one's own is an implementation of `Rail`
 * (actors/commerce/payments/payment-provider.ts), put into this list.
 */
import { createCardClient } from '../../actors/commerce/card/client.js'
import { cardRail } from '../../actors/commerce/card/card-provider.js'
import { providerCalls } from '../../actors/commerce/payments/metrics.js'
import { type Rail, type Rails, railsOf } from '../../actors/commerce/payments/payment-provider.js'
import { sandboxRail } from '../../actors/commerce/payments/sandbox-rail.js'
import { createDialer } from '../../actors/platform/outbound-http/dialer.js'
import type { ProcessResources } from '../process/process-resources.js'

const CONNECT_TIMEOUT_MS = 3_000
const DAY_MS = 86_400_000

type RailHouse = Pick<ProcessResources, 'settings' | 'database' | 'clock' | 'metrics'>

/** @param onStop called with what closes the connections of the rails. */
export function paymentRails(
  resources: RailHouse,
  onStop: (close: () => Promise<void>) => void,
): Rails {
  const { database, clock } = resources
  return railsOf([sandboxRail({ database, clock }), ...cardRails(resources, onStop)])
}

function cardRails(
  { settings, database, clock, metrics }: RailHouse,
  onStop: (close: () => Promise<void>) => void,
): readonly Rail[] {
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
    }),
    called: providerCalls(metrics.registry),
    counts: metrics.shares,
  })
  onStop(() => client.close())
  return [
    cardRail({
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
