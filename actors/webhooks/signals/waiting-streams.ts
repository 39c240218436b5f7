/** The streams whose polls wait in this process. One statement looks for all of them, however many polls wait. */
import type { Listener } from '../../../storage/platform/listen.js'
import { streamsWithEvents } from '../../../storage/webhooks/signal-events.js'
import { SIGNALS_CHANNEL } from '../../../storage/webhooks/signal-pushes.js'
import type { StreamKey } from '../../../storage/webhooks/signal-streams.js'
import type { Database } from '../../../storage/platform/sql.js'

/** Between two looks, so that under load one look finds the events of several commits. */
const SPACING_MS = 50
/** Notifications can be lost. */
const LOOK_EVERY_MS = 1_000

type Waiting = { readonly stream: Pick<StreamKey, 'tenantId' | 'id'>; readonly wake: () => void }

type WaitingNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly listener: Pick<Listener, 'listen'>
}

export class WaitingStreams {
  readonly #needs: WaitingNeeds
  readonly #lookEveryMs: number
  readonly #waiting = new Set<Waiting>()
  #isListening = false
  #isLooking = false
  #timer: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined

  constructor(needs: WaitingNeeds, lookEveryMs = LOOK_EVERY_MS) {
    this.#needs = needs
    this.#lookEveryMs = lookEveryMs
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
      this.#timer ??= setInterval(() => void this.#look(), this.#lookEveryMs).unref()
      this.#listen()
      // An event may have come after the poll looked.
      this.#lookSoon()
    })
  }

  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    const notified = () => this.#lookSoon()
    this.#needs.listener
      .listen(SIGNALS_CHANNEL, { notified, caughtUp: notified })
      .catch(() => (this.#isListening = false))
  }

  #lookSoon(): void {
    if (this.#waiting.size === 0 || this.#soon !== undefined) return
    this.#soon = setTimeout(() => {
      // What is notified during the look is not in it.
      this.#soon = undefined
      if (this.#isLooking) this.#lookSoon()
      else void this.#look()
    }, SPACING_MS)
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const looked = [...this.#waiting]
    const streams = new Map(looked.map(({ stream }) => [stream.id, stream]))
    // Where the database is unavailable, each poll looks and says so.
    const ids = await this.#needs.database
      .system((tx) => streamsWithEvents(tx, [...streams.values()]))
      .then(
        (found) => new Set(found.map(({ id }) => id)),
        () => streams,
      )
    this.#isLooking = false
    for (const { stream, wake } of looked) if (ids.has(stream.id)) wake()
  }
}
