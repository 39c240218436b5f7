/**
 * Payments without a proof: a wallet sends tokens to an address. The amount tells which checkout they
 * pay, so each checkout awaits an amount of its own: the price and less than one minor unit on top.
 */
import type { Random } from '../../../runtime/kernel/random.js'
import { insertTransfer } from '../../../storage/commerce/checkout-transfers.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { currencyExponent } from '../../domain/commerce/currencies.js'
import { type Asset, chainIdOf } from './assets.js'
import type { Offer } from './offers.js'

/** Late transfers are recognised for so long after the end of their checkout. */
const GRACE_MS = 7 * 86_400_000
/** Digits that a buyer who types the amount can manage. */
const TAILS_MAX = 9_999
/** Below this, checkouts of one price would soon meet. */
const TAILS_MIN = 99
const TRIES_MAX = 8

export type AwaitingSession = {
  readonly tenantId: string
  readonly id: string
  readonly chargeId: string
  readonly expiresAt: Date
  readonly createdAt: Date
}

/**
 * Awaits a transfer for each offer on a watched chain. An offer is left out where the token has no
 * digits to spare, or where too many checkouts of the same price are open: x402 remains.
 * @param watched networks whose transfers are looked at.
 */
export async function awaitTransfers(
  tx: Transaction,
  random: Pick<Random, 'uuid' | 'bytes'>,
  offers: readonly Offer[],
  watched: ReadonlySet<string>,
  { id: checkoutSessionId, expiresAt, ...session }: AwaitingSession,
): Promise<void> {
  const watchedUntil = new Date(expiresAt.getTime() + GRACE_MS)
  for (const { asset, amount, payTo } of offers) {
    const tails = watched.has(asset.network) ? tailsOf(asset) : 0
    if (tails < TAILS_MIN) continue
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const tail = 1 + (Buffer.from(random.bytes(4)).readUInt32BE() % tails)
      const done = await insertTransfer(tx, {
        ...session,
        id: random.uuid(),
        checkoutSessionId,
        network: asset.network,
        asset: asset.address.toLowerCase(),
        payTo: payTo.toLowerCase(),
        amount: String(BigInt(amount) + BigInt(tail)),
        watchedUntil,
      })
      if (done) break
    }
  }
}

/** How many amounts there are between one minor unit and the next. */
function tailsOf({ decimals, currency }: Asset): number {
  const shift = decimals - (currencyExponent(currency) ?? 2)
  return shift <= 0 ? 0 : Math.min(TAILS_MAX, 10 ** shift - 1)
}

/** Opens a wallet with the transfer filled in. EIP-681. */
export function walletLink(asset: Asset, payTo: string, amount: string): string {
  const chainId = chainIdOf(asset.network)
  return `ethereum:${asset.address}@${chainId}/transfer?address=${payTo}&uint256=${amount}`
}

/** Atomic units as people write an amount of a token: 19990042 of 6 decimals is 19.990042. */
export function tokenAmount(amount: string, decimals: number): string {
  const digits = amount.padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction.padEnd(2, '0')}`
}

const NETWORK_NAMES: Readonly<Record<string, string>> = {
  'eip155:1': 'Ethereum',
  'eip155:10': 'OP Mainnet',
  'eip155:137': 'Polygon',
  'eip155:8453': 'Base',
  'eip155:42161': 'Arbitrum One',
  'eip155:43114': 'Avalanche',
  'eip155:84532': 'Base Sepolia',
  'eip155:11155111': 'Sepolia',
}

/** What people call a network; its CAIP-2 id where they have no name for it. */
export function networkName(network: string): string {
  return Object.hasOwn(NETWORK_NAMES, network) ? NETWORK_NAMES[network]! : network
}
