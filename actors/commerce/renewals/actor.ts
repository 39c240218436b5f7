/**
 * Runs the commerce work that becomes due: settlements, renewals, refunds and payouts. Each item is
 * leased by moving its due time ahead, is one conditional transaction, and calls providers under
 * ids that they answer once. Two processes, or a process that takes over after a crash, therefore
 * do the work once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineActor } from '../../../runtime/kernel/actor.js'
import { renewalRounds } from './rounds.js'
import type { RenewalNeeds } from './needs.js'
import { type BillingProtocol, billing } from './protocol.js'

const LOOK_MS = 1_000

export const billingActor = defineActor<
  BillingProtocol,
  RenewalNeeds & { readonly byTimer: boolean }
>({
  address: billing,
  asks: {},
  mailbox: { capacity: 8, inflightMax: 4 },
  lane: { round: () => undefined },
  supervision: { onFailure: 'resume' },
  create: (needs, lifecycle) => {
    const { round } = renewalRounds(needs, lifecycle)

    const loop = lifecycle.loop('rounds')

    async function keepUp(): Promise<void> {
      while (!lifecycle.signal.aborted) {
        let worked = 0
        try {
          worked = Object.values(await round()).reduce((sum, count) => sum + count, 0)
          loop.succeeded()
        } catch (error) {
          loop.failed()
          if (!lifecycle.signal.aborted)
            lifecycle.log.warn({ err: error }, 'renewals: round failed')
        }
        if (worked > 0) continue
        await sleep(LOOK_MS, undefined, { signal: lifecycle.signal, ref: false }).catch(
          () => undefined,
        )
      }
    }
    if (needs.byTimer) void keepUp()

    return { round: async () => ({ tag: 'done', counts: await round() }) }
  },
})
