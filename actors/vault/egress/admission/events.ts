/** The events of a call: the use of a credential and the end of the relay. */
import type { AuthorityRef } from '../../../../storage/vault/egress-authorities.js'
import { startEventId, type LostCallRow } from '../../../../storage/vault/lost-egress-calls.js'
import type { NewEvent } from '../../../../storage/platform/outbox.js'
import { actorOf, type AuditOutcome, type Caller, doneBy } from '../../../domain/audit.js'
import { eventData } from '../../../domain/events.js'
import type { RelayReport } from '../protocol.js'

export type CallFacts = {
  /** Id of the end event; the id of the start event is derived from it. */
  readonly endId: string
  readonly caller: Caller
  readonly credentialId: string
  readonly authority: AuthorityRef
  readonly host: string
  readonly method: string
  readonly requestId: string | undefined
}

export function credentialAccessed(facts: CallFacts, now: Date): NewEvent {
  const { host, method } = facts
  const fields = { access: 'egress', host, method }
  const id = startEventId(facts.endId)
  return callEvent('vault.credential.accessed', id, facts, now, fields, 'success')
}

export function streamClosed(
  facts: CallFacts,
  { outcome, bytes, chunks, durationMs, redactions, tokens }: RelayReport,
  now: Date,
): NewEvent {
  const { credentialId, host, method } = facts
  // In alphabetical order, which the audit chain requires; it then needs no sorting.
  const fields: Record<string, unknown> = {
    bytes,
    chunks,
    credential_id: credentialId,
    duration_ms: Math.round(durationMs),
    host,
  }
  if (tokens.input !== null) fields['input_tokens'] = tokens.input
  fields['method'] = method
  fields['outcome'] = outcome
  if (tokens.output !== null) fields['output_tokens'] = tokens.output
  if (redactions > 0) fields['redactions'] = redactions
  const end = outcome === 'completed' ? 'success' : 'failure'
  return callEvent('egress.stream.closed', facts.endId, facts, now, fields, end)
}

/** The end of a call whose process was killed: its time and the relayed bytes are unknown. */
export function callLost(call: LostCallRow, now: Date): NewEvent {
  const { tenantId, endId, actor, resource, host, method, requestId, ...audit } = call
  const fields = { credential_id: resource.id, host, method, outcome: 'upstream_error' }
  return {
    id: endId,
    tenantId,
    type: 'egress.stream.closed',
    occurredAt: now,
    data: { actor, resource, request_id: requestId, ...fields },
    audit: { ...audit, outcome: 'failure' },
  }
}

function callEvent(
  type: 'vault.credential.accessed' | 'egress.stream.closed',
  id: string,
  { caller, credentialId, authority, requestId }: CallFacts,
  now: Date,
  fields: Readonly<Record<string, unknown>>,
  outcome: AuditOutcome,
): NewEvent {
  const resource = { type: 'vault_credential', id: credentialId }
  return {
    id,
    tenantId: caller.principal.tenantId,
    type,
    occurredAt: now,
    data: eventData({ actor: actorOf(caller), resource, requestId }, fields),
    // Own members before the spread: the other order gives each object a new V8 hidden class.
    audit: { grantId: authority.id, outcome, ...doneBy(caller) },
  }
}
