/**
 * Tells of the ends of calls that nobody is left to tell of: their process or its thread was killed in
 * the middle. What they had taken from a budget counts as used, as it did from the moment it was taken.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import { sayCallLimit, takeLostCalls } from '../../../../storage/vault/lost-egress-calls.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { callLost } from './events.js'

/** Well within what is waited for beyond the limit. */
const SAY_EVERY_MS = 60_000
const SAY_AGAIN_MS = 1_000

export type PayoutsNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly clock: Clock
}

/**
 * Appends `egress.stream.closed` for calls that have none and cannot run any more in any process, once
 * for each of them, whoever else does it at the same time.
 * @returns how many.
 */
export async function settleLostCalls(
  { database, clock }: PayoutsNeeds,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0
  for (;;) {
    if (signal?.aborted === true) break
    // Crosses tenants: a process that dies leaves calls of all of them.
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

export type LimitNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly hopTimeoutMs: number
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Lets the others know how long calls run here, for as long as some may. */
export function keepSayingLimit({ database, hopTimeoutMs, log, signal }: LimitNeeds): void {
  const hopTimeoutSecs = Math.ceil(hopTimeoutMs / 1000)
  let timer: NodeJS.Timeout | undefined
  async function say(): Promise<void> {
    let pauseMs = SAY_EVERY_MS
    try {
      // Crosses tenants: it is of the process.
      await database.system((tx) => sayCallLimit(tx, hopTimeoutSecs), { signal })
    } catch (error) {
      if (signal.aborted) return
      log.warn({ err: error }, 'how long calls may run is not said')
      pauseMs = SAY_AGAIN_MS
    }
    if (!signal.aborted) timer = setTimeout(() => void say(), pauseMs).unref()
  }
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  void say()
}
