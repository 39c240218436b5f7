/** The x402 terms that the payment page shows. */
import {
  type CheckoutTransferRow,
  transfersOfSession,
} from '../../../../storage/commerce/checkout-transfers.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { sameAddress } from '../../../domain/commerce/assets.js'
import type { Offer } from '../x402/offers.js'
import { networkName, tokenAmount, walletLink } from '../x402/transfers.js'
import type { X402Shown } from './protocol.js'
import type { WayToPay } from './ways-to-pay.js'

const NONE: ReadonlySet<string> = new Set()

export function offersIn(ways: readonly WayToPay[]): readonly Offer[] {
  return ways.flatMap((way) => (way.tag === 'x402' ? way.offers : []))
}

/** The transfers that a session awaits or has received. Empty where x402 cannot pay it. */
export async function transfersIn(
  tx: Transaction,
  tenantId: string,
  sessionId: string,
  ways: readonly WayToPay[],
): Promise<readonly CheckoutTransferRow[]> {
  return offersIn(ways).length === 0 ? [] : transfersOfSession(tx, tenantId, sessionId)
}

/**
 * @param path where an agent posts its payment proof.
 * @param watched networks without a wallet link unless a transfer is awaited, because a checkout has one.
 * @returns null where x402 is not offered.
 */
export function x402Shown(
  path: string,
  ways: readonly WayToPay[],
  transfers: readonly CheckoutTransferRow[],
  watched: ReadonlySet<string> = NONE,
): X402Shown | null {
  const offers = offersIn(ways)
  if (offers.length === 0) return null
  const terms = offers.map(({ asset, payTo, amount }) => {
    const awaited = transfers.find(
      (row) =>
        row.state === 'awaited' &&
        row.network === asset.network &&
        sameAddress(row.asset, asset.address) &&
        sameAddress(row.payTo, payTo),
    )
    const atomic = awaited?.amount ?? amount
    const leadsOn = awaited === undefined && watched.has(asset.network)
    return {
      network: asset.network,
      networkName: networkName(asset.network),
      asset: asset.address,
      assetName: asset.name,
      payTo,
      amount: tokenAmount(atomic, asset.decimals),
      wallet: leadsOn ? null : walletLink(asset, payTo, atomic),
      recognised: awaited !== undefined,
    }
  })
  return { path, terms }
}
