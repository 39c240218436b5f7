/**
 * Payments without a proof: a wallet sends tokens to an address. The amount identifies the
 * checkout, so each checkout awaits a unique amount: the price plus less than one minor unit.
 */
import type { Random } from '../../../../runtime/kernel/random.js'
import { insertTransfer } from '../../../../storage/commerce/checkout-transfers.js'
import { findTenantKind } from '../../../../storage/identity/tenants.js'
import type { TenantKind } from '../../../../storage/platform/in-force.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { currencyExponent } from '../../../domain/commerce/currencies.js'
import { type Asset, chainIdOf } from '../../../domain/commerce/assets.js'
import type { Offer } from './offers.js'

/** How long late transfers are recognised after the end of their checkout. */
const GRACE_MS = 7 * 86_400_000
/** Limits the extra digits, because buyers may type the amount. */
const TAILS_MAX = 9_999
/** Minimum of distinct amounts. With fewer, checkouts of equal price would collide soon. */
const TAILS_MIN = 99
const TRIES_MAX = 8

type AwaitingSession = {
  readonly tenantId: string
  readonly id: string
  readonly chargeId: string
  readonly expiresAt: Date
  readonly createdAt: Date
}

/**
 * Awaits a transfer for each offer on a watched chain. Skips an offer when the token has too few
 * decimals, or when too many checkouts of the same price are open. x402 remains available then.
 * @param watched networks whose transfers are watched.
 */
export async function awaitTransfers(
  tx: Transaction,
  random: Pick<Random, 'uuid' | 'bytes'>,
  offers: readonly Offer[],
  watched: ReadonlySet<string>,
  { id: checkoutSessionId, expiresAt, ...session }: AwaitingSession,
): Promise<void> {
  const watchedUntil = new Date(expiresAt.getTime() + GRACE_MS)
  const kind = await findTenantKind(tx, session.tenantId)
  for (const { asset, amount, payTo } of offers) {
    const tails = watched.has(asset.network) ? tailsOf(asset) : 0
    if (tails < TAILS_MIN) continue
    const { first, count } = tailsFor(kind, tails)
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const tail = first + (Buffer.from(random.bytes(4)).readUInt32BE() % count)
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

/**
 * The amounts that a tenant draws from. Any tenant may name any address, so that tenants which cost nothing could await
 * all amounts at the address of another: sandboxes have half of them, and sandboxes of one network an eighth.
 */
export function tailsFor(
  kind: TenantKind | undefined,
  tails: number,
): { first: number; count: number } {
  if (kind !== undefined && !kind.sandbox) return { first: 1, count: tails }
  const network = kind?.network ?? null
  if (network === null) return { first: 1, count: Math.floor(tails / 2) }
  const count = Math.floor(tails / 8)
  return { first: 1 + (Number.parseInt(network.slice(0, 8), 16) % 4) * count, count }
}

/** Number of distinct amounts between two minor units. */
function tailsOf({ decimals, currency }: Asset): number {
  const shift = decimals - (currencyExponent(currency) ?? 2)
  return shift <= 0 ? 0 : Math.min(TAILS_MAX, 10 ** shift - 1)
}

/** EIP-681 URI that opens a wallet with the transfer filled in. */
export function walletLink(asset: Asset, payTo: string, amount: string): string {
  const chainId = chainIdOf(asset.network)
  return `ethereum:${asset.address}@${chainId}/transfer?address=${payTo}&uint256=${amount}`
}

/** Formats atomic units as a token amount: 19990042 with 6 decimals is 19.990042. */
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

/** Display name of a network. Its CAIP-2 id where it has none. */
export function networkName(network: string): string {
  return Object.hasOwn(NETWORK_NAMES, network) ? NETWORK_NAMES[network]! : network
}
