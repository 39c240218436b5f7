/** Sells payment links by x402: tells their price, takes proofs, has them settled. */
import { defineActor } from '../../runtime/kernel/actor.js'
import type { PoolOptions } from '../../runtime/kernel/pool.js'
import { findCharge } from '../../storage/charges.js'
import {
  findOffer,
  findPaymentLink,
  type OfferRow,
  type PaymentLinkRow,
} from '../../storage/products.js'
import { findTenantWithSettings } from '../../storage/tenants.js'
import type { X402PaymentRow } from '../../storage/x402-payments.js'
import { AMOUNT_MINOR_MAX } from '../domain/currencies.js'
import { v1NetworkOf } from './assets.js'
import { authorizationFault, isPlainSignature } from './authorization.js'
import {
  chainOf,
  matchOffer,
  type Offer,
  offersOf,
  paymentRequired,
  paymentRequiredV1,
  termsOf,
} from './offers.js'
import { type Payees, payeesOf } from './payees.js'
import { payments, type Purchase, type Verdict } from './payments.js'
import { encodeField, type Proof, readProof } from './proof.js'
import {
  type OrderFault,
  type PaymentChallenge,
  type PayOrder,
  type PayOutcome,
  type X402Order,
  type X402Protocol,
  x402,
} from './protocol.js'
import type { ErrorReason } from './reasons.js'
import { resolutions } from './resolution.js'
import type { X402Needs } from './needs.js'

const CAPACITY = 2048
const INFLIGHT_MAX = 1024
/** A signature takes some two milliseconds. */
const BATCH_MAX = 8

/** decisions.md section 10: ISO 3166-1 alpha-2, and the part of ISO 3166-2 behind the hyphen. */
const COUNTRY = /^[A-Za-z]{2}$/
const REGION = /^[A-Za-z0-9][A-Za-z0-9-]{0,5}$/
/** base64url of 16 bytes and more; nothing else is worth a look. */
const TOKEN = /^[A-Za-z0-9_-]{16,128}$/
const PROOF_MISSING = 'PAYMENT-SIGNATURE header is required'
const UNKNOWN = { tag: 'unknown' } as const

/** How the pool behind `X402Needs.compute` is opened: no thread before the first signature. */
export function x402Pool(processors: number): PoolOptions {
  return {
    name: 'x402',
    module: new URL('./compute.js', import.meta.url),
    threadsMin: 0,
    threadsMax: Math.max(1, processors - 1),
    queueMax: CAPACITY,
    batchMax: BATCH_MAX,
  }
}

type Found = {
  readonly link: PaymentLinkRow
  readonly price: OfferRow
  /** Null where the tenant may not sell. */
  readonly payees: Payees | null
}
type Sale = Omit<Purchase, 'offer' | 'proof'> & { readonly offers: readonly Offer[] }

export const x402Actor = defineActor<X402Protocol, X402Needs>({
  address: x402,
  asks: {},
  mailbox: { capacity: CAPACITY, inflightMax: INFLIGHT_MAX },
  lane: {
    challenge: () => undefined,
    pay: () => undefined,
    listPayments: () => undefined,
    resolvePayment: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, compute, facilitator, metrics, v1 } = needs
    const till = facilitator === null ? null : payments({ ...needs, facilitator })
    /** Proofs in hand, so that the same one is judged once however often it comes. */
    const inHand = new Map<string, Promise<Verdict>>()

    /** Buyers name a link and no tenant. */
    async function linkOf(
      { linkToken }: X402Order,
      signal: AbortSignal,
    ): Promise<Found | undefined> {
      if (till === null || !TOKEN.test(linkToken)) return undefined
      return database.system(
        async (tx) => {
          const link = await findPaymentLink(tx, linkToken)
          if (link === undefined) return undefined
          const price = await findOffer(tx, link.priceId)
          const tenant = await findTenantWithSettings(tx, link.tenantId)
          const payees = tenant?.status === 'active' ? payeesOf(tenant) : null
          return price && { link, price, payees }
        },
        { signal },
      )
    }

    /** What an order is about. */
    function saleOf({ link, price, payees }: Found, order: X402Order): Sale | OrderFault {
      const { linkToken, buyerCountry, buyerRegion } = order
      const { tenantId, quantity, metadata, x402: terms } = link
      const { currency, productId } = price
      const amountMinor = price.amountMinor * quantity
      // What is paid again and again cannot be authorized once.
      const isForSale = link.active && price.active && price.productActive
      if (
        payees === null ||
        !isForSale ||
        price.interval !== null ||
        amountMinor > AMOUNT_MINOR_MAX
      )
        return UNKNOWN
      const offers = offersOf(termsOf(terms), { amountMinor, currency }, payees, needs)
      if (offers.length === 0) return UNKNOWN
      if (buyerCountry === undefined || !COUNTRY.test(buyerCountry)) {
        return { tag: 'invalid_buyer', parameter: 'buyer_country' }
      }
      if (buyerRegion === undefined || !REGION.test(buyerRegion)) {
        return { tag: 'invalid_buyer', parameter: 'buyer_region' }
      }
      const path = `/api/v1/public/commerce/payment-links/${linkToken}/x402`
      return {
        tenantId,
        offers,
        resource: { url: needs.baseUrl + path, description: price.productName },
        bill: {
          amountMinor,
          currency,
          quantity,
          metadata,
          productId,
          priceId: price.id,
          paymentLinkId: link.id,
          buyerCountry: buyerCountry.toUpperCase(),
          buyerRegion: buyerRegion.toUpperCase(),
        },
      }
    }

    function challenge(error: string, { resource, offers }: Sale): PaymentChallenge {
      metrics.challenges.inc()
      const required = paymentRequired(error, resource, offers)
      const older = v1 ? paymentRequiredV1(error, resource, offers) : undefined
      return { header: encodeField(required), body: older ?? required }
    }

    function refused(sale: Sale, proof: Proof, reason: ErrorReason): PayOutcome {
      const settlement = { ...settlementOf(proof), success: false, errorReason: reason }
      return { tag: 'refused', challenge: challenge(reason, sale), settlement }
    }

    /** Judges the proof as far as that can be done here, then has it carried out. */
    async function judge(
      sale: Sale,
      proof: Proof,
      errand: Parameters<ReturnType<typeof payments>['carryOut']>[1],
    ): Promise<Verdict> {
      const { tenantId, bill, offers, resource } = sale
      const known = await till!.known(tenantId, bill.paymentLinkId, proof)
      if (known !== undefined) return known
      const matched = matchOffer(proof.accepted, offers)
      if (matched.tag === 'mismatch') return { tag: 'refused', reason: matched.reason }
      const { offer } = matched
      const nowSecs = Math.floor(clock.now().getTime() / 1000)
      const fault = authorizationFault(proof.authorization, offer, nowSecs)
      if (fault !== null) return { tag: 'refused', reason: fault }
      if (!(await isSigned(proof, offer))) {
        return { tag: 'refused', reason: 'invalid_exact_evm_payload_signature' }
      }
      return till!.carryOut({ tenantId, bill, offer, resource, proof }, errand)
    }

    async function isSigned({ signature, authorization }: Proof, offer: Offer): Promise<boolean> {
      if (!isPlainSignature(signature)) return false
      const { name, version, address: verifyingContract } = offer.asset
      const domain = { name, version, chainId: chainOf(offer), verifyingContract }
      return compute.run('isSignedByPayer', { domain, authorization, signature })
    }

    /** Everybody with the same proof for the same link waits for one judgement. */
    function judgeOnce(...args: Parameters<typeof judge>): Promise<Verdict> {
      const [sale, proof] = args
      const hashes = [proof.proofSha256, proof.payloadSha256].map((hash) => hash.toString('hex'))
      const key = [sale.bill.paymentLinkId, ...hashes].join(' ')
      let judged = inHand.get(key)
      if (judged === undefined) {
        judged = judge(...args).finally(() => inHand.delete(key))
        inHand.set(key, judged)
      }
      return judged
    }

    /** What a proof led to while its link was still for sale. */
    async function remembered({ link }: Found, order: PayOrder): Promise<PayOutcome | undefined> {
      const read = proofOf(order, v1)
      if (read?.tag !== 'proof') return undefined
      const verdict = await till!.known(link.tenantId, link.id, read.proof)
      return verdict?.tag === 'settled' || verdict?.tag === 'pending'
        ? answerTo(verdict)
        : undefined
    }

    async function answerTo(
      verdict: Extract<Verdict, { tag: 'settled' | 'pending' }>,
    ): Promise<PayOutcome> {
      const { payment } = verdict
      return verdict.tag === 'settled'
        ? settled(payment)
        : { tag: 'pending', chargeId: payment.chargeId }
    }

    return {
      ...resolutions(needs),

      async challenge(order, { signal }) {
        const found = await linkOf(order, signal)
        const sale = found === undefined ? UNKNOWN : saleOf(found, order)
        if ('tag' in sale) return sale
        return { tag: 'payment_required', challenge: challenge(PROOF_MISSING, sale) }
      },

      async pay(order, { signal, requestId, log }) {
        const found = await linkOf(order, signal)
        if (found === undefined) return UNKNOWN
        const sale = saleOf(found, order)
        if ('tag' in sale) {
          return sale.tag === 'unknown' ? ((await remembered(found, order)) ?? sale) : sale
        }
        const read = proofOf(order, v1)
        if (read === undefined) {
          return { tag: 'payment_required', challenge: challenge(PROOF_MISSING, sale) }
        }
        if (read.tag === 'malformed') {
          metrics.payments.inc({ outcome: 'malformed' })
          return read
        }
        const { proof } = read
        const verdict = await judgeOnce(sale, proof, { requestId, log })
        metrics.payments.inc({ outcome: verdict.tag })
        switch (verdict.tag) {
          case 'settled':
          case 'pending':
            return answerTo(verdict)
          case 'refused':
            return refused(sale, proof, verdict.reason)
          default:
            return verdict
        }
      },
    }

    /** The answer to a payment that is settled, now and whenever its proof comes again. */
    async function settled(payment: X402PaymentRow): Promise<PayOutcome> {
      const { tenantId, chargeId, transaction, payer, amount, version } = payment
      const charge = await database.tenant(tenantId, (tx) => findCharge(tx, tenantId, chargeId))
      if (charge === undefined) throw new Error('a settled payment has no charge')
      const { amountMinor, currency, metadata } = charge
      const network = version === 1 ? v1NetworkOf(payment.network)! : payment.network
      const settlement = { success: true, transaction: transaction!, network, payer, amount }
      return { tag: 'settled', chargeId, amountMinor, currency, metadata, settlement }
    }
  },
})

function settlementOf({ accepted, authorization }: Proof) {
  return { transaction: '', network: accepted.network, payer: authorization.from }
}

/** The proof that was sent, if one was; fields of both versions say two things. */
function proofOf({ proof, proofV1 }: PayOrder, v1: boolean) {
  const older = v1 ? proofV1 : undefined
  if (proof !== undefined && older !== undefined) {
    const detail = 'PAYMENT-SIGNATURE and X-PAYMENT may not come together.'
    return { tag: 'malformed', pointer: '', detail } as const
  }
  if (proof !== undefined) return readProof(proof, 2)
  return older === undefined ? undefined : readProof(older, 1)
}
