/** Whether the nodes of the chains answer, for readiness (interface.md, Health). */
import { setTimeout as sleep } from 'node:timers/promises'
import { chainIdOf } from './assets.js'
import type { Chain } from './chain.js'

const LOOK_EVERY_MS = 5_000
/** One answer that does not come is no outage. */
const MISSES_MAX = 2

export interface ChainWatch {
  /** The chains that do not answer, or answer for another chain, in words. */
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
        .map(([network]) => `the chain ${network} does not answer`),
    async close() {
      ended.abort()
      await watching
    },
  }
}
