/**
 * Client of the facilitator, which verifies and settles payments. Its response is accepted only if
 * it matches the payment. Any other response leaves the outcome unknown. x402 v2 section 7.
 */
import { createDialer } from '../../../platform/outbound-http/dialer.js'
import type { ProxySettings } from '../../../platform/outbound-http/proxy-settings.js'
import { createUpstreams } from '../../../platform/outbound-http/upstreams.js'
import { type JsonAnswer, postJson } from '../../../platform/outbound-http/json-post.js'
import type { FacilitatorRequest } from './offers.js'
import { type ErrorReason, reasonOf, refusalBeforeBroadcast, saysSpent } from './reasons.js'

const CONNECT_TIMEOUT_MS = 5_000
const TRANSACTION = /^0x[0-9a-fA-F]{64}$/
const WORDS_CHARS_MAX = 200

export type Verification =
  | { readonly tag: 'valid' }
  | { readonly tag: 'invalid'; readonly reason: ErrorReason }
  /** No verdict. No money was taken. */
  | { readonly tag: 'unavailable'; readonly error: string }

export type SettlementResult =
  /** `transaction` is a lower-case hash. */
  | { readonly tag: 'settled'; readonly transaction: string }
  /** No transaction was sent. */
  | { readonly tag: 'failed'; readonly reason: ErrorReason }
  /**
   * The authorization is already spent, by an earlier request of ours or by the payer. Only the
   * chain can tell.
   */
  | { readonly tag: 'spent' }
  /** The payment may have been settled, or may still be. */
  | { readonly tag: 'unknown'; readonly error: string; readonly transaction: string | null }

/** Values that a response must match. */
export type Expected = {
  /** As in the request: the CAIP-2 id, or the name of version 1. */
  readonly network: string
  readonly payer: string
  readonly amount: string
}

export interface Facilitator {
  verify(request: FacilitatorRequest, expected: Expected): Promise<Verification>
  settle(request: FacilitatorRequest, expected: Expected): Promise<SettlementResult>
  close(): Promise<void>
}

type FacilitatorOptions = {
  readonly url: string
  readonly verifyTimeoutMs: number
  readonly settleTimeoutMs: number
  /** Allows loopback and private addresses. Not in production. */
  readonly privateNetworks: boolean
  /** `[proxy]`. */
  readonly proxy?: ProxySettings | undefined
}

export function createFacilitator(options: FacilitatorOptions): Facilitator {
  const { url, verifyTimeoutMs, settleTimeoutMs, privateNetworks } = options
  const upstreams = createUpstreams(
    createDialer({
      privateNetworks,
      dnsOverrides: {},
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      proxy: options.proxy,
    }),
  )
  const base = url.replace(/\/+$/, '')
  const endpoints = { verify: new URL(`${base}/verify`), settle: new URL(`${base}/settle`) }

  return {
    async verify(message, expected) {
      const post = { url: endpoints.verify, message, timeoutMs: verifyTimeoutMs }
      return judgeVerification(await postJson(upstreams, post), expected)
    },
    async settle(message, expected) {
      const post = { url: endpoints.settle, message, timeoutMs: settleTimeoutMs }
      return judgeSettlementResult(await postJson(upstreams, post), expected)
    },
    close: () => upstreams.destroy(),
  }
}

/** Exported for property tests. */
export function judgeVerification(answer: JsonAnswer, { payer }: Expected): Verification {
  if (answer.tag === 'failed') return { tag: 'unavailable', error: answer.error }
  const { isValid, invalidReason, invalidMessage, payer: named } = membersOf(answer.json)
  // Refusals have status 200, or another status with some facilitators.
  if (isValid === false) {
    const message = typeof invalidMessage === 'string' ? invalidMessage : null
    const reason = reasonOf(codeOf(invalidReason), 'unexpected_verify_error', message)
    return { tag: 'invalid', reason }
  }
  const isOk = answer.status >= 200 && answer.status < 300
  if (isValid !== true || !isOk) return { tag: 'unavailable', error: errorOf(answer.status) }
  if (isAnother(named, payer)) return { tag: 'unavailable', error: 'another_payer' }
  return { tag: 'valid' }
}

/** Exported for property tests. */
export function judgeSettlementResult(answer: JsonAnswer, expected: Expected): SettlementResult {
  if (answer.tag === 'failed') {
    // A request that was never sent changed nothing.
    return answer.sent
      ? { tag: 'unknown', error: answer.error, transaction: null }
      : { tag: 'failed', reason: 'unexpected_settle_error' }
  }
  const members = membersOf(answer.json)
  const transaction = transactionOf(members['transaction'])
  const unknown = (error: string): SettlementResult => ({ tag: 'unknown', error, transaction })
  if (members['success'] === true) {
    if (transaction === null) return unknown('no_transaction')
    if (isAnother(members['payer'], expected.payer)) return unknown('another_payer')
    if (members['network'] !== expected.network) return unknown('another_network')
    const { amount } = members
    if (amount !== undefined && amount !== null && amount !== expected.amount) {
      return unknown('another_amount')
    }
    return { tag: 'settled', transaction }
  }
  if (members['success'] !== false) return unknown(errorOf(answer.status))
  const code = codeOf(members['errorReason'])
  // A transaction was sent. It may still move the money, whatever the facilitator reports.
  if (transaction !== null) return unknown(code ?? 'failed_with_transaction')
  if (saysSpent(code)) return { tag: 'spent' }
  const reason = refusalBeforeBroadcast(code)
  return reason === null ? unknown(code ?? 'no_reason') : { tag: 'failed', reason }
}

function membersOf(json: unknown): Readonly<Record<string, unknown>> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return {}
  return json as Readonly<Record<string, unknown>>
}

function codeOf(value: unknown): string | null {
  return typeof value === 'string' && value.length <= WORDS_CHARS_MAX ? value : null
}

function transactionOf(value: unknown): string | null {
  return typeof value === 'string' && TRANSACTION.test(value) ? value.toLowerCase() : null
}

function isAnother(named: unknown, payer: string): boolean {
  if (named === undefined || named === null) return false
  return typeof named !== 'string' || named.toLowerCase() !== payer
}

function errorOf(status: number): string {
  return status >= 200 && status < 300 ? 'garbage' : `status_${status}`
}
