/** What egress tells of: that a secret was used, and how the use ended. decisions.md 4 and 5. */
import type { Random } from '../../runtime/kernel/random.js'
import type { AuthorityRef } from '../../storage/egress-authorities.js'
import type { NewEvent } from '../../storage/outbox.js'
import { actorOf, type AuditOutcome, type Caller, doneBy } from '../domain/audit.js'
import { eventData } from '../domain/events.js'
import type { RelayReport } from './protocol.js'

export type CallFacts = {
  readonly caller: Caller
  readonly credentialId: string
  readonly authority: AuthorityRef
  readonly host: string
  readonly method: string
  readonly requestId: string | undefined
}

export function credentialAccessed(facts: CallFacts, random: Random, now: Date): NewEvent {
  const { host, method } = facts
  const fields = { access: 'egress', host, method }
  return told('vault.credential.accessed', facts, random, now, fields, 'success')
}

export function streamClosed(
  facts: CallFacts,
  { outcome, bytes, chunks, durationMs, redactions, tokens }: RelayReport,
  random: Random,
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
  return told('egress.stream.closed', facts, random, now, fields, end)
}

function told(
  type: 'vault.credential.accessed' | 'egress.stream.closed',
  { caller, credentialId, authority, requestId }: CallFacts,
  random: Random,
  now: Date,
  fields: Readonly<Record<string, unknown>>,
  outcome: AuditOutcome,
): NewEvent {
  const resource = { type: 'vault_credential', id: credentialId }
  return {
    id: random.uuid(),
    tenantId: caller.principal.tenantId,
    type,
    occurredAt: now,
    data: eventData({ actor: actorOf(caller), resource, requestId }, fields),
    // Ours come first: a copy that gets more has a new shape each time, which is slow to read.
    audit: { grantId: authority.id, outcome, ...doneBy(caller) },
  }
}
