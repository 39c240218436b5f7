/** The nodes of `[[chains]]`: for payments, and for the registries that list agents. */
import { type ChainNode, createNode } from '../../../actors/platform/evm/node.js'
import { createDialer } from '../../../actors/platform/outbound-http/dialer.js'
import { createUpstreams } from '../../../actors/platform/outbound-http/upstreams.js'
import type { Registry } from '../../../actors/agents/agents/registries/registry.js'
import { registriesIn } from '../configuration/registries.js'
import type { Settings } from '../configuration/settings.js'

const CONNECT_TIMEOUT_MS = 3_000

export interface Opened<T> {
  readonly value: T
  close(): Promise<void>
}

export type NodeAddress = { readonly network: string; readonly rpcUrl: string }

/** Nodes by network. A node is connected to at its first query. */
export function openNodes(
  settings: Settings,
  addresses: readonly NodeAddress[],
): Opened<ReadonlyMap<string, ChainNode>> {
  // The operator chooses the nodes, which are often in the operator's own network.
  const upstreams = createUpstreams(
    createDialer({
      privateNetworks: true,
      dnsOverrides: {},
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      proxy: settings.proxy,
    }),
  )
  const nodes = addresses.map(
    ({ network, rpcUrl }) => [network, createNode(upstreams, rpcUrl)] as const,
  )
  return { value: new Map(nodes), close: () => upstreams.destroy() }
}

/** The registries of the configuration with their nodes. */
export function openRegistries(settings: Settings): Opened<readonly Registry[]> {
  const configured = registriesIn(settings.chains)
  const nodes = openNodes(settings, configured)
  const value = configured.map(({ network, identity, reputation, ...more }) => {
    const { confirmations, readEveryMs } = more
    const node = nodes.value.get(network)!
    return { network, identity, reputation, confirmations, readEveryMs, node }
  })
  return { value, close: nodes.close }
}
