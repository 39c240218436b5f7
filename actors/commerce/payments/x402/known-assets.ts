/** The tokens that a deployment knows: USDC, and the tokens of [[chains]]. */
import type { Asset } from '../../../domain/commerce/assets.js'
import { type ChainsSettings, PAYMENT_CONFIRMATIONS } from '../settings.js'

const USDC = {
  decimals: 6,
  currency: 'USD',
  payTo: null,
  rpcUrl: null,
  confirmations: PAYMENT_CONFIRMATIONS,
} as const
const BUILT_IN: readonly Asset[] = [
  {
    ...USDC,
    network: 'eip155:8453',
    address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    name: 'USD Coin',
    version: '2',
  },
  {
    ...USDC,
    network: 'eip155:84532',
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    name: 'USDC',
    version: '2',
  },
]

/** The assets of [[chains]], then the built-in assets of networks that [[chains]] does not name. */
export function knownAssets(chains: ChainsSettings): readonly Asset[] {
  const configured = chains.map((chain) => configuredAsset(chain))
  const named = new Set(configured.map(({ network }) => network))
  const kept = BUILT_IN.filter(({ network }) => !named.has(network))
  return [...configured, ...kept]
}

function configuredAsset(chain: ChainsSettings[number]): Asset {
  return {
    network: chain.id,
    address: chain.asset,
    name: chain.asset_name,
    version: chain.asset_version,
    decimals: chain.asset_decimals,
    currency: chain.asset_currency,
    payTo: chain.pay_to ?? null,
    rpcUrl: chain.rpc_url ?? null,
    confirmations: chain.confirmations ?? PAYMENT_CONFIRMATIONS,
  }
}
