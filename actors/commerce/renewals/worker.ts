/**
 * Does what becomes due in commerce. Every piece of work is leased by moving its time ahead, is one
 * conditional transaction, and asks rails under ids that they answer once: two processes, or one that
 * died and one that goes on, do it once together.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import { billingRounds } from './rounds.js'
import type { BillingNeeds } from './needs.js'

const LOOK_MS = 1_000

export const renewalsWorker = defineWorker<BillingNeeds>({
  name: 'billing',
  asks: {},
  run: async (needs, lifecycle) => {
    const { signal, log } = lifecycle
    const { round } = billingRounds(needs, lifecycle)
    const rounds = lifecycle.loop('rounds')
    while (!signal.aborted) {
      let worked = 0
      try {
        worked = Object.values(await round()).reduce((sum, count) => sum + count, 0)
        rounds.succeeded()
      } catch (error) {
        rounds.failed()
        if (!signal.aborted) log.warn({ err: error }, 'a round of billing failed')
      }
      if (worked > 0) continue
      await sleep(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  },
})
