/**
 * The audit chain: canonical form, hash and verification of events. Repeats the computation of the
 * database (0007_control), for the service and for holders of an export.
 */
import { createHash } from 'node:crypto'

const AUDIT_SUITE = 'svc-audit-v1'
/** `previous_hash` of the first event of a tenant. */
export const FIRST_PREVIOUS_HASH = '0'.repeat(64)

export type AuditOutcome = 'success' | 'failure' | 'denied'
/** A principal as in token claims. */
export type AuditParty = { readonly sub: string; readonly subject_type: string }
export type AuditResource = { readonly type: string; readonly id: string }

/** An audit event as listed, exported and hashed (docs/reference/operations.md, Audit). */
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
type ChainMember = 'sequence' | 'previous_hash' | 'hash'

/** JSON with sorted members and without white space (RFC 8785). */
export function canonicalJson(value: unknown): string {
  return isInOrder(value) ? JSON.stringify(value) : inOrder(value)
}

/** Types of values that JSON represents, other than null, arrays and objects. */
const WORDS: ReadonlySet<string> = new Set(['string', 'number', 'boolean'])

/** True for plain JSON with sorted members, which can be serialized in one call. */
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
  // As in JSON.stringify: values without a JSON form become null in arrays and are omitted in
  // objects.
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = value as Readonly<Record<string, unknown>>
  // Dates and similar values are hashed in their JSON form.
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

/** The hashed text of an event: every member except the members of the chain. */
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

/** Where a chain breaks, and why. */
export type ChainBreak = { readonly sequence: number; readonly reason: string }

/** The state of the chain before the events that are verified next. */
export type ChainHead = { readonly sequence: number; readonly hash: string }

/** Verifies events one by one in sequence order. */
export class ChainCheck {
  #head: ChainHead | undefined
  #tenantId: string | undefined
  #events = 0

  /** @param head the event before the first. Undefined: the first event is trusted. */
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

  /** @returns undefined when the event continues the chain. */
  add(event: AuditRecord): ChainBreak | undefined {
    const { sequence } = event
    const broken = (reason: string): ChainBreak => ({ sequence, reason })
    this.#tenantId ??= event.tenant_id
    if (event.tenant_id !== this.#tenantId) return broken('belongs to another tenant')
    // An export may start anywhere, but the first event of a tenant has no predecessor.
    const head =
      this.#head ?? (sequence === 1 ? { sequence: 0, hash: FIRST_PREVIOUS_HASH } : undefined)
    if (head !== undefined && sequence !== head.sequence + 1) {
      return broken(`follows ${head.sequence}: events are missing, repeated or out of order`)
    }
    if (head !== undefined && event.previous_hash !== head.hash) {
      return broken('does not carry the hash of the event before it')
    }
    if (auditHash(event) !== event.hash) return broken('was changed: its hash differs')
    this.#head = { sequence, hash: event.hash }
    this.#events += 1
    return undefined
  }
}
