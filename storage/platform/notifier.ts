/**
 * Notifies other processes after commits. A NOTIFY in a transaction holds a server-wide lock until the transaction
 * is on disk, so one NOTIFY is sent after the commit for all transactions since the last one. A crash can lose a
 * notification, so listeners also poll (listen.ts).
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

  /** Sends immediately after a pause, otherwise batches the channels of an interval. */
  #flush(): void {
    this.#timer = undefined
    const channels = [...this.#due]
    this.#due.clear()
    this.#sending = this.#send(channels)
      .catch((error: unknown) => this.#log.warn({ err: error }, 'cannot send a notification'))
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
