/** When the thread of webhook deliveries is needed, where it starts at its first use. */
import { DependencyUnavailable } from '../../kernel/dependency.js'
import { UNWOKEN_MS_MAX, WakeSignal } from '../../../actors/platform/batching/wake-signal.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { EVENTS_CHANNEL } from '../../../storage/platform/outbox.js'
import { DELIVERIES_CHANNEL, hasDeliveryWork } from '../../../storage/webhooks/delivery-lanes.js'

/**
 * Resolves when a tenant has a webhook subscription or an event waits, or when the signal is aborted. An outage of the
 * database is waited out.
 * @throws when the tables cannot be read for another reason. The thread that starts then reports its failing rounds.
 */
export async function firstDelivery(
  { system, listener }: Pick<OpenDatabase, 'system' | 'listener'>,
  signal: AbortSignal,
): Promise<void> {
  const changed = new WakeSignal()
  const wake = () => changed.wake()
  signal.addEventListener('abort', wake, { once: true })
  const leave: (() => void)[] = []
  try {
    for (const channel of [EVENTS_CHANNEL, DELIVERIES_CHANNEL]) {
      leave.push(await listener.listen(channel, { notified: wake, caughtUp: wake }))
    }
    // Crosses tenants: one worker sends for all of them.
    const isDue = () => system(hasDeliveryWork).catch(waitOut)
    while (!signal.aborted && !(await isDue())) await changed.wait(UNWOKEN_MS_MAX)
  } finally {
    for (const end of leave) end()
  }
}

function waitOut(error: unknown): false {
  if (error instanceof DependencyUnavailable) return false
  throw error
}
