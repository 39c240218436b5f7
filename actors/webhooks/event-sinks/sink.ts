/** What a message broker must offer to receive events. */

/** An event as receivers of webhooks get it. */
export type SentEvent = {
  readonly id: string
  readonly tenantId: string
  readonly type: string
  /** The envelope, as JSON. */
  readonly body: string
}

export interface SinkConnection {
  /** Events that `send` takes at a time. */
  readonly batchMax: number
  /**
   * Sends events of one tenant, at least one. Resolves when the broker has stored them in this order, or had stored them
   * before. @throws when that is unknown.
   */
  send(events: readonly SentEvent[]): Promise<void>
  isOpen(): boolean
  close(): Promise<void>
}

export interface EventSink {
  /** The name of its cursor. */
  readonly name: string
  /** Connects once. @throws when the broker is unavailable. */
  connect(): Promise<SinkConnection>
}
