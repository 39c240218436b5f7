/** The streams whose polls wait in this process. One statement looks for all of them, however many polls wait. */
import { streamsWithEvents } from '../../../storage/webhooks/signal-events.js'
import type { StreamKey } from '../../../storage/webhooks/signal-streams.js'
import type { Database } from '../../../storage/platform/sql.js'

const LOOK_EVERY_MS = 500

type Waiting = { readonly stream: Pick<StreamKey, 'tenantId' | 'id'>; readonly wake: () => void }

export class WaitingStreams {
  readonly #database: Pick<Database, 'system'>
  readonly #waiting = new Set<Waiting>()
  #isLooking = false
  #timer: NodeJS.Timeout | undefined

  constructor(database: Pick<Database, 'system'>) {
    this.#database = database
  }

  /** Resolves when the stream may have an event, at the latest when `over` is aborted. */
  event(stream: Waiting['stream'], over: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const leave = () => {
        over.removeEventListener('abort', leave)
        this.#waiting.delete(waiting)
        if (this.#waiting.size === 0) {
          clearInterval(this.#timer)
          this.#timer = undefined
        }
        resolve()
      }
      const waiting = { stream, wake: leave }
      if (over.aborted) return resolve()
      over.addEventListener('abort', leave)
      this.#waiting.add(waiting)
      this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS).unref()
    })
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const looked = [...this.#waiting]
    const streams = new Map(looked.map(({ stream }) => [stream.id, stream]))
    // Where the database is unavailable, each poll looks and says so.
    const ids = await this.#database
      .system((tx) => streamsWithEvents(tx, [...streams.values()]))
      .then(
        (found) => new Set(found.map(({ id }) => id)),
        () => streams,
      )
    this.#isLooking = false
    for (const { stream, wake } of looked) if (ids.has(stream.id)) wake()
  }
}
