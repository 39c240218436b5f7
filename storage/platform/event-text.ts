/** Serialises events for receivers and for the audit chain of the tenant. */
import { randomUUID } from 'node:crypto'
import { isoTime } from '../../runtime/kernel/text/iso-time.js'
import { quoted } from '../../runtime/kernel/text/json-text.js'
import { auditData, lineOf, type NewAuditEvent } from '../operations/audit.js'

export interface NewEvent {
  /** UUIDv7, from `Random.uuid()`. */
  readonly id: string
  readonly tenantId: string
  /** A type of the event catalogue, such as `admin.agent.registered`. */
  readonly type: string
  /** The data for receivers: plain JSON without secrets. */
  readonly data: Record<string, unknown>
  readonly occurredAt: Date
  /**
   * Members of the audit record that override what the data says. Receivers get `delegation` alone, which is added to the
   * data.
   */
  readonly audit?:
    | Partial<Omit<NewAuditEvent, 'id' | 'tenantId' | 'type' | 'occurredAt' | 'data'>>
    | undefined
}

export type EventText = {
  /**
   * JSON: `true` if actor, resource and request id of the event match the audit record, otherwise an object with
   * these members. All other data of the event is in the record (`svc_event_data` of migration 0121).
   */
  readonly about: string
  /** The audit record, in the form that is hashed. */
  readonly line: string
}

const FAILED = /\.(failure|failed|rejected|reuse|exceeded)$/

/** The audit record of an event, and what receivers get besides it. All events are audited. */
export function eventText(event: NewEvent): EventText {
  return textOf(event, isoTime(event.occurredAt))
}

type Told = Omit<NewEvent, 'occurredAt'>

function textOf({ id, tenantId, type, data, audit = {} }: Told, occurredAt: string): EventText {
  const { actor, resource, request_id: requestId, ...rest } = data
  const doer = named(actor)
  const subject = or(
    audit.subject,
    doer === null ? null : { sub: doer.id, subject_type: doer.type },
  )
  const audited = {
    resource: or(audit.resource, named(resource)),
    requestId: or(audit.requestId, text(requestId)),
  }
  const line = lineOf(
    {
      id,
      tenantId,
      type,
      subject,
      actors: audit.actors ?? [],
      clientId: or(audit.clientId, text(rest['client_id'])),
      delegationId: or(audit.delegationId, text(rest['delegation_id'])),
      grantId: or(audit.grantId, text(rest['grant_id'])),
      ...audited,
      outcome: audit.outcome ?? (FAILED.test(type) ? 'failure' : 'success'),
      ip: audit.ip ?? null,
    },
    auditData(rest, audit.delegation),
    occurredAt,
  )
  const isOfRecord =
    isParty(actor, subject && { type: subject.subject_type, id: subject.sub }) &&
    isParty(resource, audited.resource) &&
    requestId === audited.requestId
  const about = isOfRecord ? 'true' : JSON.stringify({ actor, resource, request_id: requestId })
  return { about, line }
}

/** True if the member of the event is what the database derives from the record. */
function isParty(member: unknown, recorded: { readonly type: string; readonly id: string } | null) {
  if (recorded === null) return member === undefined
  if (typeof member !== 'object' || member === null) return false
  const { type, id } = member as Readonly<Record<string, unknown>>
  return type === recorded.type && id === recorded.id && Object.keys(member).length === 2
}

/** The explicit value, which can be null, otherwise the value derived from the data. */
function or<T>(explicit: T | undefined, derived: T): T {
  return explicit === undefined ? derived : explicit
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** A party with its members in the order of the audit chain. */
function named(value: unknown): { readonly id: string; readonly type: string } | null {
  const { id, type } = (value ?? {}) as Readonly<Record<string, unknown>>
  return typeof type === 'string' && typeof id === 'string' ? { id, type } : null
}

/** A serialised event. */
export type WrittenEvent = Pick<NewEvent, 'id' | 'tenantId' | 'type' | 'occurredAt'> & EventText

/** An event for the outbox, serialised or not. */
export type OutboxEvent = NewEvent | WrittenEvent

/** Placeholder in a template. It is random, so that event data cannot contain it. */
const BLANK = `blank-${randomUUID()}`
const BLANKS = new RegExp(`"${BLANK}-(\\d+)"`)
const ID = 0
const OCCURRED_AT = 1
const OWN = 2

/** A text with gaps: the indexes of the values, and the text around them. */
type Gapped = { readonly around: readonly string[]; readonly gaps: readonly number[] }

/** A template of a frequent event of which only a few values differ. It gives the same text as `eventText`. */
export class EventForm {
  readonly #tenantId: string
  readonly #type: string
  readonly #about: Gapped
  readonly #line: Gapped

  /** @param write returns the event, with the placeholders as values. */
  constructor(blanks: number, write: (...blanks: string[]) => Omit<NewEvent, 'id' | 'occurredAt'>) {
    const blank = (at: number) => `${BLANK}-${at}`
    const event = write(...Array.from({ length: blanks }, (_, at) => blank(OWN + at)))
    const { tenantId, type, data, audit } = event
    const { about, line } = textOf(
      { id: blank(ID), tenantId, type, data, audit },
      blank(OCCURRED_AT),
    )
    this.#tenantId = tenantId
    this.#type = type
    this.#about = gapped(about)
    this.#line = gapped(line)
  }

  /** @param words the values of the placeholders, in order. Numbers are integers. */
  fill(id: string, occurredAt: Date, words: readonly (string | number | null)[]): WrittenEvent {
    const own = [quoted(id), quoted(isoTime(occurredAt))]
    for (const word of words) own.push(typeof word === 'number' ? String(word) : quoted(word))
    return {
      id,
      tenantId: this.#tenantId,
      type: this.#type,
      occurredAt,
      about: filled(this.#about, own),
      line: filled(this.#line, own),
    }
  }
}

function gapped(whole: string): Gapped {
  const around: string[] = []
  const gaps: number[] = []
  for (const [index, part] of whole.split(BLANKS).entries()) {
    if (index % 2 === 0) around.push(part)
    else gaps.push(Number(part))
  }
  return { around, gaps }
}

function filled({ around, gaps }: Gapped, words: readonly string[]): string {
  let whole = around[0]!
  for (let index = 0; index < gaps.length; index += 1)
    whole += words[gaps[index]!]! + around[index + 1]!
  return whole
}
