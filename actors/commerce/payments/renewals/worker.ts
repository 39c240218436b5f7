/**
 * Runs the commerce work that becomes due: settlements, renewals, refunds and payouts. Each item is
 * leased by moving its due time ahead, is one conditional transaction, and calls providers under ids
 * that they answer once. Two processes, or a process that takes over after a crash, therefore do the
 * work once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineWorker } from '../../../../runtime/kernel/worker.js'
import type { RenewalNeeds } from './needs.js'
import { renewalRound } from './round.js'

const POLL_MS = 1_000

export const renewalsWorker = defineWorker<RenewalNeeds>({
  name: 'billing',
  asks: {},
  run: async (needs, lifecycle) => {
    const { signal, log } = lifecycle
    const rounds = lifecycle.loop('rounds')
    while (!signal.aborted) {
      let worked = 0
      try {
        worked = await renewalRound({ ...needs, signal, log })
        rounds.succeeded()
      } catch (error) {
        rounds.failed()
        if (!signal.aborted) log.warn({ err: error }, 'renewals: round failed')
      }
      if (worked > 0) continue
      await sleep(POLL_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  },
})
