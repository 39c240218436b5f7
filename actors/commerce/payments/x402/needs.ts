/** Dependencies of the x402 actor. */
import type { Compute } from '../../../../runtime/kernel/threads/pool.js'
import type { Asset } from '../../../domain/commerce/assets.js'
import type { Chain } from './chain.js'
import type { Facilitator } from './facilitator.js'
import type { X402Metrics } from './metrics.js'
import type { Timing } from './payments.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type X402Needs = WriteNeeds & {
  readonly compute: X402Compute
  /** Null where `commerce.x402_enabled` is false. */
  readonly facilitator: Facilitator | null
  /** The watched chains, by network. */
  readonly chains: ReadonlyMap<string, Chain>
  /** Every chain with an `rpc_url`, watched or not. */
  readonly nodes: ReadonlyMap<string, Chain>
  readonly assets: readonly Asset[]
  readonly metrics: X402Metrics
  readonly timing: Timing
  /** Public base URL of the service, without a trailing slash. */
  readonly baseUrl: string
  /** `commerce.x402_max_timeout_secs`. */
  readonly maxTimeoutSecs: number
  /** `commerce.x402_v1_compat`. */
  readonly v1: boolean
}

export type X402Compute = Compute<X402Module>

export type X402Module = typeof import('./compute.js')
