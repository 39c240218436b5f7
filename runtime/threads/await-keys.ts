/** The keys of a thread that serves requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { signingKeys } from '../../actors/oauth/signing-keys/protocol.js'
import type { Clock } from '../kernel/clock.js'
import type { System } from '../kernel/system.js'

const KEYS_WITHIN_MS = 15_000
const KEYS_RETRY_MS = 250

/** The main thread has created the keys by now. This thread reads them before it accepts requests. */
export async function awaitKeys(system: System, clock: Clock): Promise<void> {
  const endMs = clock.monotonicMs() + KEYS_WITHIN_MS
  while (!(await system.ref(signingKeys).state(null)).signing) {
    if (clock.monotonicMs() > endMs) throw new Error('the signing keys cannot be loaded')
    await sleep(KEYS_RETRY_MS)
  }
}
