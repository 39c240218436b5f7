/** Dependencies of the checkout actor. */
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { ChargeProcessingNeeds } from '../charge-processing.js'
import type { OfferSettings } from '../x402/offers.js'

export type X402Options = OfferSettings & {
  /** Networks whose transfers are watched: `deployment.embedded_chain_monitor`. */
  readonly watched: ReadonlySet<string>
}

export type CheckoutNeeds = ChargeProcessingNeeds & {
  readonly database: Database
  readonly sealer: Sealer
  /** Null where `commerce.x402_enabled` is false. */
  readonly x402: X402Options | null
  /** Base URL of the service's pages, without a trailing slash. */
  readonly baseUrl: string
  /** Counts webhooks of the card provider by outcome. */
  readonly countWebhook: (outcome: 'received' | 'repeated' | 'ignored' | 'refused') => void
  readonly settings: {
    readonly checkout_ttl_secs: number
    readonly redirect_hosts: readonly string[]
  }
}
