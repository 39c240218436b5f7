/**
 * Watches whether the chain nodes respond, for readiness (docs/reference/operations.md, Health).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { chainIdOf } from '../../../domain/commerce/assets.js'
import type { Chain } from './chain.js'

const LOOK_EVERY_MS = 5_000
/** A single missed response is not an outage. */
const MISSES_MAX = 2

export interface ChainWatch {
  /** Descriptions of the chains whose node does not respond, or responds for another chain. */
  unfit(): readonly string[]
  close(): Promise<void>
}

export function watchChains(chains: ReadonlyMap<string, Chain>): ChainWatch {
  const misses = new Map<string, number>()
  const ended = new AbortController()

  async function lookAt(network: string, chain: Chain): Promise<void> {
    const answers = (await chain.chainId()) === chainIdOf(network)
    misses.set(network, answers ? 0 : (misses.get(network) ?? 0) + 1)
  }

  async function watch(): Promise<void> {
    while (!ended.signal.aborted) {
      await Promise.all([...chains].map(([network, chain]) => lookAt(network, chain)))
      await sleep(LOOK_EVERY_MS, undefined, { signal: ended.signal, ref: false }).catch(() => null)
    }
  }
  const watching = watch()

  return {
    unfit: () =>
      [...misses]
        .filter(([, missed]) => missed > MISSES_MAX)
        .map(([network]) => `chain ${network} unavailable`),
    async close() {
      ended.abort()
      await watching
    },
  }
}
