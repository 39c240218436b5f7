/** What egress tells of: that a secret was used, and how the use ended. decisions.md 4 and 5. */
import type { Random } from '../../runtime/kernel/random.js'
import type { AuthorityRef } from '../../storage/egress-authorities.js'
import type { NewEvent } from '../../storage/outbox.js'
import { actorOf, type Caller, doneBy } from '../domain/audit.js'
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
  return told('vault.credential.accessed', facts, random, now, { access: 'egress', host, method })
}

export function streamClosed(
  facts: CallFacts,
  { outcome, bytes, chunks, durationMs, redactions, tokens }: RelayReport,
  random: Random,
  now: Date,
): NewEvent {
  const { credentialId, host, method } = facts
  const event = told('egress.stream.closed', facts, random, now, {
    credential_id: credentialId,
    host,
    method,
    bytes,
    chunks,
    duration_ms: Math.round(durationMs),
    outcome,
    ...(redactions === 0 ? {} : { redactions }),
    ...(tokens.input === null ? {} : { input_tokens: tokens.input }),
    ...(tokens.output === null ? {} : { output_tokens: tokens.output }),
  })
  const failed = outcome !== 'completed'
  return { ...event, audit: { ...event.audit, outcome: failed ? 'failure' : 'success' } }
}

function told(
  type: 'vault.credential.accessed' | 'egress.stream.closed',
  { caller, credentialId, authority, requestId }: CallFacts,
  random: Random,
  now: Date,
  fields: Readonly<Record<string, unknown>>,
): NewEvent {
  const resource = { type: 'vault_credential', id: credentialId }
  return {
    id: random.uuid(),
    tenantId: caller.principal.tenantId,
    type,
    occurredAt: now,
    data: eventData({ actor: actorOf(caller), resource, requestId }, fields),
    audit: { ...doneBy(caller), grantId: authority.id },
  }
}
