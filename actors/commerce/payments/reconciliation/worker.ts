/**
 * Finds the outcome of x402 payments whose facilitator was unavailable or whose process died.
 * Payments are leased. The chain is queried first where one is configured. The facilitator is asked
 * again only when the chain shows nothing: an authorization can be spent once, so a second request
 * cannot pay twice.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineWorker } from '../../../../runtime/kernel/worker.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { Database } from '../../../../storage/platform/sql.js'
import {
  claimDueX402Payments,
  nextX402PaymentMs,
  unknownX402Payments,
  type X402PaymentRow,
} from '../../../../storage/commerce/x402-payments.js'
import type { Chain } from '../x402/chain.js'
import {
  expectedOf,
  failPayment,
  type LeasedPayment,
  onChain,
  postponePayment,
  settlePayment,
} from '../x402/endings.js'
import type { Facilitator, SettlementResult } from '../x402/facilitator.js'
import type { ReconciliationMetrics } from '../x402/metrics.js'
import type { FacilitatorRequest } from '../x402/offers.js'
import { arrivals, type WatchedChain } from './arrivals.js'
import { afterChain, afterFacilitator, againSecs, type Finding } from './rules.js'

const LEASE_SECS = 60
const CONCURRENT_MAX = 16
/** Poll interval: a payment can become due at any time, because its process died. */
const POLL_MS_MAX = 1_000
const MISHAP_MS = 1_000
/** Poll interval for transfers. Blocks appear every two seconds or more slowly. */
const WATCH_MS = 2_000
const COUNT_EVERY_MS = 15_000
/** At this check the log level is `error`, to alert operators. */
const CHECKS_BEFORE_ERROR = 10

export type ReconciliationNeeds = {
  readonly database: Pick<Database, 'system' | 'tenant'>
  readonly clock: Clock
  readonly random: Random
  /** Null where `commerce.x402_enabled` is false: the actor has no work then. */
  readonly facilitator: Facilitator | null
  /** Chains with an `rpc_url`, by network. */
  readonly chains: ReadonlyMap<string, Chain>
  /** Chains whose transfers are watched. */
  readonly watched: ReadonlyMap<string, WatchedChain>
  readonly metrics: ReconciliationMetrics
}

export const reconciliationWorker = defineWorker<ReconciliationNeeds>({
  name: 'reconciliation',
  asks: {},
  run: async ({ database, clock, random, facilitator, chains, watched, metrics }, lifecycle) => {
    const needs = { database, clock, random }
    let countedMs = Number.NEGATIVE_INFINITY

    async function lookInto(row: X402PaymentRow, leased: LeasedPayment): Promise<Finding> {
      const nowSecs = clock.nowSecs()
      const chain = chains.get(row.network)
      if (chain !== undefined) {
        const status = await chain.look(onChain(leased), row.transaction)
        const finding = afterChain(status, Number(row.validBefore), nowSecs)
        if (finding.tag !== 'ask') return finding
      }
      const request = row.request as FacilitatorRequest
      const result: SettlementResult = await facilitator!.settle(request, expectedOf(leased))
      return afterFacilitator(result, chain !== undefined)
    }

    async function see(row: X402PaymentRow, lease: string): Promise<void> {
      const leased = { ...row, lease }
      const { chargeId, checks } = row
      const finding = await lookInto(row, leased)
      metrics.reconciled.inc({ outcome: finding.tag })
      const context = { charge_id: chargeId, checks }
      if (finding.tag === 'settled') {
        const { transaction } = finding
        lifecycle.log.info({ ...context, transaction }, 'x402: payment settled')
        await settlePayment(needs, leased, transaction)
        return
      }
      if (finding.tag === 'failed') {
        lifecycle.log.info({ ...context, reason: finding.reason }, 'x402: payment failed')
        await failPayment(needs, leased, finding.reason)
        return
      }
      const level = checks === CHECKS_BEFORE_ERROR ? 'error' : 'debug'
      lifecycle.log[level](
        { ...context, error: finding.error },
        'x402: outcome still unknown, an operator can resolve it',
      )
      await postponePayment(needs, leased, againSecs(checks), finding.transaction)
    }

    const inProgress = new Set<Promise<void>>()

    function begin(row: X402PaymentRow, lease: string): void {
      const check = see(row, lease)
        // The lease expires.
        .catch((err: unknown) => lifecycle.log.warn({ err }, 'x402: check failed'))
        .finally(() => inProgress.delete(check))
      inProgress.add(check)
    }

    /**
     * Begins the checks that are due. A facilitator that does not answer holds one place, not the
     * other payments. Crosses tenants: one worker serves all of them.
     */
    async function round(): Promise<void> {
      const lease = random.uuid()
      const rows = await database.system(
        (tx) => claimDueX402Payments(tx, lease, CONCURRENT_MAX - inProgress.size, LEASE_SECS),
        { pool: 'background' },
      )
      for (const row of rows) begin(row, lease)
      if (inProgress.size === CONCURRENT_MAX) await Promise.race(inProgress)
    }

    async function count(): Promise<void> {
      if (clock.monotonicMs() - countedMs < COUNT_EVERY_MS) return
      countedMs = clock.monotonicMs()
      const { count, oldestSecs } = await database.system(unknownX402Payments, {
        pool: 'background',
      })
      metrics.unknown.set(count)
      metrics.oldest.set(oldestSecs)
    }

    const loop = lifecycle.loop('rounds')

    async function work(): Promise<void> {
      while (!lifecycle.signal.aborted) {
        try {
          await round()
          await count()
          loop.succeeded()
          const waitMs = await database.system((tx) => nextX402PaymentMs(tx, POLL_MS_MAX), {
            pool: 'background',
          })
          await sleep(Math.max(waitMs, 50), undefined, { signal: lifecycle.signal, ref: false })
        } catch (error) {
          if (lifecycle.signal.aborted) return
          loop.failed()
          lifecycle.log.warn({ err: error }, 'x402: reconciliation failed, retrying')
          await sleep(MISHAP_MS, undefined, { ref: false })
        }
      }
    }

    const arriving = arrivals({ database, clock, random, watched }, lifecycle.log)
    async function watch(): Promise<void> {
      while (!lifecycle.signal.aborted) {
        try {
          await arriving.round()
        } catch (error) {
          if (lifecycle.signal.aborted) return
          lifecycle.log.warn({ err: error }, 'x402: transfer scan failed, retrying')
        }
        await sleep(WATCH_MS, undefined, { signal: lifecycle.signal, ref: false }).catch(
          () => undefined,
        )
      }
    }

    await Promise.all([
      facilitator === null ? undefined : work(),
      watched.size === 0 ? undefined : watch(),
    ])
    await Promise.all(inProgress)
  },
})
