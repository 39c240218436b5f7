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
  /** Resolves when the broker has stored the event, or had stored it before. @throws when that is unknown. */
  send(event: SentEvent): Promise<void>
  isOpen(): boolean
  close(): Promise<void>
}

export interface EventSink {
  /** The name of its cursor. */
  readonly name: string
  /** Connects once. @throws when the broker is unavailable. */
  connect(): Promise<SinkConnection>
}
