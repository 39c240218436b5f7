/** Keeps the latest messages of a development service in memory, for /dev/mail. Production never creates it. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { MailMessage } from '../../platform/mail/render.js'
import type { Mailer } from './client.js'

/** The oldest message is dropped first. */
const MESSAGES_MAX = 100

export type CaughtMessage = MailMessage & { readonly id: string; readonly sentAt: Date }

export class CaughtMail {
  readonly #clock: Clock
  readonly #messages = new Map<string, CaughtMessage>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  keep(id: string, message: MailMessage): void {
    // A repeated attempt has the same id.
    this.#messages.delete(id)
    this.#messages.set(id, { ...message, id, sentAt: this.#clock.now() })
    if (this.#messages.size <= MESSAGES_MAX) return
    const [oldest] = this.#messages.keys()
    this.#messages.delete(oldest!)
  }

  /** The latest message first. */
  list(): readonly CaughtMessage[] {
    return [...this.#messages.values()].toReversed()
  }

  find(id: string): CaughtMessage | undefined {
    return this.#messages.get(id)
  }
}

/** A mailer whose sent messages are kept as well. */
export function catchingMailer(mailer: Mailer, caught: CaughtMail): Mailer {
  return {
    async post(id, message) {
      const result = await mailer.post(id, message)
      if (result.tag === 'sent') caught.keep(id, message)
      return result
    },
  }
}
