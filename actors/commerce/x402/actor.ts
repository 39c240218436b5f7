/**
 * Sells payment links and checkout sessions by x402: states the price, verifies payment proofs and
 * has them settled.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import { findCharge } from '../../../storage/commerce/charges.js'
import type { X402PaymentRow } from '../../../storage/commerce/x402-payments.js'
import { v1NetworkOf } from './assets.js'
import {
  authorizationFault,
  isPlainSignature,
  isSignatureBeforeDeployment,
} from './authorization.js'
import { chainOf, matchOffer, type Offer, paymentRequired, paymentRequiredV1 } from './offers.js'
import { targetOfBill } from './endings.js'
import { payments, type Verdict } from './payments.js'
import { encodeField, type Proof, readProof } from './proof.js'
import {
  type PaymentChallenge,
  type PayOrder,
  type PayOutcome,
  type X402Order,
  type X402Protocol,
  x402,
} from './protocol.js'
import type { ErrorReason } from './reasons.js'
import { resolutions } from './resolution.js'
import { type Found, findOrdered, type Sale, saleOf, targetOf } from './sales.js'
import type { X402Needs } from './needs.js'

const CAPACITY = 2048
const INFLIGHT_MAX = 1024
/** A signature check takes about two milliseconds. */
const BATCH_MAX = 8

const PROOF_MISSING = 'PAYMENT-SIGNATURE header is required'
const UNKNOWN = { tag: 'unknown' } as const

/** Options of the pool behind `X402Needs.compute`. No thread starts before the first signature. */
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

/**
 * A contract account (EIP-1271) decides what its signatures are, 65 bytes or not. Only the chain can verify them, so the
 * facilitator does, unless the watched chain has no contract at the address of the payer.
 */
async function mayBeOfContract(
  { chains }: Pick<X402Needs, 'chains'>,
  { signature, authorization }: Proof,
  { asset }: Offer,
): Promise<boolean> {
  if (isSignatureBeforeDeployment(signature)) return true
  const hasCode = await chains.get(asset.network)?.hasCode(authorization.from)
  return hasCode ?? true
}

export const x402Actor = defineActor<X402Protocol, X402Needs>({
  address: x402,
  asks: {},
  mailbox: { capacity: CAPACITY, inflightMax: INFLIGHT_MAX },
  lane: { resolveX402Payment: ({ id }) => id },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, compute, facilitator, metrics, v1 } = needs
    const paymentFlow = facilitator === null ? null : payments({ ...needs, facilitator })
    /** Proofs in progress, so that concurrent requests with the same proof share one judgement. */
    const inProgress = new Map<string, Promise<Verdict>>()

    const settings = () => ({
      assets: needs.assets,
      maxTimeoutSecs: needs.maxTimeoutSecs,
      baseUrl: needs.baseUrl,
      now: clock.now(),
    })

    async function ordered(order: X402Order, signal: AbortSignal): Promise<Found | undefined> {
      return paymentFlow === null ? undefined : findOrdered(database, order, signal)
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

    /**
     * Verifies the proof as far as possible without the facilitator, then has the payment carried
     * out.
     */
    async function judge(
      sale: Sale,
      proof: Proof,
      paymentContext: Parameters<ReturnType<typeof payments>['execute']>[1],
    ): Promise<Verdict> {
      const { tenantId, bill, offers, resource } = sale
      const known = await paymentFlow!.known(tenantId, targetOfBill(bill), proof)
      if (known !== undefined) return known
      const matched = matchOffer(proof.accepted, offers)
      if (matched.tag === 'mismatch') return { tag: 'refused', reason: matched.reason }
      const { offer } = matched
      const nowSecs = Math.floor(clock.now().getTime() / 1000)
      const fault = authorizationFault(proof.authorization, offer, nowSecs)
      if (fault !== null) return { tag: 'refused', reason: fault }
      if (!(await isSignedByKey(proof, offer)) && !(await mayBeOfContract(needs, proof, offer))) {
        return { tag: 'refused', reason: 'invalid_exact_evm_payload_signature' }
      }
      return paymentFlow!.execute({ tenantId, bill, offer, resource, proof }, paymentContext)
    }

    async function isSignedByKey({ signature, authorization }: Proof, offer: Offer) {
      if (!isPlainSignature(signature)) return false
      const { name, version, address: verifyingContract } = offer.asset
      const domain = { name, version, chainId: chainOf(offer), verifyingContract }
      return compute.run('isSignedByPayer', { domain, authorization, signature })
    }

    /** Concurrent requests with the same proof for the same target wait for one judgement. */
    function judgeOnce(...args: Parameters<typeof judge>): Promise<Verdict> {
      const [sale, proof] = args
      const hashes = [proof.proofSha256, proof.payloadSha256].map((hash) => hash.toString('hex'))
      const { paymentLinkId, checkoutSessionId } = targetOfBill(sale.bill)
      const key = [paymentLinkId, checkoutSessionId, ...hashes].join(' ')
      let judged = inProgress.get(key)
      if (judged === undefined) {
        judged = judge(...args).finally(() => inProgress.delete(key))
        inProgress.set(key, judged)
      }
      return judged
    }

    /** The stored outcome of a proof whose link or session may be inactive by now. */
    async function remembered(found: Found, order: PayOrder): Promise<PayOutcome | undefined> {
      const read = proofOf(order, v1)
      if (read?.tag !== 'proof') return undefined
      const verdict = await paymentFlow!.known(found.tenantId, targetOf(found), read.proof)
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

      async getX402Challenge(order, { signal }) {
        const found = await ordered(order, signal)
        const sale = found === undefined ? UNKNOWN : saleOf(found, order, settings())
        if ('tag' in sale) return sale
        return { tag: 'payment_required', challenge: challenge(PROOF_MISSING, sale) }
      },

      async payByX402(order, { signal, requestId, log }) {
        const found = await ordered(order, signal)
        if (found === undefined) return UNKNOWN
        const sale = saleOf(found, order, settings())
        if ('tag' in sale) {
          if (sale.tag === 'invalid_buyer') return sale
          return (await remembered(found, order)) ?? sale
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

    /** The response for a settled payment, at first and whenever the same proof is sent again. */
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

/** The proof that was sent, if any. Sending the fields of both versions is contradictory. */
function proofOf({ proof, proofV1 }: PayOrder, v1: boolean) {
  const older = v1 ? proofV1 : undefined
  if (proof !== undefined && older !== undefined) {
    const detail = 'Send either PAYMENT-SIGNATURE or X-PAYMENT, not both.'
    return { tag: 'malformed', pointer: '', detail } as const
  }
  if (proof !== undefined) return readProof(proof, 2)
  return older === undefined ? undefined : readProof(older, 1)
}
