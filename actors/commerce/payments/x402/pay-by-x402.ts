/** States what a payment link or checkout session costs by x402, and judges the proofs that pay it. */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import { findCharge } from '../../../../storage/commerce/charges.js'
import type { X402PaymentRow } from '../../../../storage/commerce/x402-payments.js'
import { v1NetworkOf } from '../../../domain/commerce/assets.js'
import {
  authorizationFault,
  isPlainSignature,
  isSignatureBeforeDeployment,
} from './authorization.js'
import { targetOfBill } from './endings.js'
import type { Facilitator } from './facilitator.js'
import type { X402Needs } from './needs.js'
import { chainOf, matchOffer, type Offer, paymentRequired, paymentRequiredV1 } from './offers.js'
import { execute, knownVerdict, type PaymentContext, type Verdict } from './payments.js'
import { encodeField } from '../../../domain/commerce/x402.js'
import { type Proof, readProof } from './proof.js'
import type { PaymentChallenge, PayOrder, PayOutcome, X402Order, X402Protocol } from './protocol.js'
import type { ErrorReason } from './reasons.js'
import { type Found, findOrdered, type Sale, saleOf, targetOf } from './sales.js'

const PROOF_MISSING = 'PAYMENT-SIGNATURE header is required'
const UNKNOWN = { tag: 'unknown' } as const

export type PayNeeds = X402Needs & {
  /** Concurrent requests with the same proof share one judgement. */
  readonly inProgress: Map<string, Promise<Verdict>>
}
/** Where x402 is enabled. */
type JudgeNeeds = PayNeeds & { readonly facilitator: Facilitator }

// Also the operation `getCheckoutX402Challenge`.
export const getX402Challenge: Handler<X402Needs, X402Protocol, 'getX402Challenge'> = async (
  needs,
  order,
  { signal },
) => {
  const found = await ordered(needs, order, signal)
  const sale = found === undefined ? UNKNOWN : saleIn(needs, found, order)
  return 'tag' in sale ? sale : proofMissing(needs, sale)
}

// Also the operation `payCheckoutByX402`.
export const payByX402: Handler<PayNeeds, X402Protocol, 'payByX402'> = async (
  needs,
  order,
  context,
) => {
  const { facilitator, metrics, v1 } = needs
  const found = await ordered(needs, order, context.signal)
  if (found === undefined || facilitator === null) return UNKNOWN
  const sale = saleIn(needs, found, order)
  if ('tag' in sale) {
    if (sale.tag === 'invalid_buyer') return sale
    return (await remembered(needs, found, order)) ?? sale
  }
  const read = proofOf(order, v1)
  if (read === undefined) return proofMissing(needs, sale)
  if (read.tag === 'malformed') {
    metrics.payments.inc({ outcome: 'malformed' })
    return read
  }
  const { proof } = read
  const verdict = await judgeOnce({ ...needs, facilitator }, sale, proof, context)
  metrics.payments.inc({ outcome: verdict.tag })
  switch (verdict.tag) {
    case 'settled':
    case 'pending':
      return answerTo(needs, verdict)
    case 'refused':
      return refused(needs, sale, proof, verdict.reason)
    default:
      return verdict
  }
}

async function ordered(
  { database, facilitator }: X402Needs,
  order: X402Order,
  signal: AbortSignal,
): Promise<Found | undefined> {
  return facilitator === null ? undefined : findOrdered(database, order, signal)
}

function saleIn(needs: X402Needs, found: Found, order: X402Order) {
  return saleOf(found, order, { ...needs, now: needs.clock.now() })
}

function challenge(
  { metrics, v1 }: X402Needs,
  error: string,
  { resource, offers }: Sale,
): PaymentChallenge {
  metrics.challenges.inc()
  const required = paymentRequired(error, resource, offers)
  const older = v1 ? paymentRequiredV1(error, resource, offers) : undefined
  return { header: encodeField(required), body: older ?? required }
}

function proofMissing(needs: X402Needs, sale: Sale) {
  return { tag: 'payment_required', challenge: challenge(needs, PROOF_MISSING, sale) } as const
}

function refused(needs: X402Needs, sale: Sale, proof: Proof, reason: ErrorReason): PayOutcome {
  const { accepted, authorization } = proof
  const settlement = {
    transaction: '',
    network: accepted.network,
    payer: authorization.from,
    success: false,
    errorReason: reason,
  }
  return { tag: 'refused', challenge: challenge(needs, reason, sale), settlement }
}

/** Concurrent requests with the same proof for the same target wait for one judgement. */
function judgeOnce(
  needs: JudgeNeeds,
  sale: Sale,
  proof: Proof,
  { requestId, log }: MessageContext,
): Promise<Verdict> {
  const { inProgress } = needs
  const hashes = [proof.proofSha256, proof.payloadSha256].map((hash) => hash.toString('hex'))
  const { paymentLinkId, checkoutSessionId } = targetOfBill(sale.bill)
  const key = [paymentLinkId, checkoutSessionId, ...hashes].join(' ')
  let judged = inProgress.get(key)
  if (judged === undefined) {
    const context = { requestId, log }
    judged = judge(needs, sale, proof, context).finally(() => inProgress.delete(key))
    inProgress.set(key, judged)
  }
  return judged
}

/**
 * Verifies the proof as far as possible without the facilitator, then has the payment carried out.
 */
async function judge(
  needs: JudgeNeeds,
  { tenantId, bill, offers, resource }: Sale,
  proof: Proof,
  context: PaymentContext,
): Promise<Verdict> {
  const known = await knownVerdict(needs, tenantId, targetOfBill(bill), proof)
  if (known !== undefined) return known
  const matched = matchOffer(proof.accepted, offers)
  if (matched.tag === 'mismatch') return { tag: 'refused', reason: matched.reason }
  const { offer } = matched
  const fault = authorizationFault(proof.authorization, offer, needs.clock.nowSecs())
  if (fault !== undefined) return { tag: 'refused', reason: fault }
  if (
    !(await isSignedByKey(needs, proof, offer)) &&
    !(await mayBeOfContract(needs, proof, offer))
  ) {
    return { tag: 'refused', reason: 'invalid_exact_evm_payload_signature' }
  }
  return execute(needs, { tenantId, bill, offer, resource, proof }, context)
}

async function isSignedByKey(
  { compute }: X402Needs,
  { signature, authorization }: Proof,
  offer: Offer,
): Promise<boolean> {
  if (!isPlainSignature(signature)) return false
  const { name, version, address: verifyingContract } = offer.asset
  const domain = { name, version, chainId: chainOf(offer), verifyingContract }
  return compute.run('isSignedByPayer', { domain, authorization, signature })
}

/**
 * A contract account (EIP-1271) decides what its signatures are, 65 bytes or not. Only the chain can verify them, so the
 * facilitator does, unless the watched chain has no contract at the address of the payer.
 */
async function mayBeOfContract(
  { chains }: X402Needs,
  { signature, authorization }: Proof,
  { asset }: Offer,
): Promise<boolean> {
  if (isSignatureBeforeDeployment(signature)) return true
  const hasCode = await chains.get(asset.network)?.hasCode(authorization.from)
  return hasCode ?? true
}

/** The stored outcome of a proof whose link or session may be inactive by now. */
async function remembered(
  needs: X402Needs,
  found: Found,
  order: PayOrder,
): Promise<PayOutcome | undefined> {
  const read = proofOf(order, needs.v1)
  if (read?.tag !== 'proof') return undefined
  const verdict = await knownVerdict(needs, found.tenantId, targetOf(found), read.proof)
  return verdict?.tag === 'settled' || verdict?.tag === 'pending'
    ? answerTo(needs, verdict)
    : undefined
}

/** The response for a payment, at first and whenever the same proof is sent again. */
async function answerTo(
  { database }: X402Needs,
  { tag, payment }: Extract<Verdict, { readonly payment: X402PaymentRow }>,
): Promise<PayOutcome> {
  const { tenantId, chargeId, transaction, payer, amount, version } = payment
  if (tag === 'pending') return { tag, chargeId }
  const charge = await database.tenant(tenantId, (tx) => findCharge(tx, tenantId, chargeId))
  if (charge === undefined) throw new Error('a settled payment has no charge')
  const { amountMinor, currency, metadata } = charge
  const network = version === 1 ? v1NetworkOf(payment.network)! : payment.network
  const settlement = { success: true, transaction: transaction!, network, payer, amount }
  return { tag, chargeId, amountMinor, currency, metadata, settlement }
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
