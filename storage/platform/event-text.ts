/** How an event is written down: for its receivers, and for the audit chain of its tenant. */
import { randomUUID } from 'node:crypto'
import { isoTime } from '../../runtime/kernel/text/iso-time.js'
import { quoted } from '../../runtime/kernel/text/json-text.js'
import { lineOf, type NewAuditEvent } from '../operations/audit.js'
import { canonicalJson } from '../operations/audit-chain.js'

export interface NewEvent {
  /** UUIDv7, from `Random.uuid()`. */
  readonly id: string
  readonly tenantId: string
  /** A name of the event catalogue, e.g. `admin.agent.registered`. */
  readonly type: string
  /** What receivers get to see: plain JSON. Never a secret. */
  readonly data: Record<string, unknown>
  readonly occurredAt: Date
  /** What the audit event says besides or instead of what `data` tells; never sent to receivers. */
  readonly audit?:
    | Partial<Omit<NewAuditEvent, 'id' | 'tenantId' | 'type' | 'occurredAt' | 'data'>>
    | undefined
}

export type EventText = {
  /** JSON, as receivers get it. */
  readonly body: string
  /** Its audit record, as it is hashed. */
  readonly line: string
}

const FAILED = /\.(failure|failed|rejected|reuse|exceeded)$/

/**
 * An event as receivers get it and as its audit record, which have most of the data in common. Every
 * event is audited; who did what is in its data (decisions.md 9, other events).
 */
export function eventText(event: NewEvent): EventText {
  return textOf(event, isoTime(event.occurredAt))
}

type Told = Omit<NewEvent, 'occurredAt'>

function textOf({ id, tenantId, type, data, audit = {} }: Told, occurredAt: string): EventText {
  const { actor, resource, request_id: requestId, ...rest } = data
  const doer = named(actor)
  const told = canonicalJson(rest)
  const line = lineOf(
    {
      id,
      tenantId,
      type,
      subject: or(audit.subject, doer === null ? null : { sub: doer.id, subject_type: doer.type }),
      actors: audit.actors ?? [],
      clientId: or(audit.clientId, text(rest['client_id'])),
      delegationId: or(audit.delegationId, text(rest['delegation_id'])),
      grantId: or(audit.grantId, text(rest['grant_id'])),
      resource: or(audit.resource, named(resource)),
      outcome: audit.outcome ?? (FAILED.test(type) ? 'failure' : 'success'),
      requestId: or(audit.requestId, text(requestId)),
      ip: audit.ip ?? null,
    },
    told,
    occurredAt,
  )
  const about = JSON.stringify({ actor, resource, request_id: requestId })
  return { body: joined(about, told), line }
}

/** What is said, be it null; otherwise what follows from the data. */
function or<T>(said: T | undefined, follows: T): T {
  return said === undefined ? follows : said
}

/** One JSON object of the members of two. */
function joined(one: string, other: string): string {
  if (one === '{}') return other
  return other === '{}' ? one : `${one.slice(0, -1)},${other.slice(1)}`
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** With its members in the order of their names, as the audit chain has them. */
function named(value: unknown): { readonly id: string; readonly type: string } | null {
  const { id, type } = (value ?? {}) as Readonly<Record<string, unknown>>
  return typeof type === 'string' && typeof id === 'string' ? { id, type } : null
}

/** An event that is written down already. */
export type WrittenEvent = Pick<NewEvent, 'id' | 'tenantId' | 'type' | 'occurredAt'> & EventText

/** To be appended: told, or written down already. */
export type OutboxEvent = NewEvent | WrittenEvent

/** A word that stands in a form where something is to be filled in; nobody else can know it. */
const BLANK = `blank-${randomUUID()}`
const BLANKS = new RegExp(`"${BLANK}-(\\d+)"`)
const ID = 0
const OCCURRED_AT = 1
const OWN = 2

/** A text with gaps: the numbers of what goes into them, and what stands around them. */
type Gapped = { readonly around: readonly string[]; readonly gaps: readonly number[] }

/**
 * An event that happens over and over with a few words changed, written down beforehand: it says what
 * `eventText` would say of it.
 */
export class EventForm {
  readonly #tenantId: string
  readonly #type: string
  readonly #body: Gapped
  readonly #line: Gapped

  /** @param write tells the event with the blanks it is given in place of the words that change. */
  constructor(blanks: number, write: (...blanks: string[]) => Omit<NewEvent, 'id' | 'occurredAt'>) {
    const blank = (at: number) => `${BLANK}-${at}`
    const event = write(...Array.from({ length: blanks }, (_, at) => blank(OWN + at)))
    const { tenantId, type, data, audit } = event
    const { body, line } = textOf(
      { id: blank(ID), tenantId, type, data, audit },
      blank(OCCURRED_AT),
    )
    this.#tenantId = tenantId
    this.#type = type
    this.#body = gapped(body)
    this.#line = gapped(line)
  }

  /** @param words for the blanks, in their order. */
  fill(id: string, occurredAt: Date, words: readonly (string | null)[]): WrittenEvent {
    const own = [quoted(id), quoted(isoTime(occurredAt))]
    for (const word of words) own.push(quoted(word))
    return {
      id,
      tenantId: this.#tenantId,
      type: this.#type,
      occurredAt,
      body: filled(this.#body, own),
      line: filled(this.#line, own),
    }
  }
}

function gapped(whole: string): Gapped {
  const around: string[] = []
  const gaps: number[] = []
  for (const [at, part] of whole.split(BLANKS).entries()) {
    if (at % 2 === 0) around.push(part)
    else gaps.push(Number(part))
  }
  return { around, gaps }
}

function filled({ around, gaps }: Gapped, words: readonly string[]): string {
  let whole = around[0]!
  for (let at = 0; at < gaps.length; at += 1) whole += words[gaps[at]!]! + around[at + 1]!
  return whole
}
