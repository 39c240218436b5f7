/** Messages that a sender repeats until they are received. */
import type { Coordination } from '../../storage/platform/coordination/port.js'

const BUSY_SECS = 60
const DONE = Buffer.from([1])

/**
 * Does `work` for the first of equal messages. One whose work failed, or whose process ended before, is done again.
 * `unavailable`: another request does it now.
 */
export async function receivedOnce(
  coordination: Pick<Coordination, 'lock' | 'get' | 'put'>,
  key: string,
  memorySecs: number,
  work: () => Promise<unknown>,
): Promise<{ readonly tag: 'received' | 'unavailable' }> {
  const release = await coordination.lock(key, BUSY_SECS)
  if (release === undefined) return { tag: 'unavailable' }
  try {
    const isDone = (await coordination.get(key)) !== undefined
    if (isDone) return { tag: 'received' }
    await work()
    await coordination.put(key, DONE, memorySecs)
    return { tag: 'received' }
  } finally {
    await release()
  }
}
