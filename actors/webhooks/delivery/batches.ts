/** Writes of many at once: what comes together while one write runs goes with the next. */

const BATCH_MAX = 500

type Waiting<Item> = {
  readonly item: Item
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * @param write writes them all or none.
 * @returns a function that resolves when its item is written, or rejects with what `write` threw.
 */
export function inBatches<Item>(
  write: (items: readonly Item[]) => Promise<void>,
): (item: Item) => Promise<void> {
  let waiting: Waiting<Item>[] = []
  let writing = false

  async function drain(): Promise<void> {
    writing = true
    // What ends within the same turn of the event loop goes along.
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
