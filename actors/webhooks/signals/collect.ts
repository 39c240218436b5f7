/**
 * Writes the events of streams from the audit log. A stream knows which record it has looked at, and moves on in the
 * transaction that writes the events: after a crash the records are read again.
 */
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type CauseRow,
  causesAfter,
  insertSignalEvents,
  lockStreamsBehind,
  type StreamPlace,
  moveStreams,
  type NewSignalEvent,
  type StreamBehind,
} from '../../../storage/webhooks/signal-events.js'
import { subjectsOfUsers } from '../../../storage/webhooks/signal-streams.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { byTenant } from '../../platform/by-tenant.js'
import { CAUSE_TYPES, type Signal, signalsOf, type Who } from './causes.js'
import { deliveredOf } from './streams.js'

/** Streams and records in one transaction. */
const STREAMS_MAX = 100
const CAUSES_MAX = 200

export type CollectNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly random: Random
  readonly issuer: string
}

const NIL = '00000000-0000-0000-0000-000000000000'
export const BEGIN: StreamPlace = { tenantId: NIL, id: NIL }
type Place = { after: StreamPlace }

type Collected = {
  readonly events: number
  /** There may be more. */
  readonly isMore: boolean
}

/**
 * @param place where the last call ended. The next one goes on from there, so that no tenant is always the first. A call that
 * comes to the end begins again.
 */
export function collectSignals(needs: CollectNeeds, place: Place): Promise<Collected> {
  // Crosses tenants: one worker writes the events of all.
  return needs.database.system(async (tx) => {
    const streams = await lockStreamsBehind(tx, place.after, STREAMS_MAX)
    const last = streams.length === STREAMS_MAX ? streams.at(-1) : undefined
    // The streams before the place have not been looked at.
    let isMore = last !== undefined || place.after !== BEGIN
    place.after = last ?? BEGIN
    let events = 0
    for (const [tenantId, own] of byTenant(streams)) {
      const collected = await collectOf(tx, needs, tenantId, own)
      isMore ||= collected.isMore
      events += collected.events
    }
    return { events, isMore }
  })
}

async function collectOf(
  tx: Transaction,
  needs: CollectNeeds,
  tenantId: string,
  streams: readonly StreamBehind[],
): Promise<Collected> {
  const from = Math.min(...streams.map(({ readTo }) => readTo))
  // The same for all: one statement has read it.
  const { last } = streams[0]!
  const causes = await causesAfter(tx, tenantId, { from, last }, CAUSE_TYPES, CAUSES_MAX)
  const isFull = causes.length === CAUSES_MAX
  const signals = causes.flatMap((cause) =>
    signalsOf(cause).map((signal) => ({ cause, ...signal })),
  )
  const rowIds = signals.flatMap(({ who: { user } }) =>
    user !== undefined && 'rowId' in user ? [user.rowId] : [],
  )
  const subs = await subjectsOfUsers(tx, tenantId, [...new Set(rowIds)])
  const events: NewSignalEvent[] = []
  for (const stream of streams) {
    const types = deliveredOf(stream.eventsRequested)
    for (const signal of signals) {
      if (signal.cause.sequence <= stream.readTo || !types.includes(signal.type)) continue
      const event = eventOf(needs, stream, signal, subs)
      if (event !== undefined) events.push(event)
    }
  }
  await insertSignalEvents(tx, events)
  const to = isFull ? causes.at(-1)!.sequence : last
  await moveStreams(
    tx,
    streams.map(({ id, readTo }) => ({ tenantId, id, readTo: Math.max(readTo, to) })),
  )
  return { events: events.length, isMore: isFull }
}

/** Undefined: the user is gone. */
function eventOf(
  { random, issuer }: CollectNeeds,
  { tenantId, id: streamId }: StreamBehind,
  { cause, type, who, isComplex, event }: Signal & { readonly cause: CauseRow },
  subs: ReadonlyMap<string, string>,
): NewSignalEvent | undefined {
  const { user, agentId, sessionId = '' } = who
  const sub = user !== undefined && 'rowId' in user ? subs.get(user.rowId) : user?.sub
  const principal = sub ?? agentId
  if (principal === undefined || (user !== undefined && sub === undefined)) return undefined
  const simple =
    sub === undefined
      ? { format: 'opaque', id: principal, subject_type: 'agent' }
      : { format: 'iss_sub', iss: issuer, sub }
  return {
    tenantId,
    streamId,
    id: random.uuid(),
    txn: String(cause.sequence),
    type,
    subject: isComplex ? complexOf(simple, sub === undefined, who, tenantId) : simple,
    event,
    issuedAt: cause.occurredAt,
    about: { principal, session: sessionId },
  }
}

const opaque = (id: string, more = {}) => ({ format: 'opaque', id, ...more })

function complexOf(
  simple: Readonly<Record<string, unknown>>,
  isAgent: boolean,
  { sessionId, delegationId, agentId }: Who,
  tenantId: string,
) {
  return {
    format: 'complex',
    ...(isAgent ? {} : { user: simple }),
    ...(sessionId === undefined ? {} : { session: opaque(sessionId) }),
    tenant: opaque(tenantId),
    ...(delegationId === undefined ? {} : { delegation: opaque(delegationId) }),
    ...(agentId === undefined ? {} : { agent: opaque(agentId, { subject_type: 'agent' }) }),
  }
}
