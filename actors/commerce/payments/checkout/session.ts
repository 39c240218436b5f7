/** Checkout sessions: the page that pays one charge. */
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type CheckoutSessionRow,
  insertCheckoutSession,
} from '../../../../storage/commerce/checkout-sessions.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Offer } from '../x402/offers.js'
import { awaitTransfers } from '../x402/transfers.js'
import type { CheckoutNeeds } from './needs.js'
import { sha256 } from '../../../domain/secret-hashes.js'

const TOKEN_BYTES = 32

/** A token for the page of a session. */
export function sessionToken(random: Random): string {
  return random.token(TOKEN_BYTES)
}

/** Inserts a session, and awaits the transfers of its offers on watched chains. */
export async function openSession(
  tx: Transaction,
  { random, x402 }: Pick<CheckoutNeeds, 'random' | 'x402'>,
  { token, ...session }: Omit<CheckoutSessionRow, 'status'> & { readonly token: string },
  offers: readonly Offer[],
): Promise<void> {
  await insertCheckoutSession(tx, { ...session, tokenSha256: sha256(token) })
  if (x402 !== null && offers.length > 0) {
    await awaitTransfers(tx, random, offers, x402.watched, session)
  }
}
