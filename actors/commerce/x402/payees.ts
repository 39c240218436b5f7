/** Who receives a payment by x402. decisions.md section 24, default payee. */
import type { Asset } from './assets.js'

/** What a tenant says about where its money goes. */
export type Payees = {
  /** Tenant setting `x402_pay_to`: addresses by CAIP-2 network. */
  readonly own: Readonly<Record<string, string>>
  /** True for the operator's own tenant: only it may be paid at `[[chains]].pay_to`. */
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

/** The default payee of a tenant for an asset; null where the tenant names none. */
export function defaultPayee({ own, operator }: Payees, { network, payTo }: Asset): string | null {
  if (Object.hasOwn(own, network)) return own[network]!
  return operator ? payTo : null
}
