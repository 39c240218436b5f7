/** The event envelope that is posted to receivers (docs/reference/webhooks.md, Envelope). */

type DeliveredEvent = {
  readonly id: string
  readonly tenantId: string
  readonly type: string
  readonly occurredAt: Date
  readonly data: Readonly<Record<string, unknown>>
}

/** Serializes the body once. Every attempt signs and sends these bytes. */
export function envelopeOf(event: DeliveredEvent): string {
  return JSON.stringify({
    event_id: event.id,
    type: event.type,
    tenant_id: event.tenantId,
    timestamp: event.occurredAt.toISOString(),
    data: event.data,
  })
}
