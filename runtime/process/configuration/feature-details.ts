/**
 * The details of a feature in the capabilities document: which parts of a protocol are supported.
 */
import { AUTH_SCHEMES } from '../../../actors/domain/vault/egress.js'
import { type EventType, offeredEventTypes } from '../../../actors/domain/events.js'
import { knownAssets } from '../../../actors/commerce/payments/x402/known-assets.js'
import { registriesIn } from './registries.js'
import type { Settings } from './settings.js'

type FeatureDetails = Readonly<Record<string, Readonly<Record<string, unknown>>>>

type EventSettings = Pick<
  Settings,
  | 'billing'
  | 'adaptive_mfa'
  | 'api_keys'
  | 'chains'
  | 'commerce'
  | 'social'
  | 'generic_oauth'
  | 'enterprise_sso'
  | 'scim'
  | 'wallet'
>

/** The event types that can occur in this deployment. */
export function eventTypesOf(settings: EventSettings): readonly EventType[] {
  const { commerce, social, generic_oauth: generic, enterprise_sso: enterprise } = settings
  return offeredEventTypes({
    commerce: commerce.enabled || commerce.x402_enabled,
    sso: social.enabled || generic.enabled || enterprise.enabled,
    enterpriseSso: enterprise.enabled,
    adaptiveMfa: settings.adaptive_mfa.enabled,
    scim: settings.scim.enabled,
    apiKeys: settings.api_keys.enabled,
    billing: settings.billing.enabled,
    wallet: settings.wallet.enabled,
    chains: settings.chains.length > 0,
  })
}

export function featureDetails(
  settings: EventSettings & Pick<Settings, 'chains' | 'deployment' | 'server'>,
) {
  const { commerce, chains, server } = settings
  const networks = knownAssets(chains).map(({ network }) => network)
  return {
    // The base URL of POST /v1/proxy and /v1/proxy/body.
    'vault.egress': { url: server.egress_url, auth_schemes: AUTH_SCHEMES },
    'agents.erc8004': {
      chains: registriesIn(chains).map(({ network }) => network),
      events: settings.deployment.embedded_chain_monitor,
    },
    webhooks: {
      signature_suites: ['svc-webhook-v1', 'standard-webhooks-v1'],
      event_feed: true,
      replay: true,
      event_types: eventTypesOf(settings),
    },
    'commerce.x402': {
      versions: commerce.x402_v1_compat ? [2, 1] : [2],
      schemes: ['exact'],
      networks,
      // The facilitator verifies signatures of contract accounts (EIP-1271, ERC-6492).
      signatures: ['eip712_secp256k1', 'eip1271', 'erc6492'],
      // Checkout sessions and subscription invoices, in addition to payment links.
      checkouts: true,
      payment_identifier: true,
      settles_once: true,
    },
    wallet: { networks, x402_versions: [2, 1], transactions: ['eip1559'] },
  } satisfies FeatureDetails
}
