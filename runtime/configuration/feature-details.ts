/**
 * What the capabilities document says of a feature beside its name: how far a protocol is spoken,
 * and what is there beyond the interface. decisions.md 14 and 18.
 */
import { type EventType, offeredEventTypes } from '../../actors/domain/events.js'
import { knownAssets } from '../../actors/commerce/x402/assets.js'
import type { Settings } from './settings.js'

export type FeatureDetails = Readonly<Record<string, Readonly<Record<string, unknown>>>>

type EventSettings = Pick<Settings, 'commerce' | 'social' | 'generic_oauth' | 'enterprise_sso'>

/** The types of events that can occur in a deployment. */
export function eventTypesOf(settings: EventSettings): readonly EventType[] {
  const { commerce, social, generic_oauth: generic, enterprise_sso: enterprise } = settings
  return offeredEventTypes({
    commerce: commerce.enabled || commerce.x402_enabled,
    sso: social.enabled || generic.enabled || enterprise.enabled,
    enterpriseSso: enterprise.enabled,
  })
}

export function featureDetails(settings: EventSettings & Pick<Settings, 'chains'>) {
  const { commerce, chains } = settings
  return {
    webhooks: {
      signature_suites: ['svc-webhook-v1', 'standard-webhooks-v1'],
      event_feed: true,
      replay: true,
      event_types: eventTypesOf(settings),
    },
    'commerce.x402': {
      versions: commerce.x402_v1_compat ? [2, 1] : [2],
      schemes: ['exact'],
      networks: knownAssets(chains).map(({ network }) => network),
      // Of accounts with a key. EIP-1271 and EIP-6492, of accounts that are contracts, are refused.
      signatures: ['eip712_secp256k1'],
      // Checkout sessions and invoices of subscriptions, beside payment links.
      checkouts: true,
      payment_identifier: true,
      settles_once: true,
    },
  } satisfies FeatureDetails
}
