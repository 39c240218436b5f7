/** Dependencies of the renewals actor. */
import type { Database } from '../../../storage/platform/sql.js'
import type { X402Means } from '../checkout/needs.js'
import type { DeskNeeds } from '../payments/charge.js'

export type BillingNeeds = DeskNeeds & {
  readonly database: Database
  /** Null where `commerce.x402_enabled` is false. */
  readonly x402: X402Means | null
  /** Public base URL of the service, without a trailing slash. */
  readonly baseUrl: string
}
