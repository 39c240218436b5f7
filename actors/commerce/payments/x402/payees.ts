/** The address that receives a payment by x402 (docs/reference/commerce.md, Payee). */
import type { Asset } from '../../../domain/commerce/assets.js'

/** Payee settings of a tenant. */
export type Payees = {
  /** Tenant setting `x402_pay_to`: addresses by CAIP-2 network. */
  readonly own: Readonly<Record<string, string>>
  /** True for the operator's own tenant. Only that tenant falls back to `[[chains]].pay_to`. */
  readonly operator: boolean
}

export function payeesOf({
  settings,
  controlPlane,
}: {
  readonly settings: Readonly<Record<string, unknown>>
  readonly controlPlane: boolean
}): Payees {
  const own = settings['x402_pay_to'] as Readonly<Record<string, string>> | undefined
  return { own: own ?? {}, operator: controlPlane }
}

/** Default payee of a tenant for an asset. @returns null where the tenant has none. */
export function defaultPayee({ own, operator }: Payees, { network, payTo }: Asset): string | null {
  if (Object.hasOwn(own, network)) return own[network]!
  return operator ? payTo : null
}
