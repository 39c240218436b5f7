/** What is posted to a receiver: the event in its envelope (decisions.md section 9, envelope). */

export type DeliveredEvent = {
  readonly id: string
  readonly tenantId: string
  readonly type: string
  readonly occurredAt: Date
  readonly data: Readonly<Record<string, unknown>>
}

/** The body, written once; every attempt signs and sends these bytes. */
export function envelopeOf(event: DeliveredEvent): string {
  return JSON.stringify({
    event_id: event.id,
    type: event.type,
    tenant_id: event.tenantId,
    timestamp: event.occurredAt.toISOString(),
    data: event.data,
  })
}
