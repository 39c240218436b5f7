/** The ERC-8004 registries of `[[chains]]`, which list agents on chains. */
import { REGISTRY_CONFIRMATIONS } from '../../../actors/commerce/payments/settings.js'
import type { Settings } from './settings.js'

/** Addresses are in lower case. */
type ConfiguredRegistry = {
  /** CAIP-2 id. */
  readonly network: string
  readonly rpcUrl: string
  readonly identity: string
  readonly reputation: string | null
  readonly confirmations: number
  readonly readEveryMs: number
}

export function registriesIn(chains: Settings['chains']): readonly ConfiguredRegistry[] {
  return chains.flatMap((chain) => {
    const { id: network, rpc_url: rpcUrl, identity_registry: identity } = chain
    const { read_every_ms: readEveryMs } = chain
    const { reputation_registry: reputation, confirmations = REGISTRY_CONFIRMATIONS } = chain
    if (rpcUrl === undefined || identity === undefined) return []
    return [
      {
        network,
        rpcUrl,
        identity: identity.toLowerCase(),
        reputation: reputation?.toLowerCase() ?? null,
        confirmations,
        readEveryMs,
      },
    ]
  })
}
