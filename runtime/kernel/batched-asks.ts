/**
 * What is asked for at the same time goes to the other side as one question. What is asked for while
 * another question is under way waits for a later one: it has to see what was committed before.
 */

/** Questions under way at once; more would make them smaller, fewer would make them wait. */
const UNDER_WAY_MAX = 2
const TOGETHER_MAX = 200

type Waiting<Asked, Found> = {
  readonly asked: Asked
  readonly found: (value: Found) => void
  readonly failed: (reason: unknown) => void
}

/** @param load answers all of them, in their order. When it fails, each of them has failed. */
export function together<Asked, Found>(
  load: (asked: readonly Asked[]) => Promise<readonly Found[]>,
): (asked: Asked) => Promise<Found> {
  const queue: Waiting<Asked, Found>[] = []
  let underWay = 0
  let planned = false

  async function run(batch: readonly Waiting<Asked, Found>[]): Promise<void> {
    try {
      const found = await load(batch.map(({ asked }) => asked))
      for (const [at, one] of batch.entries()) one.found(found[at]!)
    } catch (error) {
      for (const one of batch) one.failed(error)
    } finally {
      underWay -= 1
      plan()
    }
  }

  /** At the end of the turn, so that all who ask in it go together. */
  function plan(): void {
    if (planned || queue.length === 0 || underWay >= UNDER_WAY_MAX) return
    planned = true
    setImmediate(() => {
      planned = false
      while (queue.length > 0 && underWay < UNDER_WAY_MAX) {
        underWay += 1
        void run(queue.splice(0, TOGETHER_MAX))
      }
    })
  }

  return (asked) =>
    new Promise((found, failed) => {
      queue.push({ asked, found, failed })
      plan()
    })
}
