/** Dependencies of the renewals worker. */
import type { Lifecycle } from '../../../../runtime/kernel/actor.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { X402Options } from '../checkout/needs.js'
import type { ChargeProcessingNeeds } from '../charge-processing.js'

export type RenewalNeeds = ChargeProcessingNeeds & {
  readonly database: Database
  /** Null where `commerce.x402_enabled` is false. */
  readonly x402: X402Options | null
  /** Public base URL of the service, without a trailing slash. */
  readonly baseUrl: string
}

/** What a round needs. */
export type RoundNeeds = RenewalNeeds & Pick<Lifecycle, 'signal' | 'log'>

/** Options of its transactions. */
export const inBackground = ({ signal }: Pick<RoundNeeds, 'signal'>) =>
  ({ pool: 'background', signal }) as const
