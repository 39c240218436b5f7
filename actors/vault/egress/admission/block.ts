/** A block of calls, and the part of the limits that it holds (docs/reference/vault.md, Record). */
import type { AuthorityRef } from '../../../../storage/vault/egress-authorities.js'
import type { Holding } from '../../../../storage/vault/egress-blocks.js'
import { portionOf } from './byte-budget.js'

/** Credentials are stamped as used at most this often, and once more when the block is closed. */
const STAMP_MS = 1_000
/** The most that a block holds of the limits of its grant or lease. */
export const HELD_MAX: Holding = { requests: 512, bytes: 16 * 1024 * 1024 }

/** The limits that a block holds a part of. */
export type BlockLimits = { readonly hasRequests: boolean; readonly hasBytes: boolean }

type BlockNeeds = {
  readonly id: string
  readonly credentialId: string
  readonly authority: AuthorityRef
  readonly callsMax: number
  readonly nowMs: number
  /** Null for a grant or lease without limits. */
  readonly limits: BlockLimits | null
  readonly held: Holding
}

const NO_BYTES: { readonly takenBytes: number | null } = { takenBytes: null }

/** A block of calls that this process may send before it records them. */
export class Block {
  readonly id: string
  readonly credentialId: string
  readonly authority: AuthorityRef
  readonly callsMax: number
  readonly limits: BlockLimits | null
  /** Calls that are sent and not recorded. */
  unrecorded = 0
  /** Records of this block's bytes that are not stored, besides records of sent calls. */
  unsettled = 0
  /** No other refill at the same time, and none before this. */
  refillFromMs = 0
  isRefilling = false
  renewedMs: number
  usedMs: number
  stampedMs: number
  isStampDue = false
  #requestsLeft: number
  #bytesLeft: number
  #isRetired = false

  constructor({ id, credentialId, authority, callsMax, nowMs, limits, held }: BlockNeeds) {
    this.id = id
    this.credentialId = credentialId
    this.authority = authority
    this.callsMax = callsMax
    this.limits = limits
    this.renewedMs = nowMs
    this.usedMs = nowMs
    this.stampedMs = nowMs
    this.#requestsLeft = held.requests
    this.#bytesLeft = held.bytes
  }

  /** No call is admitted any more; the block is closed once its calls are recorded. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  /** @returns true the first time. */
  retire(): boolean {
    const isFirst = !this.#isRetired
    this.#isRetired = true
    return isFirst
  }

  get hasRoom(): boolean {
    return this.unrecorded < this.callsMax
  }

  /** True if its row says what it holds, and nothing changes that any more. */
  get isSettled(): boolean {
    return this.unrecorded === 0 && this.unsettled === 0 && !this.isRefilling
  }

  /**
   * Takes one call from what the block holds: a request, the bytes of its body, and a portion for the response.
   * @returns the taken bytes, null if they are not limited; undefined if the block holds too little.
   */
  takeCall(bodyBytes: number): { readonly takenBytes: number | null } | undefined {
    if (this.limits === null) return NO_BYTES
    const { hasRequests, hasBytes } = this.limits
    if (hasRequests && this.#requestsLeft < 1) return undefined
    if (hasBytes && this.#bytesLeft < Math.max(1, bodyBytes)) return undefined
    if (hasRequests) this.#requestsLeft -= 1
    if (!hasBytes) return NO_BYTES
    return { takenBytes: this.#draw(bodyBytes, Number.POSITIVE_INFINITY) }
  }

  /** Takes bytes for a running call, at most `bytesMin` and a portion; 0 when the block holds fewer than `bytesMin`. */
  takeBytes(bytesMin: number, bytesMax: number): number {
    if (this.#isRetired || this.#bytesLeft < bytesMin) return 0
    return this.#draw(bytesMin, bytesMax)
  }

  /** Takes `bytesMin` and a portion, at most `bytesMax`. */
  #draw(bytesMin: number, bytesMax: number): number {
    const portion = portionOf(this.#bytesLeft - bytesMin)
    const taken = Math.min(this.#bytesLeft, bytesMin + portion, bytesMax)
    this.#bytesLeft -= taken
    return taken
  }

  /** Adds what was taken from the limits, or what a call did not use. */
  add({ requests, bytes }: Holding): void {
    this.#requestsLeft += requests
    this.#bytesLeft += bytes
  }

  /** What to take from the limits now; null when the block holds more than half of the most. */
  refillDue(nowMs: number): Holding | null {
    if (this.limits === null || this.isRefilling || this.#isRetired || nowMs < this.refillFromMs)
      return null
    const requests = HELD_MAX.requests - this.#requestsLeft
    const bytes = Math.max(0, HELD_MAX.bytes - this.#bytesLeft)
    const isLow =
      (this.limits.hasRequests && requests * 2 > HELD_MAX.requests) ||
      (this.limits.hasBytes && bytes * 2 > HELD_MAX.bytes)
    return isLow ? { requests, bytes } : null
  }

  /** True if the credential is to be stamped as used with the next record. */
  takeStamp(nowMs: number): boolean {
    this.isStampDue = nowMs - this.stampedMs < STAMP_MS
    if (!this.isStampDue) this.stampedMs = nowMs
    return !this.isStampDue
  }
}
