/** The events of a call: the use of a credential and the end of the relay. */
import { isoTime } from '../../../../runtime/kernel/text/iso-time.js'
import type { NewAuditEvent } from '../../../../storage/operations/audit.js'
import type { AuthorityRef } from '../../../../storage/vault/egress-authorities.js'
import { startEventId, type LostCallRow } from '../../../../storage/vault/lost-egress-calls.js'
import { EventForm } from '../../../../storage/platform/event-text.js'
import type { NewEvent, OutboxEvent } from '../../../../storage/platform/outbox.js'
import type { LostBlockRow } from '../../../../storage/vault/egress-blocks.js'
import type { BudgetHold } from '../../../../storage/vault/grant-budgets.js'
import type { Block } from './block.js'
import { delegationIntent } from '../../../domain/agents/delegation-intent.js'
import {
  actorOf,
  type AuditOnlyType,
  type AuditOutcome,
  type Caller,
  doneBy,
} from '../../../domain/audit.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { BudgetRefusal } from '../../../domain/vault/budgets.js'
import { catalogued, eventBy, type EventFields, type EventType } from '../../../domain/events.js'
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
  /** Writes the events of the caller's calls. Undefined for the first calls of a caller. */
  templates?: CallTemplates | undefined
  /** The approval that admitted the call. Never with templates. */
  readonly approvalId: string | null
  /** The block that holds the limits of the call's grant or lease. Undefined for calls of the database. */
  block?: Block | undefined
  /** What the call has taken from the budget of its grant. */
  hold?: BudgetHold | undefined
}

/**
 * Templates of the two events of a call, for callers that repeat calls: only request id, host, method and figures
 * differ.
 */
export class CallTemplates {
  readonly #begun: EventForm
  readonly #completed: EventForm

  /** @param facts of any call of the same token and address with the same credential and grant. */
  constructor(facts: CallFacts) {
    const about = (requestId: string, host: string, method: string): CallFacts => ({
      ...facts,
      requestId,
      host,
      method,
    })
    this.#begun = new EventForm(3, (requestId, host, method) =>
      credentialAccessed(about(requestId!, host!, method!), NO_TIME),
    )
    this.#completed = new EventForm(
      7,
      (...[requestId, host, method, bytes, chunks, durationMs, status]) => {
        const call = about(requestId!, host!, method!)
        const fields = {
          bytes,
          chunks,
          credential_id: facts.credentialId,
          duration_ms: durationMs,
          host,
          method,
          outcome: 'completed',
          status,
        }
        // A placeholder is text, where the event has a number too.
        const blanks = fields as object
        return callEvent('egress.stream.closed', call, NO_TIME, blanks, 'success')
      },
    )
  }

  begun({ endId, requestId, host, method }: CallFacts, now: Date): OutboxEvent {
    return this.#begun.fill(startEventId(endId), now, [requestId!, host, method])
  }

  completed(
    { endId, requestId, host, method }: CallFacts,
    { bytes, chunks, durationMs, status }: RelayReport,
    now: Date,
  ): OutboxEvent {
    const figures = [bytes, chunks, Math.round(durationMs), status!]
    return this.#completed.fill(endId, now, [requestId!, host, method, ...figures])
  }
}

const NO_TIME = new Date(0)

/** The event of a call that is sent. */
export function beginEvent(facts: CallFacts, now: Date): OutboxEvent {
  return facts.templates?.begun(facts, now) ?? credentialAccessed(facts, now)
}

/** The event of a call that has ended. */
export function endEvent(facts: CallFacts, report: RelayReport, now: Date): OutboxEvent {
  const { templates } = facts
  const isPlain =
    report.outcome === 'completed' &&
    report.status !== null &&
    report.redactions === 0 &&
    report.tokens.input === null &&
    report.tokens.output === null
  if (templates !== undefined && isPlain) return templates.completed(facts, report, now)
  return streamClosed(facts, report, now)
}

export function credentialAccessed(facts: CallFacts, now: Date): NewEvent {
  const { host, method, approvalId } = facts
  const fields: EventFields<'vault.credential.accessed'> = { access: 'egress' }
  if (approvalId !== null) fields.approval_id = approvalId
  fields.host = host
  fields.method = method
  return callEvent('vault.credential.accessed', facts, now, fields, 'success')
}

export function streamClosed(
  facts: CallFacts,
  { outcome, status, bytes, chunks, durationMs, redactions, tokens }: RelayReport,
  now: Date,
): NewEvent {
  const { credentialId, host, method } = facts
  // In alphabetical order, which the audit chain requires; it then needs no sorting.
  const fields: EventFields<'egress.stream.closed'> = {
    bytes,
    chunks,
    credential_id: credentialId,
    duration_ms: Math.round(durationMs),
    host,
  }
  if (tokens.input !== null) fields.input_tokens = tokens.input
  fields.method = method
  fields.outcome = outcome
  if (tokens.output !== null) fields.output_tokens = tokens.output
  if (redactions > 0) fields.redactions = redactions
  if (status !== null) fields.status = status
  const end = outcome === 'completed' ? 'success' : 'failure'
  return callEvent('egress.stream.closed', facts, now, fields, end)
}

/** A call was refused because the budget of its grant has too little left. */
export function budgetExceeded(
  { caller, credentialId, requestId }: Pick<CallFacts, 'caller' | 'credentialId' | 'requestId'>,
  { grantId, budget, limit, left, window, windowEndsAt }: BudgetRefusal,
  random: Random,
  now: Date,
): NewEvent {
  const resource = { type: 'vault_grant', id: grantId }
  const event = eventBy(
    'vault.budget.exceeded',
    resource,
    { caller, random, now, requestId },
    {
      credential_id: credentialId,
      budget,
      limit,
      left,
      window,
      window_ends_at: windowEndsAt && isoTime(windowEndsAt),
    },
  )
  return { ...event, audit: { ...event.audit, grantId, outcome: 'denied' } }
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

/**
 * What a killed process leaves: the most calls of a grant or lease that it may have sent without a record, and what it
 * had taken from the limits for them and others. That counts as used.
 */
export function callsUnknown(block: LostBlockRow, id: string, now: Date): NewAuditEvent {
  const { tenantId, credentialId, authorityId, agentId, delegationId, delegation, callsMax } = block
  const { requestsHeld, bytesHeld } = block
  const type: AuditOnlyType = 'egress.calls.unknown'
  // In alphabetical order, which the audit chain requires.
  const data: Record<string, unknown> = {}
  if (bytesHeld !== null) data['bytes_reserved'] = bytesHeld
  data['calls_max'] = callsMax
  data['opened_at'] = isoTime(block.openedAt)
  data['renewed_at'] = isoTime(block.renewedAt)
  if (requestsHeld !== null) data['requests_reserved'] = requestsHeld
  return {
    id,
    tenantId,
    type,
    subject: agentId === null ? null : { sub: agentId, subject_type: 'agent' },
    actors: [],
    clientId: null,
    delegationId,
    delegation: delegation && delegationIntent(delegation),
    grantId: authorityId,
    resource: { type: 'vault_credential', id: credentialId },
    outcome: 'failure',
    requestId: null,
    ip: null,
    occurredAt: now,
    data,
  }
}

function callEvent<T extends EventType>(
  type: T,
  { endId, caller, credentialId, authority, requestId }: CallFacts,
  now: Date,
  fields: EventFields<T>,
  outcome: AuditOutcome,
): NewEvent {
  const resource = { type: 'vault_credential', id: credentialId }
  return {
    id: type === 'egress.stream.closed' ? endId : startEventId(endId),
    tenantId: caller.principal.tenantId,
    type,
    occurredAt: now,
    data: catalogued(type, { actor: actorOf(caller), resource, requestId }, fields).data,
    // Own members before the spread: the other order gives each object a new V8 hidden class.
    audit: { grantId: authority.id, outcome, ...doneBy(caller) },
  }
}
