/**
 * Carries a payment out, once: it is verified here, claimed by its authorization, verified by the
 * facilitator, charged as pending, and settled. Concurrent and later requests with the same proof
 * get the same outcome. If the holder dies, the reconciliation finishes the payment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  claimX402Payment,
  dropX402Payment,
  findX402Payment,
  findX402PaymentByIdentifier,
  findX402PaymentByProof,
  type NewX402Payment,
  takeOverX402Payment,
  type X402PaymentRow,
} from '../../../storage/commerce/x402-payments.js'
import type { Chain } from './chain.js'
import {
  type Bill,
  confirmed,
  endings,
  expectedOf,
  type Held,
  patientLook,
  type Target,
  targetOfBill,
} from './endings.js'
import type { Facilitator, Settlement, Verification } from './facilitator.js'
import type { X402Metrics } from './metrics.js'
import { facilitatorRequest, type FacilitatorRequest, type Offer, type Resource } from './offers.js'
import type { Proof } from './proof.js'
import type { ErrorReason } from './reasons.js'

/** Lease time of a holder beyond the timeouts of its requests. */
const LEASE_MARGIN_SECS = 5
/** Delay of the first check of an unknown outcome. */
const LOOK_AFTER_SECS = 2
const POLL_MS = 150
const CONFIRM_POLL_MS = 250

export type Timing = {
  readonly verifyMs: number
  readonly settleMs: number
  /** Time limit for the chain to confirm a settlement, in milliseconds. */
  readonly confirmMs: number
}

export type PaymentNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
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

export type Errand = { readonly requestId: string | undefined; readonly log: Logger }

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

export function payments(needs: PaymentNeeds) {
  const { database, clock, random, facilitator, chains, timing, metrics } = needs
  const ends = endings(needs)
  const verifyLeaseSecs = Math.ceil(timing.verifyMs / 1000) + LEASE_MARGIN_SECS
  const settleLeaseSecs = Math.ceil((timing.settleMs + timing.confirmMs) / 1000) + LEASE_MARGIN_SECS
  const patienceMs = timing.verifyMs + timing.settleMs

  /**
   * The outcome that this proof, or its identifier, has had before. Waits for a holder that still
   * works on it.
   * @returns undefined when there is none.
   */
  async function known(
    tenantId: string,
    target: Target,
    proof: Pick<Proof, 'proofSha256' | 'payloadSha256' | 'paymentId'>,
  ): Promise<Verdict | undefined> {
    const endMs = clock.monotonicMs() + patienceMs
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
      const inHand = row.state === 'settling' && row.held
      if (!inHand || clock.monotonicMs() >= endMs) return verdictOf(row) ?? undefined
      await sleep(POLL_MS)
    }
  }

  /** Claims the authorization for this purchase and completes it. */
  async function carryOut(purchase: Purchase, errand: Errand): Promise<Verdict> {
    const payment = rowOf(purchase)
    const lease = random.uuid()
    const { tenantId } = payment
    const claimed = await database.tenant(tenantId, (tx) =>
      claimX402Payment(tx, payment, lease, verifyLeaseSecs),
    )
    if (claimed) return see(payment, lease, purchase, errand)
    return findOut(payment, purchase, errand)
  }

  /**
   * The authorization is claimed already. Waits for the outcome, and takes over if the holder died.
   */
  async function findOut(payment: Claim, purchase: Purchase, errand: Errand): Promise<Verdict> {
    const { tenantId } = payment
    const endMs = clock.monotonicMs() + patienceMs
    for (;;) {
      const lease = random.uuid()
      const { row, named, mine } = await database.tenant(tenantId, async (tx) => {
        const row = await findX402Payment(tx, tenantId, payment)
        const isSame = row !== undefined && isSamePayment(row, payment)
        return {
          row,
          named:
            row !== undefined || payment.paymentIdentifier === null
              ? undefined
              : await findX402PaymentByIdentifier(tx, tenantId, payment.paymentIdentifier),
          mine:
            isSame &&
            row.state === 'verifying' &&
            (await takeOverX402Payment(tx, tenantId, row.id, lease, verifyLeaseSecs)),
        }
      })
      if (named !== undefined) return { tag: 'identifier_reused' }
      // Not visible: the payment belongs to another tenant, or was dropped a moment ago.
      if (row === undefined) return SPENT
      if (!isSamePayment(row, payment)) return SPENT
      if (mine)
        return see({ ...payment, id: row.id, chargeId: row.chargeId }, lease, purchase, errand)
      const verdict = verdictOf(row)
      if (verdict !== null && verdict.tag !== 'pending') return verdict
      if (verdict !== null && !row.held) return verdict
      if (clock.monotonicMs() >= endMs) return verdict ?? UNAVAILABLE
      await sleep(POLL_MS)
    }
  }

  /** Verifies, charges and settles a payment that this process holds. */
  async function see(
    payment: Claim,
    lease: string,
    { bill }: Purchase,
    { requestId, log }: Errand,
  ): Promise<Verdict> {
    const { tenantId, id } = payment
    const held: Held = { ...payment, lease }
    const request = payment.request as FacilitatorRequest
    const verification = await timed('verify', () => facilitator.verify(request, expectedOf(held)))
    if (verification.tag !== 'valid') {
      await database.tenant(tenantId, (tx) => dropX402Payment(tx, tenantId, id, lease))
      if (verification.tag === 'invalid') return { tag: 'refused', reason: verification.reason }
      log.warn({ error: verification.error }, 'x402: facilitator unavailable for verification')
      return UNAVAILABLE
    }
    const begun = await ends.begin(held, bill, settleLeaseSecs, requestId)
    if (begun === 'lost') return lost(payment)
    if (begun === 'taken') {
      await database.tenant(tenantId, (tx) => dropX402Payment(tx, tenantId, id, lease))
      return { tag: 'not_open' }
    }
    const said = await timed('settle', () => facilitator.settle(request, expectedOf(held)))
    const settlement = await confirmed(said, lookAt(held))
    return conclude(held, payment, settlement, { requestId, log })
  }

  async function conclude(
    held: Held,
    payment: Claim,
    settlement: Settlement,
    { requestId, log }: Errand,
  ): Promise<Verdict> {
    const { chargeId } = held
    if (settlement.tag === 'settled') {
      const { transaction } = settlement
      if (!(await ends.settled(held, transaction, requestId))) return lost(payment)
      log.info({ charge_id: chargeId, transaction }, 'x402: settled')
      return { tag: 'settled', payment: asRow(payment, 'settled', transaction) }
    }
    if (settlement.tag === 'failed') {
      if (!(await ends.failed(held, settlement.reason, requestId))) return lost(payment)
      log.info({ charge_id: chargeId, reason: settlement.reason }, 'x402: payment failed')
      return { tag: 'refused', reason: settlement.reason }
    }
    const { error, transaction } =
      settlement.tag === 'unknown' ? settlement : { error: 'spent', transaction: null }
    if (!(await ends.postponed(held, LOOK_AFTER_SECS, transaction))) return lost(payment)
    log.warn({ charge_id: chargeId, error }, 'x402: settlement outcome unknown')
    return { tag: 'pending', payment: asRow(payment, 'unknown', transaction) }
  }

  /** Our lease expired and another worker holds the payment: its outcome counts. */
  async function lost(payment: Claim): Promise<Verdict> {
    const { tenantId } = payment
    const row = await database.tenant(tenantId, (tx) => findX402Payment(tx, tenantId, payment))
    return (row === undefined ? undefined : verdictOf(row)) ?? UNAVAILABLE
  }

  function lookAt(held: Held) {
    const chain = chains.get(held.network)
    if (chain === undefined) return null
    const pause = () => sleep(CONFIRM_POLL_MS)
    return patientLook(chain, held, { withinMs: timing.confirmMs, clock, pause })
  }

  async function timed<Answer extends Verification | Settlement>(
    operation: 'verify' | 'settle',
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const startMs = clock.monotonicMs()
    const answer = await ask()
    const secs = (clock.monotonicMs() - startMs) / 1000
    metrics.facilitator.observe({ operation, outcome: answer.tag }, secs)
    return answer
  }

  function rowOf({ tenantId, bill, offer, resource, proof }: Purchase): Claim {
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

  return { known, carryOut }
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
