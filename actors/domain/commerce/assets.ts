/** The tokens that can be paid with, and prices in them (docs/reference/commerce.md, x402). */
import { currencyExponent } from './currencies.js'

export type Asset = {
  /** CAIP-2 id in namespace eip155. */
  readonly network: string
  /** Contract address. */
  readonly address: string
  /** EIP-712 domain of the token. */
  readonly name: string
  readonly version: string
  readonly decimals: number
  /** ISO 4217 code. The token pays prices in this currency, one to one. */
  readonly currency: string
  /** `[[chains]].pay_to`: default payee of the operator's own tenant. Null when unset. */
  readonly payTo: string | null
  /** Null where the chain is not watched. */
  readonly rpcUrl: string | null
  /** Confirmations (blocks) that a transfer needs before it pays a checkout. */
  readonly confirmations: number
}

/** Network names of x402 version 1. */
const V1_NETWORKS: Readonly<Record<string, string>> = {
  'eip155:1': 'ethereum',
  'eip155:137': 'polygon',
  'eip155:8453': 'base',
  'eip155:84532': 'base-sepolia',
  'eip155:80002': 'polygon-amoy',
  'eip155:43113': 'avalanche-fuji',
  'eip155:43114': 'avalanche',
  'eip155:11155111': 'sepolia',
}

/** Compares addresses case-insensitively. */
export function sameAddress(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase()
}

/** Chain id of an eip155 network. */
export function chainIdOf(network: string): number {
  return Number(network.slice('eip155:'.length))
}

export function v1NetworkOf(network: string): string | undefined {
  return V1_NETWORKS[network]
}

/** The CAIP-2 id of a network name of version 1. */
export function networkOfV1(name: string): string | undefined {
  return Object.keys(V1_NETWORKS).find((network) => V1_NETWORKS[network] === name)
}

/**
 * Converts minor units to atomic units of the asset: × 10^(token decimals − currency decimals).
 * @returns null when the token cannot represent the amount exactly.
 */
export function atomicAmount(amountMinor: number, currency: string, asset: Asset): string | null {
  const shift = asset.decimals - (currencyExponent(currency) ?? 2)
  const minor = BigInt(amountMinor)
  if (shift >= 0) return String(minor * 10n ** BigInt(shift))
  const divisor = 10n ** BigInt(-shift)
  return minor % divisor === 0n ? String(minor / divisor) : null
}
