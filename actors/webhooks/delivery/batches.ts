/**
 * Batches concurrent writes: items that arrive during a write are written together in the next one.
 */

const BATCH_MAX = 500

type Waiting<Item> = {
  readonly item: Item
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * @param write writes all items or none.
 * @returns a function that resolves when its item is written, or rejects with the error of `write`.
 */
export function inBatches<Item>(
  write: (items: readonly Item[]) => Promise<void>,
): (item: Item) => Promise<void> {
  let waiting: Waiting<Item>[] = []
  let writing = false

  async function drain(): Promise<void> {
    writing = true
    // Includes items that arrive in the same turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_MAX)
      waiting = waiting.slice(BATCH_MAX)
      try {
        await write(batch.map(({ item }) => item))
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    writing = false
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!writing) void drain()
    })
}
