/**
 * Amounts as the card provider counts them. Its units follow ISO 4217 but for a few currencies
 * (https://docs.stripe.com/currencies).
 */
import { currencyExponent } from '../../domain/commerce/currencies.js'

/** Without decimals in ISO 4217, with two at the provider, which must be zero. */
const TWO_ZEROS: ReadonlySet<string> = new Set(['ISK', 'UGX'])
/** With two decimals in ISO 4217, without any at the provider. */
const NO_DECIMALS: ReadonlySet<string> = new Set(['MGA'])

/** Undefined where the provider cannot charge that amount exactly. */
export function providerAmount(amountMinor: number, currency: string): number | undefined {
  if (TWO_ZEROS.has(currency)) return amountMinor * 100
  if (NO_DECIMALS.has(currency)) return amountMinor % 100 === 0 ? amountMinor / 100 : undefined
  switch (currencyExponent(currency)) {
    case 0:
    case 2:
      return amountMinor
    case 3:
      // Three decimals, of which the last must be zero.
      return amountMinor % 10 === 0 ? amountMinor : undefined
    default:
      return undefined
  }
}

/** The inverse; undefined for what is no whole number of our units. */
export function ownAmount(amount: number, currency: string): number | undefined {
  if (!Number.isSafeInteger(amount) || amount < 0) return undefined
  if (TWO_ZEROS.has(currency)) return amount % 100 === 0 ? amount / 100 : undefined
  return NO_DECIMALS.has(currency) ? amount * 100 : amount
}
