/**
 * Detects transfers that pay checkouts on watched chains. The blocks of each chain are scanned
 * once, behind a cursor. A transfer whose amount a checkout awaits is claimed by one conditional
 * statement, and booked together with the end of its checkout.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { findCharge } from '../../../../storage/commerce/charges.js'
import {
  findCheckoutSessionById,
  lockCheckout,
} from '../../../../storage/commerce/checkout-sessions.js'
import {
  transfersToBook,
  awaitedPayees,
  type CheckoutTransferRow,
  endTransfer,
  findChainCursor,
  moveChainCursor,
  transferArrived,
  voidTransfers,
} from '../../../../storage/commerce/checkout-transfers.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { applyAnswer } from '../outcome.js'
import type { Chain } from '../x402/chain.js'

const PROVIDER = 'x402'
/** Block range of one query that nodes accept. */
const BLOCKS_PER_QUERY = 1_800
/** Queries per round. Later rounds scan the rest. */
const PAGES_MAX = 20
/** Maximum number of addresses in one query. */
const PAYEES_PER_QUERY = 200
const BATCH = 32

export type WatchedChain = {
  readonly chain: Chain
  /** Confirmations (blocks) that a transfer needs. */
  readonly confirmations: number
}

type ArrivalNeeds = {
  readonly database: Pick<Database, 'system' | 'tenant'>
  readonly clock: Clock
  readonly random: Random
  /** The watched chains, by network. */
  readonly watched: ReadonlyMap<string, WatchedChain>
}

export function arrivals({ database, clock, random, watched }: ArrivalNeeds, log: Logger) {
  const deps = { clock, random }
  const background = { pool: 'background' } as const

  /** Scans the new blocks that are deep enough. @returns the number of transfers that arrived. */
  async function look(network: string, { chain, confirmations }: WatchedChain): Promise<number> {
    const latest = await chain.latestBlock()
    if (latest === null) return 0
    const end = latest - confirmations
    const [cursor, payees] = await database.system(
      async (tx) => [await findChainCursor(tx, network), await awaitedPayees(tx, network)],
      background,
    )
    // Checkouts that start to await a transfer from now on await it in a later block.
    if (cursor === undefined || payees.length === 0) {
      if (end >= 0) await move(network, end)
      return 0
    }
    const assets = [...new Set(payees.map(({ asset }) => asset))]
    const payTo = [...new Set(payees.map((payee) => payee.payTo))]
    let arrived = 0
    for (let page = 0, from = cursor + 1; page < PAGES_MAX && from <= end; page += 1) {
      const to = Math.min(end, from + BLOCKS_PER_QUERY - 1)
      for (let start = 0; start < payTo.length; start += PAYEES_PER_QUERY) {
        const filter = { assets, payTo: payTo.slice(start, start + PAYEES_PER_QUERY) }
        const transfers = await chain.transfers(filter, from, to)
        if (transfers === null) return arrived
        for (const transfer of transfers) {
          const claimed = await database.system(
            (tx) => transferArrived(tx, network, transfer, clock.now()),
            background,
          )
          if (claimed) arrived += 1
        }
      }
      await move(network, to)
      from = to + 1
    }
    return arrived
  }

  const move = (network: string, block: number) =>
    database.system((tx) => moveChainCursor(tx, network, block, clock.now()), background)

  /** Completes the checkout that a transfer pays, unless another payment of it is in progress. */
  async function book(transfer: CheckoutTransferRow): Promise<void> {
    const { tenantId, id, checkoutSessionId, chargeId } = transfer
    await database.tenant(
      tenantId,
      async (tx) => {
        const events = await paid(tx, transfer)
        if (events === 'wait') return
        const state = events === undefined ? 'surplus' : 'booked'
        if (!(await endTransfer(tx, tenantId, id, state, clock.now()))) {
          throw new Error('a transfer was ended by another worker')
        }
        if (events === undefined) {
          const { transaction } = transfer
          const context = { tenantId, chargeId, checkoutSessionId, transaction }
          log.error(
            context,
            'x402: transfer for a checkout that has ended, to be returned to the buyer',
          )
        }
        appendEvents(tx, events ?? [])
      },
      background,
    )
  }

  async function paid(tx: Transaction, transfer: CheckoutTransferRow) {
    const { tenantId, chargeId, checkoutSessionId, network, payer } = transfer
    await lockCheckout(tx, tenantId, checkoutSessionId)
    const session = await findCheckoutSessionById(tx, checkoutSessionId)
    if (session?.status === 'paying') return 'wait'
    const charge = session?.status === 'open' && (await findCharge(tx, tenantId, chargeId))
    if (!charge) return undefined
    const answer = {
      tag: 'taken',
      reference: `${transfer.transaction!}:${transfer.logIndex!}`,
      mandate: null,
      disputed: null,
      buyerId: `${network}:${payer!}`,
      direct: true,
    } as const
    return applyAnswer(tx, deps, charge, PROVIDER, answer)
  }

  return {
    /** Scans every chain once. @returns the number of transfers that arrived and were booked. */
    async round(): Promise<number> {
      let worked = 0
      for (const [network, chain] of watched) worked += await look(network, chain)
      const due = await database.system((tx) => transfersToBook(tx, BATCH), background)
      for (const transfer of due) {
        try {
          await book(transfer)
        } catch (error) {
          const { tenantId, id } = transfer
          log.warn({ err: error, tenantId, id }, 'x402: transfer not booked')
        }
      }
      await database.system((tx) => voidTransfers(tx, clock.now(), BATCH), background)
      return worked
    },
  }
}
