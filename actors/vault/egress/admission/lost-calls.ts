/**
 * Closes lost calls: calls whose process or thread was killed. The bytes that they took from a budget
 * stay used.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import { sayCallLimit, takeLostCalls } from '../../../../storage/vault/lost-egress-calls.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { takeLostBlocks } from '../../../../storage/vault/egress-blocks.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { callLost, callsUnknown } from './events.js'

/** Shorter than the silence after which other processes consider this one dead. */
const ANNOUNCE_EVERY_MS = 60_000
const RETRY_MS = 1_000

type LostCallNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly clock: Clock
}

/**
 * Appends `egress.stream.closed` for calls that have no such event and cannot run any more. Safe to run
 * in several processes: each call is closed once.
 * @returns the number of closed calls.
 */
export async function closeLostCalls(
  { database, clock }: LostCallNeeds,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  for (;;) {
    if (signal?.aborted === true) break
    // Crosses tenants: a killed process leaves calls of any tenant.
    const lost = await database.system(
      async (tx) => {
        const found = await takeLostCalls(tx)
        const now = clock.now()
        const events = found?.calls.map((call) => callLost(call, now)) ?? []
        appendEvents(tx, events)
        return found
      },
      { pool: 'background', signal },
    )
    total += lost?.calls.length ?? 0
    if (lost?.isLast !== false) break
  }
  return total
}

const BLOCKS_PER_TRANSACTION = 500

/**
 * Records `egress.calls.unknown` for blocks of killed processes: the calls that such a process had sent and not recorded.
 * Safe to run in several processes: each block is recorded once.
 * @returns the most calls that may be missing from the record.
 */
export async function recordUnknownCalls(
  { database, clock, random }: LostCallNeeds & { readonly random: Pick<Random, 'uuid'> },
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  for (;;) {
    if (signal?.aborted === true) return total
    // Crosses tenants: a killed process leaves blocks of any tenant.
    const lost = await database.system(
      async (tx) => {
        const blocks = await takeLostBlocks(tx, BLOCKS_PER_TRANSACTION)
        const now = clock.now()
        // A block that was used up to its last request may hold nothing any more.
        const holding = blocks.filter(({ callsMax, bytesHeld }) => callsMax > 0 || bytesHeld)
        appendAudit(
          tx,
          holding.map((block) => callsUnknown(block, random.uuid(), now)),
        )
        return blocks
      },
      { pool: 'background', signal },
    )
    for (const { callsMax } of lost) total += callsMax
    if (lost.length < BLOCKS_PER_TRANSACTION) return total
  }
}

type CallLimitNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly hopTimeoutMs: number
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Announces the call time limit of this process to the others, until `signal` aborts. */
export function keepCallLimitAnnounced({
  database,
  hopTimeoutMs,
  log,
  signal,
}: CallLimitNeeds): void {
  const hopTimeoutSecs = Math.ceil(hopTimeoutMs / 1000)
  let timer: NodeJS.Timeout | undefined
  async function announce(): Promise<void> {
    let pauseMs = ANNOUNCE_EVERY_MS
    try {
      // Belongs to the process, not to a tenant.
      await database.system((tx) => sayCallLimit(tx, hopTimeoutSecs), { signal })
    } catch (error) {
      if (signal.aborted) return
      log.warn({ err: error }, 'egress: could not announce the call time limit')
      pauseMs = RETRY_MS
    }
    if (!signal.aborted) timer = setTimeout(() => void announce(), pauseMs).unref()
  }
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  void announce()
}
