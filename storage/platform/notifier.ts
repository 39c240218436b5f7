/**
 * Wakes other processes after a commit. A NOTIFY inside of a transaction makes it queue behind
 * every other such transaction of the server until it has reached the disk; one after the commit,
 * for all that committed meanwhile, does not. A wake-up lost to a crash is made up for by whoever
 * waits: it looks now and then (listen.ts).
 */
import type { Logger } from '../../runtime/kernel/log.js'

const SPACING_MS = 10

export class Notifier {
  readonly #send: (channels: readonly string[]) => Promise<void>
  readonly #log: Logger
  readonly #due = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined

  constructor(send: (channels: readonly string[]) => Promise<void>, log: Logger) {
    this.#send = send
    this.#log = log
  }

  notify(channels: Iterable<string>): void {
    for (const channel of channels) this.#due.add(channel)
    if (this.#due.size > 0 && !this.#timer && !this.#sending) this.#flush()
  }

  /** Sends at once when it has been quiet, else what has come together within the spacing. */
  #flush(): void {
    this.#timer = undefined
    const channels = [...this.#due]
    this.#due.clear()
    this.#sending = this.#send(channels)
      .catch((error: unknown) => this.#log.warn({ err: error }, 'a wake-up was not sent'))
      .then(() => {
        this.#sending = undefined
        if (this.#due.size > 0) this.#timer = setTimeout(() => this.#flush(), SPACING_MS)
      })
  }

  async close(): Promise<void> {
    await this.#sending
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#flush()
    await this.#sending
    clearTimeout(this.#timer)
  }
}
