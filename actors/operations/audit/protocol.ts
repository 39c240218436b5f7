/** The audit chain of a tenant. docs/reference/operations.md, Audit. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { AuditOutcome, AuditParty, AuditResource } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { ListCursor, Page } from '../../domain/paging.js'

type AuditName = {
  /** As in the event: an id, or the `sub` of a person. */
  readonly id: string
  readonly type: string
  /** The id of the object. For the `sub` of a person: the id of the user. */
  readonly objectId: string
  readonly name: string
}

export type AuditProtocol = {
  listAuditEvents: Ask<ListAuditEvents, AuditEventsListed>
  /** Returns events in chain order, for archiving. */
  exportAuditEvents: Ask<FromSequence & AuditAbout, AuditEventsListed>
  /** Names people and things that events mention by id. */
  listAuditNames: Ask<
    {
      readonly tenantId: TenantId
      readonly ids: readonly string[]
      /** Whether the caller may read people. */
      readonly namesPeople: boolean
    },
    { readonly tag: 'named'; readonly names: readonly AuditName[] }
  >
  /** Figures of what happened lately, from hourly counts. */
  readActivity: Ask<
    { readonly tenantId: TenantId; readonly period: ActivityPeriod },
    {
      readonly tag: 'activity'
      readonly from: Date
      readonly stepSecs: number
      readonly series: readonly ActivitySeries[]
    }
  >
  /** Verifies hashes and order of a range, and the end of the chain when the range reaches it. */
  verifyAuditEvents: Ask<FromSequence, AuditVerified>
}

export const ACTIVITY_PERIODS = ['24h', '7d', '30d'] as const
export type ActivityPeriod = (typeof ACTIVITY_PERIODS)[number]
export const ACTIVITY_KINDS = ['sign_ins', 'tokens', 'egress', 'deliveries'] as const
type ActivityFigures = {
  readonly total: number
  /** How many of them were refused or failed. */
  readonly failed: number
}
export type ActivitySeries = ActivityFigures & {
  readonly kind: (typeof ACTIVITY_KINDS)[number]
  readonly points: readonly (ActivityFigures & { readonly at: Date })[]
}

/** Members have their wire names, because those are hashed. */
export type AuditEvent = {
  readonly id: string
  readonly sequence: number
  readonly tenant_id: TenantId
  readonly type: string
  readonly occurred_at: string
  readonly subject: AuditParty | null
  readonly actors: readonly AuditParty[]
  readonly client_id: string | null
  readonly delegation_id: string | null
  readonly grant_id: string | null
  readonly resource: AuditResource | null
  readonly outcome: AuditOutcome
  readonly request_id: string | null
  readonly ip: string | null
  readonly data: Readonly<Record<string, unknown>>
  readonly previous_hash: string
  readonly hash: string
}

/** The object or the request of an event. Null: any. */
type AuditAbout = {
  readonly resourceType: string | null
  readonly resourceId: string | null
  readonly requestId: string | null
}

export type ListAuditEvents = Page &
  AuditAbout & {
    readonly tenantId: TenantId
    readonly type: string | null
    /** The `sub` of the subject or of an actor. */
    readonly actor: string | null
    readonly since: Date | null
    /** Exclusive. */
    readonly until: Date | null
  }
export type AuditEventsListed = {
  readonly tag: 'listed'
  readonly events: readonly AuditEvent[]
  readonly next: ListCursor | null
  /** For an export: the last sequence returned. Null when no event follows. */
  readonly nextSequence: number | null
}

export type FromSequence = {
  readonly tenantId: TenantId
  /** Last sequence already processed. 0: from the beginning. */
  readonly afterSequence: number
  readonly limit: number
}
export type AuditVerified = {
  readonly tag: 'verified'
  readonly valid: boolean
  /** Number of valid events, up to the first invalid one. */
  readonly events: number
  readonly afterSequence: number
  /** Sequence and hash of the last valid event, or null. */
  readonly last: { readonly sequence: number; readonly hash: string } | null
  readonly broken: { readonly sequence: number; readonly reason: string } | null
  /** Where to continue. Null at the end of the chain or at a break. */
  readonly nextSequence: number | null
  /** Events of committed changes that have no number yet. */
  readonly unnumbered: number
}

export const audit = address<AuditProtocol>('audit', {
  idempotent: [
    'listAuditEvents',
    'exportAuditEvents',
    'listAuditNames',
    'readActivity',
    'verifyAuditEvents',
  ],
})
