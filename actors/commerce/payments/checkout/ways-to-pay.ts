/**
 * The payment methods that a tenant offers. Pure. The page lists them, a checkout without any is
 * refused, and a payment can only start with one of them.
 */
import type { PaymentProvider, PaymentProviders } from '../payment-provider.js'
import type { Environment } from '../../../domain/tenants/tenancy.js'
import { type LinkTerms, type Offer, type OfferSettings, offersOf } from '../x402/offers.js'
import { payeesOf } from '../x402/payees.js'

/** A payment provider that the buyer chooses on the page, or a payment on a chain. */
export type WayToPay =
  | { readonly tag: 'provider'; readonly provider: PaymentProvider }
  | { readonly tag: 'x402'; readonly offers: readonly Offer[] }

/** The item to be paid. */
type Payable = {
  readonly amountMinor: number
  readonly currency: string
  /** Terms of the payment link, if it sets any. */
  readonly x402: LinkTerms | null
}

/** The tenant that is paid. */
type PaidTenant = {
  readonly environment: Environment
  readonly controlPlane: boolean
  readonly settings: Readonly<Record<string, unknown>>
}

/** The payment methods of the deployment. */
type PaymentMethods = {
  readonly providers: PaymentProviders
  /** Null where `commerce.x402_enabled` is false. */
  readonly x402: OfferSettings | null
}

/**
 * Providers first, in the order of registration. Empty where the tenant offers no payment method.
 */
export function waysToPay(
  tenant: PaidTenant,
  session: Payable,
  { providers, x402 }: PaymentMethods,
): readonly WayToPay[] {
  const offers = x402 === null ? [] : offersOf(session.x402, session, payeesOf(tenant), x402)
  return [
    ...providersFor(tenant, session, providers).map(
      (provider) => ({ tag: 'provider', provider }) as const,
    ),
    ...(offers.length === 0 ? [] : [{ tag: 'x402', offers } as const]),
  ]
}

/** The payment providers that buyers of a tenant are offered. */
function providersFor(
  { environment }: PaidTenant,
  session: Payable,
  providers: PaymentProviders,
): readonly PaymentProvider[] {
  return [...providers.values()].filter((provider) => provider.offers(environment, session))
}
