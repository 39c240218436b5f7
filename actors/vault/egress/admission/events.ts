/** What egress tells of: that a secret was used, and how the use ended. decisions.md 4 and 5. */
import type { AuthorityRef } from '../../../../storage/vault/egress-authorities.js'
import { beginningOf, type LostCallRow } from '../../../../storage/vault/lost-egress-calls.js'
import type { NewEvent } from '../../../../storage/platform/outbox.js'
import { actorOf, type AuditOutcome, type Caller, doneBy } from '../../../domain/audit.js'
import { eventData } from '../../../domain/events.js'
import type { RelayReport } from '../protocol.js'

export type CallFacts = {
  /** Of the event that tells of its end: from it follows that of its beginning. */
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
  const id = beginningOf(facts.endId)
  return told('vault.credential.accessed', id, facts, now, fields, 'success')
}

export function streamClosed(
  facts: CallFacts,
  { outcome, bytes, chunks, durationMs, redactions, tokens }: RelayReport,
  now: Date,
): NewEvent {
  const { credentialId, host, method } = facts
  // In the order of their names, as the audit chain writes them down: they are not sorted then.
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
  return told('egress.stream.closed', facts.endId, facts, now, fields, end)
}

/** What is known of the end of a call whose process has died: neither when it came nor what was relayed. */
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

function told(
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
    // Ours come first: a copy that gets more has a new shape each time, which is slow to read.
    audit: { grantId: authority.id, outcome, ...doneBy(caller) },
  }
}
