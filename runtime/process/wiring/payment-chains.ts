/** The parts of x402: its facilitator, its assets, and the chains that show what was paid. */
import { knownAssets } from '../../../actors/commerce/payments/x402/known-assets.js'
import type { Asset } from '../../../actors/domain/commerce/assets.js'
import { type Chain, createChain } from '../../../actors/commerce/payments/x402/chain.js'
import { type ChainWatch, watchChains } from '../../../actors/commerce/payments/x402/chain-watch.js'
import {
  createFacilitator,
  type Facilitator,
} from '../../../actors/commerce/payments/x402/facilitator.js'
import type { Timing } from '../../../actors/commerce/payments/x402/payments.js'
import type { ReconciliationNeeds } from '../../../actors/commerce/payments/reconciliation/worker.js'
import type { X402Options } from '../../../actors/commerce/payments/checkout/needs.js'
import type { X402Compute, X402Needs } from '../../../actors/commerce/payments/x402/needs.js'
import {
  reconciliationMetrics,
  x402Metrics,
} from '../../../actors/commerce/payments/x402/metrics.js'
import type { ProcessResources } from '../process-resources.js'
import { registriesIn } from '../configuration/registries.js'
import type { Settings } from '../configuration/settings.js'
import { type NodeAddress, type Opened, openNodes } from './chain-nodes.js'

const VERIFY_MS_MAX = 8_000
const SETTLE_MS_MAX = 20_000
const CONFIRM_MS_MAX = 5_000
type OnStop = (close: () => Promise<void>) => void

export function x402Needs(
  resources: ProcessResources,
  compute: X402Compute,
  onStop: OnStop,
): X402Needs {
  const { settings, database, clock, random, metrics } = resources
  const { commerce, deployment, oidc } = settings
  const { facilitator, chains } = opened(settings, onStop)
  return {
    database,
    clock,
    random,
    compute,
    facilitator,
    chains: deployment.embedded_chain_monitor ? chains : new Map(),
    nodes: chains,
    assets: paymentAssets(settings),
    metrics: x402Metrics(metrics.registry),
    timing: paymentTiming(settings),
    baseUrl: oidc.issuer_url,
    maxTimeoutSecs: commerce.x402_max_timeout_secs,
    v1: commerce.x402_v1_compat,
  }
}

export function reconciliationNeeds(
  resources: ProcessResources,
  onStop: OnStop,
): ReconciliationNeeds {
  const { settings, database, clock, random, metrics } = resources
  const reconciliation = reconciliationMetrics(metrics.registry)
  const parts = opened(settings, onStop)
  const watched = new Map(
    paymentAssets(settings).flatMap(({ network, confirmations }) => {
      const chain = watchedNetworks(settings).has(network) ? parts.chains.get(network) : undefined
      return chain === undefined ? [] : [[network, { chain, confirmations }] as const]
    }),
  )
  return { database, clock, random, ...parts, watched, metrics: reconciliation }
}

function opened(settings: Settings, onStop: OnStop) {
  const facilitator = openFacilitator(settings)
  const chains = openChains(settings)
  onStop(async () => {
    await facilitator?.close()
    await chains.close()
  })
  return { facilitator, chains: chains.value }
}

/** The time limit of each step of a payment, within the limit of the whole request. */
function paymentTiming({ server }: Settings): Timing {
  const requestMs = server.request_timeout_secs * 1000 || Number.POSITIVE_INFINITY
  return {
    verifyMs: Math.min(VERIFY_MS_MAX, requestMs * 0.25),
    settleMs: Math.min(SETTLE_MS_MAX, requestMs * 0.4),
    confirmMs: Math.min(CONFIRM_MS_MAX, requestMs * 0.15),
  }
}

/** Null when x402 is off. */
function openFacilitator(settings: Settings): Facilitator | null {
  const { commerce, security } = settings
  if (!commerce.x402_enabled) return null
  const { verifyMs, settleMs } = paymentTiming(settings)
  return createFacilitator({
    url: commerce.x402_facilitator_url!,
    verifyTimeoutMs: verifyMs,
    settleTimeoutMs: settleMs,
    privateNetworks: !security.production,
    proxy: settings.proxy,
  })
}

function paymentAssets({ chains }: Settings): readonly Asset[] {
  return knownAssets(chains)
}

/** What tenants can offer as a way to pay. Null when x402 is off. */
export function x402Means(settings: Settings): X402Options | null {
  const { x402_enabled: enabled, x402_max_timeout_secs: maxTimeoutSecs } = settings.commerce
  if (!enabled) return null
  const assets = paymentAssets(settings)
  return { assets, maxTimeoutSecs, watched: watchedNetworks(settings) }
}

/** The networks whose transfers are watched. */
function watchedNetworks(settings: Settings): ReadonlySet<string> {
  const isOn = settings.deployment.embedded_chain_monitor && settings.commerce.x402_enabled
  const nodes = isOn ? paymentAssets(settings).filter(({ rpcUrl }) => rpcUrl !== null) : []
  return new Set(nodes.map(({ network }) => network))
}

/** The chains with a configured node, by network. A chain connects at its first query. */
function openChains(settings: Settings): Opened<ReadonlyMap<string, Chain>> {
  const nodes = openNodes(settings, paymentNodes(settings))
  const chains = [...nodes.value].map(([network, node]) => [network, createChain(node)] as const)
  return { value: new Map(chains), close: nodes.close }
}

function paymentNodes(settings: Settings): readonly NodeAddress[] {
  const assets = settings.commerce.x402_enabled ? paymentAssets(settings) : []
  return assets.flatMap(({ network, rpcUrl }) => (rpcUrl === null ? [] : [{ network, rpcUrl }]))
}

/** Null unless `deployment.embedded_chain_monitor`. */
export function openChainWatch(settings: Settings): ChainWatch | null {
  const addresses = [...paymentNodes(settings), ...registriesIn(settings.chains)]
  if (!settings.deployment.embedded_chain_monitor || addresses.length === 0) return null
  const nodes = openNodes(settings, addresses)
  const chains = [...nodes.value].map(([network, node]) => [network, createChain(node)] as const)
  const watch = watchChains(new Map(chains))
  return {
    unfit: () => watch.unfit(),
    async close() {
      await watch.close()
      await nodes.close()
    },
  }
}
