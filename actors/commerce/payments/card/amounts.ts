/**
 * Converts amounts to and from the units of the card provider. The provider counts in ISO 4217
 * minor units, with a few exceptions (https://docs.stripe.com/currencies).
 */
import { currencyExponent } from '../../../domain/commerce/currencies.js'

/** Currencies without decimals in ISO 4217 for which the provider expects two, both zero. */
const TWO_ZEROS: ReadonlySet<string> = new Set(['ISK', 'UGX'])
/** Currencies with two decimals in ISO 4217 for which the provider expects none. */
const NO_DECIMALS: ReadonlySet<string> = new Set(['MGA'])

/** @returns undefined when the provider cannot charge the amount exactly. */
export function providerAmount(amountMinor: number, currency: string): number | undefined {
  if (TWO_ZEROS.has(currency)) return amountMinor * 100
  if (NO_DECIMALS.has(currency)) return amountMinor % 100 === 0 ? amountMinor / 100 : undefined
  switch (currencyExponent(currency)) {
    case 0:
    case 2:
      return amountMinor
    case 3:
      // The provider accepts three-decimal currencies only with a last digit of zero.
      return amountMinor % 10 === 0 ? amountMinor : undefined
    default:
      return undefined
  }
}

/**
 * The inverse of `providerAmount`.
 * @returns undefined when the amount is not a whole number of our minor units.
 */
export function ownAmount(amount: number, currency: string): number | undefined {
  if (!Number.isSafeInteger(amount) || amount < 0) return undefined
  if (TWO_ZEROS.has(currency)) return amount % 100 === 0 ? amount / 100 : undefined
  return NO_DECIMALS.has(currency) ? amount * 100 : amount
}
