/**
 * The offers that pay a link or session, and their form in each version of the protocol. x402 v2
 * sections 5.1 and 6.1, scheme exact on EVM; x402 v1.
 */
import {
  type Asset,
  atomicAmount,
  chainIdOf,
  sameAddress,
  v1NetworkOf,
} from '../../../domain/commerce/assets.js'
import { defaultPayee, type Payees } from './payees.js'
import { PAYMENT_IDENTIFIER } from '../../../domain/commerce/x402.js'
import type { Accepted, Version } from './proof.js'

const SCHEME = 'exact'
const MIME_TYPE = 'application/json'

/** One way to pay. */
export type Offer = {
  readonly asset: Asset
  /** Atomic units, decimal. */
  readonly amount: string
  readonly payTo: string
  readonly maxTimeoutSecs: number
}

/** The item to be paid. */
export type Resource = {
  /** Absolute URL without the query. */
  readonly url: string
  readonly description: string
}

/** Link members for narrowing its offers. */
export type LinkTerms = {
  readonly network: string | null
  readonly asset: string | null
  readonly payTo: string | null
}

/** Parses the stored terms of a link. */
export function termsOf(
  x402: {
    readonly network: string
    readonly asset?: string | undefined
    readonly pay_to?: string | undefined
  } | null,
): LinkTerms | null {
  return x402 && { network: x402.network, asset: x402.asset ?? null, payTo: x402.pay_to ?? null }
}

type Priced = { readonly amountMinor: number; readonly currency: string }

/** What the deployment accepts. */
export type OfferSettings = {
  readonly assets: readonly Asset[]
  /** `commerce.x402_max_timeout_secs`. */
  readonly maxTimeoutSecs: number
}

/**
 * The offers of a tenant, configured chains first. Empty where the tenant cannot be paid by x402.
 */
export function offersOf(
  terms: LinkTerms | null,
  { amountMinor, currency }: Priced,
  payees: Payees,
  { assets, maxTimeoutSecs }: OfferSettings,
): Offer[] {
  return assets.flatMap((asset) => {
    if (terms?.network != null && terms.network !== asset.network) return []
    if (terms?.asset != null && !sameAddress(terms.asset, asset.address)) return []
    const payTo = terms?.payTo ?? defaultPayee(payees, asset)
    if (payTo === null || asset.currency !== currency) return []
    const amount = atomicAmount(amountMinor, currency, asset)
    return amount === null || amount === '0' ? [] : [{ asset, amount, payTo, maxTimeoutSecs }]
  })
}

/** PaymentRequirements of version 2. */
function requirementsV2({ asset, amount, payTo, maxTimeoutSecs }: Offer) {
  return {
    scheme: SCHEME,
    network: asset.network,
    amount,
    asset: asset.address,
    payTo,
    maxTimeoutSeconds: maxTimeoutSecs,
    extra: { name: asset.name, version: asset.version, assetTransferMethod: 'eip3009' },
  }
}

/**
 * PaymentRequirements of version 1.
 * @returns undefined for a network without a name in version 1.
 */
function requirementsV1(offer: Offer, { url, description }: Resource) {
  const network = v1NetworkOf(offer.asset.network)
  if (network === undefined) return undefined
  return {
    scheme: SCHEME,
    network,
    maxAmountRequired: offer.amount,
    resource: url,
    description,
    mimeType: MIME_TYPE,
    payTo: offer.payTo,
    maxTimeoutSeconds: offer.maxTimeoutSecs,
    asset: offer.asset.address,
    extra: { name: offer.asset.name, version: offer.asset.version },
  }
}

/**
 * The payment-identifier extension: as a server declares it, or as a client with an id echoes it.
 */
function paymentIdentifier(id: string | null) {
  return {
    [PAYMENT_IDENTIFIER]: {
      info: id === null ? { required: false } : { required: false, id },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          required: { type: 'boolean' },
          id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[A-Za-z0-9_-]+$' },
        },
        required: ['required'],
      },
    },
  }
}

function resourceInfo({ url, description }: Resource) {
  return { url, description, mimeType: MIME_TYPE }
}

/** PaymentRequired of version 2. */
export function paymentRequired(error: string, resource: Resource, offers: readonly Offer[]) {
  return {
    x402Version: 2 as const,
    error,
    resource: resourceInfo(resource),
    accepts: offers.map(requirementsV2),
    extensions: paymentIdentifier(null),
  }
}

/** PaymentRequired of version 1. @returns undefined where version 1 can express no offer. */
export function paymentRequiredV1(error: string, resource: Resource, offers: readonly Offer[]) {
  const accepts = offers
    .map((offer) => requirementsV1(offer, resource))
    .filter((item) => item !== undefined)
  return accepts.length === 0 ? undefined : { x402Version: 1 as const, error, accepts }
}

type Matched =
  | { readonly tag: 'offer'; readonly offer: Offer }
  | { readonly tag: 'mismatch'; readonly reason: MismatchReason }
type MismatchReason = 'invalid_scheme' | 'invalid_network' | 'invalid_payment_requirements'

/** Finds the offer that the payer accepted. Every member must be equal. */
export function matchOffer(accepted: Accepted, offers: readonly Offer[]): Matched {
  if (accepted.scheme !== SCHEME) return { tag: 'mismatch', reason: 'invalid_scheme' }
  const sameNetwork = offers.filter(
    ({ asset }) => networkOf(asset, accepted.version) === accepted.network,
  )
  if (sameNetwork.length === 0) return { tag: 'mismatch', reason: 'invalid_network' }
  // Version 1 names only the network: its first offer there is the one that was accepted.
  const offer =
    accepted.version === 1
      ? sameNetwork[0]
      : sameNetwork.find((offered) => equals(accepted, offered))
  return offer === undefined
    ? { tag: 'mismatch', reason: 'invalid_payment_requirements' }
    : { tag: 'offer', offer }
}

function networkOf({ network }: Asset, version: Version): string | undefined {
  return version === 1 ? v1NetworkOf(network) : network
}

function equals(accepted: Extract<Accepted, { version: 2 }>, offer: Offer): boolean {
  const offered = requirementsV2(offer)
  return (
    accepted.amount === offered.amount &&
    accepted.maxTimeoutSeconds === offered.maxTimeoutSeconds &&
    sameAddress(accepted.asset, offered.asset) &&
    sameAddress(accepted.payTo, offered.payTo) &&
    Object.entries(offered.extra).every(([name, value]) => accepted.extra[name] === value) &&
    Object.keys(accepted.extra).every((name) => Object.hasOwn(offered.extra, name))
  )
}

/** Builds the request to the facilitator from verified values only. */
export function facilitatorRequest(
  proof: {
    readonly version: Version
    readonly signature: string
    readonly authorization: object
    readonly paymentId: string | null
  },
  offer: Offer,
  resource: Resource,
) {
  const payload = { signature: proof.signature, authorization: proof.authorization }
  if (proof.version === 1) {
    const requirements = requirementsV1(offer, resource)!
    const { scheme, network } = requirements
    return {
      x402Version: 1,
      paymentPayload: { x402Version: 1, scheme, network, payload },
      paymentRequirements: requirements,
    }
  }
  const requirements = requirementsV2(offer)
  return {
    x402Version: 2,
    paymentPayload: {
      x402Version: 2,
      resource: resourceInfo(resource),
      accepted: requirements,
      payload,
      ...(proof.paymentId === null ? {} : { extensions: paymentIdentifier(proof.paymentId) }),
    },
    paymentRequirements: requirements,
  }
}

export type FacilitatorRequest = ReturnType<typeof facilitatorRequest>

/** Chain id to which signatures for the offer are bound. */
export function chainOf({ asset }: Offer): number {
  return chainIdOf(asset.network)
}
