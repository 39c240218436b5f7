/**
 * The audit chain: how an event is written down, hashed and checked. What the database computes
 * (0007_control) is computed here again, for the service and for whoever holds an export.
 */
import { createHash } from 'node:crypto'

export const AUDIT_SUITE = 'svc-audit-v1'
/** What stands before the first event of a tenant. */
export const FIRST_PREVIOUS_HASH = '0'.repeat(64)

export type AuditOutcome = 'success' | 'failure' | 'denied'
/** A principal in the words of its tokens. */
export type AuditParty = { readonly sub: string; readonly subject_type: string }
export type AuditResource = { readonly type: string; readonly id: string }

/** An audit event as it is read, exported and hashed: the record of decisions.md 22. */
export type AuditRecord = {
  readonly id: string
  readonly sequence: number
  readonly tenant_id: string
  readonly type: string
  /** RFC 3339, UTC, milliseconds. */
  readonly occurred_at: string
  readonly subject: AuditParty | null
  /** Outermost first. */
  readonly actors: readonly AuditParty[]
  readonly client_id: string | null
  readonly delegation_id: string | null
  readonly grant_id: string | null
  readonly resource: AuditResource | null
  readonly outcome: AuditOutcome
  readonly request_id: string | null
  readonly ip: string | null
  readonly data: Readonly<Record<string, unknown>>
  /** Lower-case hexadecimal. */
  readonly previous_hash: string
  readonly hash: string
}
export type ChainMember = 'sequence' | 'previous_hash' | 'hash'

/** The JSON of a value with sorted members and no white space (RFC 8785). */
export function canonicalJson(value: unknown): string {
  return isInOrder(value) ? JSON.stringify(value) : inOrder(value)
}

/** What JSON has a word for, besides null, lists and objects. */
const WORDS: ReadonlySet<string> = new Set(['string', 'number', 'boolean'])

/** Whether it is plain JSON with its members sorted already: then it is written in one go. */
function isInOrder(value: unknown): boolean {
  if (typeof value !== 'object') return WORDS.has(typeof value)
  if (value === null) return true
  if (Array.isArray(value)) return value.every(isInOrder)
  let before = ''
  for (const name in value) {
    if (name < before || !isInOrder((value as Readonly<Record<string, unknown>>)[name]))
      return false
    before = name
  }
  return !('toJSON' in value)
}

function inOrder(value: unknown): string {
  // What JSON has no word for is null in a list, and a member that is left out.
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = value as Readonly<Record<string, unknown>>
  // Dates and the like are what a reader will see; the hash is over that.
  const { toJSON } = members
  if (typeof toJSON === 'function') return canonicalJson(toJSON.call(value, ''))
  let text = '{'
  for (const name of Object.keys(members).sort()) {
    const member = members[name]
    if (member === undefined) continue
    text += `${text.length === 1 ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`
  }
  return `${text}}`
}

/** What is hashed of an event: every member but those of the chain. */
export function canonicalEvent(event: Omit<AuditRecord, ChainMember>): string {
  return canonicalJson({
    actors: event.actors,
    client_id: event.client_id ?? null,
    data: event.data,
    delegation_id: event.delegation_id ?? null,
    grant_id: event.grant_id ?? null,
    id: event.id ?? null,
    ip: event.ip ?? null,
    occurred_at: event.occurred_at ?? null,
    outcome: event.outcome ?? null,
    request_id: event.request_id ?? null,
    resource: event.resource ?? null,
    subject: event.subject ?? null,
    tenant_id: event.tenant_id ?? null,
    type: event.type ?? null,
  })
}

/** Lower-case hexadecimal SHA-256 over suite, previous hash, sequence and event. */
export function auditHash(event: Omit<AuditRecord, 'hash'>): string {
  const { previous_hash: previous, sequence } = event
  const text = [AUDIT_SUITE, previous, String(sequence), canonicalEvent(event)].join('\n')
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/** Where a chain does not hold, and why. */
export type ChainBreak = { readonly sequence: number; readonly reason: string }

/** What is known of the chain before the events that are about to be checked. */
export type ChainHead = { readonly sequence: number; readonly hash: string }

/** Checks events one by one, in the order of their sequence. */
export class ChainCheck {
  #head: ChainHead | undefined
  #tenantId: string | undefined
  #events = 0

  /** @param head the event before the first; undefined: the first one is believed. */
  constructor(head?: ChainHead) {
    this.#head = head
  }

  get head(): ChainHead | undefined {
    return this.#head
  }
  get events(): number {
    return this.#events
  }
  get tenantId(): string | undefined {
    return this.#tenantId
  }

  /** Undefined when the event continues the chain. */
  add(event: AuditRecord): ChainBreak | undefined {
    const { sequence } = event
    const broken = (reason: string): ChainBreak => ({ sequence, reason })
    this.#tenantId ??= event.tenant_id
    if (event.tenant_id !== this.#tenantId) return broken('belongs to another tenant')
    // An export may begin anywhere; what comes first in a tenant has nothing before it.
    const head =
      this.#head ?? (sequence === 1 ? { sequence: 0, hash: FIRST_PREVIOUS_HASH } : undefined)
    if (head !== undefined && sequence !== head.sequence + 1) {
      return broken(`follows ${head.sequence}: events are missing, repeated or out of order`)
    }
    if (head !== undefined && event.previous_hash !== head.hash) {
      return broken('does not carry the hash of the event before it')
    }
    if (auditHash(event) !== event.hash) return broken('was changed: its hash is another one')
    this.#head = { sequence, hash: event.hash }
    this.#events += 1
    return undefined
  }
}
