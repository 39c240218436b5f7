/**
 * Combines concurrent look-ups into one query. A look-up that arrives while a query is running
 * waits for a later query, because it must see everything that was committed before it was made. Under load a query
 * waits shortly for as many look-ups as recent queries had: most of its cost does not depend on their number.
 */

/**
 * Queries that run concurrently: more would make the batches smaller, fewer would make look-ups
 * wait longer.
 */
const UNDER_WAY_MAX = 2
const TOGETHER_MAX = 200
/** The longest time between the starts of two queries under load. */
const SPACING_MS = 2
/** Load: so many look-ups within so many milliseconds. */
const BUSY_MIN = 10
const WINDOW_MS = 10

type Waiting<Asked, Found> = {
  readonly asked: Asked
  readonly found: (value: Found) => void
  readonly failed: (reason: unknown) => void
}

/**
 * @param load answers all look-ups of a batch, in their order. When it fails, each of them fails.
 */
export function together<Asked, Found>(
  load: (asked: readonly Asked[]) => Promise<readonly Found[]>,
): (asked: Asked) => Promise<Found> {
  const queue: Waiting<Asked, Found>[] = []
  let underWay = 0
  let planned = false
  let startedMs = 0
  let windowMs = 0
  let asks = 0
  let isBusy = false
  /** The look-ups for which the next query waits. It follows the size of the queries. */
  let goal = 0
  let waiting: NodeJS.Timeout | undefined

  /** Counts the look-ups of the current window. The load of the previous one decides. */
  function count(): void {
    const nowMs = performance.now()
    const agoMs = nowMs - windowMs
    if (agoMs >= WINDOW_MS) {
      isBusy = asks >= BUSY_MIN && agoMs < 2 * WINDOW_MS
      windowMs = nowMs
      asks = 0
    }
    asks += 1
  }

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

  /**
   * At the end of the current turn of the event loop, so that all look-ups of that turn share a
   * query.
   */
  function plan(): void {
    if (planned || queue.length === 0 || underWay >= UNDER_WAY_MAX) return
    planned = true
    const waitMs = isBusy && queue.length < goal ? startedMs + SPACING_MS - performance.now() : 0
    if (waitMs > 0) waiting = setTimeout(start, waitMs)
    else setImmediate(start)
  }

  function start(): void {
    planned = false
    waiting = undefined
    startedMs = performance.now()
    goal = Math.max(queue.length, goal - 1)
    while (queue.length > 0 && underWay < UNDER_WAY_MAX) {
      underWay += 1
      void run(queue.splice(0, TOGETHER_MAX))
    }
  }

  return (asked) =>
    new Promise((found, failed) => {
      count()
      queue.push({ asked, found, failed })
      if (waiting !== undefined && queue.length >= goal) {
        clearTimeout(waiting)
        waiting = undefined
        setImmediate(start)
      }
      plan()
    })
}
