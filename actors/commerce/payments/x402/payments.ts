/**
 * Carries a payment out, once: it is verified here, claimed by its authorization, verified by the
 * facilitator, charged as pending, and settled. Concurrent and later requests with the same proof
 * get the same outcome. If the holder dies, the reconciliation finishes the payment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../../runtime/kernel/log.js'
import {
  claimX402Payment,
  dropX402Payment,
  findX402Payment,
  findX402PaymentByIdentifier,
  findX402PaymentByProof,
  type NewX402Payment,
  takeOverX402Payment,
  type X402PaymentRow,
} from '../../../../storage/commerce/x402-payments.js'
import type { Chain } from './chain.js'
import {
  beginPayment,
  type Bill,
  confirmed,
  expectedOf,
  failPayment,
  type LeasedPayment,
  patientLook,
  postponePayment,
  settlePayment,
  type Target,
  targetOfBill,
} from './endings.js'
import type { Facilitator, SettlementResult, Verification } from './facilitator.js'
import type { X402Metrics } from './metrics.js'
import { facilitatorRequest, type FacilitatorRequest, type Offer, type Resource } from './offers.js'
import type { Proof } from './proof.js'
import type { ErrorReason } from './reasons.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** Lease time of a holder beyond the timeouts of its requests. */
const LEASE_MARGIN_SECS = 5
/** Delay of the first check of an unknown outcome. */
const FIRST_CHECK_SECS = 2
const POLL_MS = 150
const CONFIRM_POLL_MS = 250

export type Timing = {
  readonly verifyMs: number
  readonly settleMs: number
  /** Time limit for the chain to confirm a settlement, in milliseconds. */
  readonly confirmMs: number
}

type PaymentNeeds = WriteNeeds & {
  readonly facilitator: Facilitator
  /** The watched chains, by network. */
  readonly chains: ReadonlyMap<string, Chain>
  readonly timing: Timing
  readonly metrics: X402Metrics
}

export type Purchase = {
  readonly tenantId: string
  readonly bill: Bill
  readonly offer: Offer
  readonly resource: Resource
  readonly proof: Proof
}

export type PaymentContext = { readonly requestId: string | undefined; readonly log: Logger }

export type Verdict =
  | { readonly tag: 'settled'; readonly payment: X402PaymentRow }
  | { readonly tag: 'pending'; readonly payment: X402PaymentRow }
  | { readonly tag: 'refused'; readonly reason: ErrorReason }
  | { readonly tag: 'identifier_reused' }
  /** The session is paid by another payment, or cannot be paid any more. */
  | { readonly tag: 'not_open' }
  | { readonly tag: 'unavailable' }

const SPENT = { tag: 'refused', reason: 'invalid_transaction_state' } as const
const UNAVAILABLE = { tag: 'unavailable' } as const

/**
 * The outcome that this proof, or its identifier, has had before. Waits for a holder that still
 * works on it.
 * @returns undefined if it had none.
 */
export async function knownVerdict(
  { database, clock, timing }: Pick<PaymentNeeds, 'database' | 'clock' | 'timing'>,
  tenantId: string,
  target: Target,
  proof: Pick<Proof, 'proofSha256' | 'payloadSha256' | 'paymentId'>,
): Promise<Verdict | undefined> {
  const endMs = clock.monotonicMs() + patienceMs(timing)
  for (;;) {
    const [row, named] = await database.tenant(tenantId, async (tx) => [
      await findX402PaymentByProof(tx, tenantId, proof.proofSha256),
      proof.paymentId === null
        ? undefined
        : await findX402PaymentByIdentifier(tx, tenantId, proof.paymentId),
    ])
    if (named !== undefined && !named.payloadSha256.equals(proof.payloadSha256)) {
      return { tag: 'identifier_reused' }
    }
    if (row === undefined) return undefined
    if (!pays(row, target)) return SPENT
    const inProgress = row.state === 'settling' && row.held
    if (!inProgress || clock.monotonicMs() >= endMs) return verdictOf(row) ?? undefined
    await sleep(POLL_MS)
  }
}

/** Claims the authorization for this purchase and completes it. */
export async function execute(
  needs: PaymentNeeds,
  purchase: Purchase,
  context: PaymentContext,
): Promise<Verdict> {
  const payment = claimOf(needs, purchase)
  const lease = needs.random.uuid()
  const claimed = await needs.database.tenant(payment.tenantId, (tx) =>
    claimX402Payment(tx, payment, lease, verifyLeaseSecs(needs.timing)),
  )
  if (claimed) return carryOut(needs, payment, lease, purchase, context)
  return awaitOutcome(needs, payment, purchase, context)
}

/**
 * The authorization is claimed already. Waits for the outcome, and takes over if the holder died.
 */
async function awaitOutcome(
  needs: PaymentNeeds,
  payment: Claim,
  purchase: Purchase,
  context: PaymentContext,
): Promise<Verdict> {
  const { clock, random, timing } = needs
  const endMs = clock.monotonicMs() + patienceMs(timing)
  for (;;) {
    const lease = random.uuid()
    const { row, named, mine } = await look(needs, payment, lease)
    if (named !== undefined) return { tag: 'identifier_reused' }
    // Not visible: the payment belongs to another tenant, or was dropped a moment ago.
    if (row === undefined) return SPENT
    if (!isSamePayment(row, payment)) return SPENT
    if (mine) {
      const { id, chargeId } = row
      return carryOut(needs, { ...payment, id, chargeId }, lease, purchase, context)
    }
    const verdict = verdictOf(row)
    if (verdict !== null && verdict.tag !== 'pending') return verdict
    if (verdict !== null && !row.held) return verdict
    if (clock.monotonicMs() >= endMs) return verdict ?? UNAVAILABLE
    await sleep(POLL_MS)
  }
}

/** The stored payment, or another one with its identifier. `mine`: taken over from a dead holder. */
function look({ database, timing }: PaymentNeeds, payment: Claim, lease: string) {
  const { tenantId, paymentIdentifier } = payment
  return database.tenant(tenantId, async (tx) => {
    const row = await findX402Payment(tx, tenantId, payment)
    const isSame = row !== undefined && isSamePayment(row, payment)
    const named =
      row !== undefined || paymentIdentifier === null
        ? undefined
        : await findX402PaymentByIdentifier(tx, tenantId, paymentIdentifier)
    const mine =
      isSame &&
      row.state === 'verifying' &&
      (await takeOverX402Payment(tx, tenantId, row.id, lease, verifyLeaseSecs(timing)))
    return { row, named, mine }
  })
}

/** Verifies, charges and settles a payment that this process holds. */
async function carryOut(
  needs: PaymentNeeds,
  payment: Claim,
  lease: string,
  { bill }: Purchase,
  { requestId, log }: PaymentContext,
): Promise<Verdict> {
  const { database, facilitator, timing } = needs
  const { tenantId, id } = payment
  const leased: LeasedPayment = { ...payment, lease }
  const request = payment.request as FacilitatorRequest
  const drop = () => database.tenant(tenantId, (tx) => dropX402Payment(tx, tenantId, id, lease))
  const verification = await timed(needs, 'verify', () =>
    facilitator.verify(request, expectedOf(leased)),
  )
  if (verification.tag !== 'valid') {
    await drop()
    if (verification.tag === 'invalid') return { tag: 'refused', reason: verification.reason }
    log.warn({ error: verification.error }, 'x402: facilitator unavailable for verification')
    return UNAVAILABLE
  }
  const begun = await beginPayment(needs, leased, bill, settleLeaseSecs(timing), requestId)
  if (begun === 'lost') return lost(needs, payment)
  if (begun === 'taken') {
    await drop()
    return { tag: 'not_open' }
  }
  const result = await timed(needs, 'settle', () => facilitator.settle(request, expectedOf(leased)))
  const settlement = await confirmed(result, lookAt(needs, leased))
  return conclude(needs, leased, payment, settlement, { requestId, log })
}

async function conclude(
  needs: PaymentNeeds,
  leased: LeasedPayment,
  payment: Claim,
  settlement: SettlementResult,
  { requestId, log }: PaymentContext,
): Promise<Verdict> {
  const { chargeId } = leased
  if (settlement.tag === 'settled') {
    const { transaction } = settlement
    if (!(await settlePayment(needs, leased, transaction, requestId))) return lost(needs, payment)
    log.info({ charge_id: chargeId, transaction }, 'x402: settled')
    return { tag: 'settled', payment: asRow(payment, 'settled', transaction) }
  }
  if (settlement.tag === 'failed') {
    const { reason } = settlement
    if (!(await failPayment(needs, leased, reason, requestId))) return lost(needs, payment)
    log.info({ charge_id: chargeId, reason }, 'x402: payment failed')
    return { tag: 'refused', reason }
  }
  const { error, transaction } =
    settlement.tag === 'unknown' ? settlement : { error: 'spent', transaction: null }
  const postponed = await postponePayment(needs, leased, FIRST_CHECK_SECS, transaction)
  if (!postponed) return lost(needs, payment)
  log.warn({ charge_id: chargeId, error }, 'x402: settlement outcome unknown')
  return { tag: 'pending', payment: asRow(payment, 'unknown', transaction) }
}

/** Our lease expired and another worker holds the payment: its outcome counts. */
async function lost({ database }: PaymentNeeds, payment: Claim): Promise<Verdict> {
  const { tenantId } = payment
  const row = await database.tenant(tenantId, (tx) => findX402Payment(tx, tenantId, payment))
  return (row === undefined ? undefined : verdictOf(row)) ?? UNAVAILABLE
}

function lookAt({ chains, clock, timing }: PaymentNeeds, leased: LeasedPayment) {
  const chain = chains.get(leased.network)
  if (chain === undefined) return null
  const pause = () => sleep(CONFIRM_POLL_MS)
  return patientLook(chain, leased, { withinMs: timing.confirmMs, clock, pause })
}

async function timed<Answer extends Verification | SettlementResult>(
  { clock, metrics }: PaymentNeeds,
  operation: 'verify' | 'settle',
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const startMs = clock.monotonicMs()
  const answer = await ask()
  const secs = (clock.monotonicMs() - startMs) / 1000
  metrics.facilitator.observe({ operation, outcome: answer.tag }, secs)
  return answer
}

const verifyLeaseSecs = ({ verifyMs }: Timing) => Math.ceil(verifyMs / 1000) + LEASE_MARGIN_SECS
const settleLeaseSecs = ({ settleMs, confirmMs }: Timing) =>
  Math.ceil((settleMs + confirmMs) / 1000) + LEASE_MARGIN_SECS
const patienceMs = ({ verifyMs, settleMs }: Timing) => verifyMs + settleMs

function claimOf(
  { clock, random }: PaymentNeeds,
  { tenantId, bill, offer, resource, proof }: Purchase,
): Claim {
  const { authorization, version } = proof
  return {
    tenantId,
    id: random.uuid(),
    chargeId: bill.tag === 'link' ? random.uuid() : bill.chargeId,
    ...targetOfBill(bill),
    version,
    network: offer.asset.network,
    asset: offer.asset.address.toLowerCase(),
    payer: authorization.from,
    nonce: authorization.nonce,
    payTo: offer.payTo.toLowerCase(),
    amount: offer.amount,
    validBefore: authorization.validBefore,
    proofSha256: proof.proofSha256,
    payloadSha256: proof.payloadSha256,
    paymentIdentifier: proof.paymentId,
    request: facilitatorRequest(proof, offer, resource),
    createdAt: clock.now(),
  }
}

type Claim = NewX402Payment

function asRow(payment: Claim, state: X402PaymentRow['state'], transaction: string | null) {
  return { ...payment, state, held: false, checks: 0, transaction, errorReason: null }
}

function isSamePayment(row: X402PaymentRow, payment: Claim): boolean {
  return pays(row, payment) && row.proofSha256.equals(payment.proofSha256)
}

function pays(row: Target, { paymentLinkId, checkoutSessionId }: Target): boolean {
  return row.paymentLinkId === paymentLinkId && row.checkoutSessionId === checkoutSessionId
}

/** The verdict for the buyer. @returns null while the payment is only being verified. */
function verdictOf(row: X402PaymentRow): Verdict | null {
  switch (row.state) {
    case 'settled':
      return { tag: 'settled', payment: row }
    case 'failed':
      return { tag: 'refused', reason: row.errorReason as ErrorReason }
    case 'settling':
    case 'unknown':
      return { tag: 'pending', payment: row }
    case 'verifying':
      return null
  }
}
