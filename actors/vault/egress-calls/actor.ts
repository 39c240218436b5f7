/** Lists, exports and follows the calls that left the service. Events are written by those that make the calls. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  FairShare,
  isRefused,
  type Release,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import { ByteStream, StreamAborted } from '../../../runtime/kernel/stream.js'
import { auditHead } from '../../../storage/operations/audit.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import {
  type EgressCallRow,
  egressCallsAfter,
  findGrantBudgets,
  listEgressCallRows,
} from '../../../storage/vault/egress-calls.js'
import { isUuid } from '../../domain/ids.js'
import type { ListCursor } from '../../domain/paging.js'
import type { Principal } from '../../domain/principal.js'
import { isCallerInForce } from '../../platform/oauth/caller-in-force.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import {
  type Call,
  CALL_TYPES,
  type CallsBetween,
  type CallKind,
  egressCalls,
  type EgressCallsProtocol,
  type FileFormat,
} from './protocol.js'
import { callOf, CSV_HEAD, csvLines } from './records.js'

/** Calls of one file. */
const EXPORTED_MAX = 100_000
const EXPORT_PAGE = 1_000
/** Reads of one file, each of at most 5,000 events: with a filter that few calls match, the file breaks off. */
const EXPORT_READS_MAX = 200
/** Streams of one tenant, and of the process. */
const STREAMS_PER_TENANT_MAX = 8
const STREAMS_MAX = 128
const POLL_MS = 1_000
/** A silent connection may be closed by a proxy after a while, and by the listener after 10 s. */
const BEAT_MS = 5_000

type Needs = {
  readonly database: Database
  readonly clock: Clock
  /** A follower connects again after this, with the id of its last event. */
  readonly streamSecs: number
  readonly groups: TenantGroups
  readonly shares: ShareCounts
}

const typesOf = (kind: CallKind | null): readonly string[] =>
  kind === null ? Object.values(CALL_TYPES).flat() : CALL_TYPES[kind]

export const egressCallsActor = defineActor<EgressCallsProtocol, Needs>({
  address: egressCalls,
  asks: {},
  mailbox: { capacity: 256, inflightMax: 8 },
  supervision: { onFailure: 'resume' },
  create: (needs, { signal }) => {
    const { groups, shares: counts } = needs
    const levels = [{ name: 'tenant', max: STREAMS_PER_TENANT_MAX }]
    const open = new FairShare({
      resource: 'egress_call_streams',
      total: STREAMS_MAX,
      levels,
      counts,
    })
    const running = new Set<AbortController>()
    const endAll = () => {
      for (const stopping of running) stopping.abort()
    }
    signal.addEventListener('abort', endAll, { once: true })
    const streamOf = ({ tenantId }: Principal, texts: Texts) => {
      const place = open.tryAcquire([tenantId], 1, { groups: groups.known(tenantId) })
      if (isRefused(place)) return null
      const stopping = new AbortController()
      running.add(stopping)
      return streamWith(texts, stopping, () => {
        running.delete(stopping)
        place()
      })
    }
    return {
      async listEgressCalls({ limit, after, ...which }, context) {
        const { calls, next } = await pageOf(needs, which, limit, after, context)
        return { tag: 'listed', calls, next }
      },

      async exportEgressCalls({ format, ...which }) {
        const body = streamOf(which.principal, (stop) => fileOf(needs, which, format, stop))
        return body === null ? { tag: 'too_many_streams' } : { tag: 'exported', body, format }
      },

      async followEgressCalls({ principal, afterSequence, kind, ...filter }, context) {
        const { tenantId } = principal
        const sequence =
          afterSequence ??
          (
            await needs.database.tenant(tenantId, (tx) => auditHead(tx, tenantId), {
              signal: context.signal,
            })
          )?.sequence ??
          0
        const from = { types: typesOf(kind), sequence }
        const body = streamOf(principal, (stop) => eventsOf(needs, principal, from, filter, stop))
        return body === null ? { tag: 'too_many_streams' } : { tag: 'followed', body }
      },
    }
  },
})

type Texts = (stop: AbortSignal) => AsyncGenerator<string, void, void>

/**
 * A stream of texts, until its reader leaves. Its place is free when its work has ended: readers that come and go do not
 * run more scans than there are places.
 */
function streamWith(begin: Texts, stopping: AbortController, leave: Release): ByteStream {
  const texts = begin(stopping.signal)
  const end = () => {
    stopping.abort()
    // After the text that is being made.
    void texts
      .return()
      .catch(() => undefined)
      .finally(leave)
  }
  return new ByteStream({
    async read() {
      try {
        const { done, value } = await texts.next()
        if (done !== true) return Buffer.from(value)
      } catch (error) {
        end()
        throw error
      }
      end()
      return undefined
    },
    cancel: end,
  })
}

async function pageOf(
  { database, clock }: Needs,
  { principal: { tenantId }, kind, since, until, ...filter }: CallsBetween,
  limit: number,
  after: ListCursor | null,
  options: Partial<Pick<MessageContext, 'signal'>> = {},
): Promise<{ readonly calls: readonly Call[]; readonly next: ListCursor | null }> {
  const range = { types: typesOf(kind), since, until, limit: limit + 1, after }
  return database.tenant(
    tenantId,
    async (tx) => {
      const { rows, scanned } = await listEgressCallRows(tx, tenantId, range, filter)
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      const isMore = rows.length > limit && last !== undefined
      const next = isMore ? { createdAt: last.occurredAt, id: last.id } : scanned
      return { calls: await callsOf(tx, tenantId, shown, clock.now()), next }
    },
    options,
  )
}

async function callsOf(
  tx: Transaction,
  tenantId: string,
  rows: readonly EgressCallRow[],
  now: Date,
): Promise<readonly Call[]> {
  const ids = new Set(
    rows.flatMap(({ grantId }) => (grantId !== null && isUuid(grantId) ? grantId : [])),
  )
  const budgets = ids.size === 0 ? [] : await findGrantBudgets(tx, tenantId, [...ids])
  const byGrant = new Map(budgets.map((budget) => [budget.id, budget]))
  return rows.map((row) => callOf(row, byGrant.get(row.grantId ?? ''), now))
}

/**
 * The calls as lines, read page by page when the reader wants more.
 * @throws {StreamAborted} so that what a revoked caller has got, or what ends before the oldest call, does not look whole.
 */
async function* fileOf(
  needs: Needs,
  which: CallsBetween,
  format: FileFormat,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  if (format === 'csv') yield CSV_HEAD
  let after: ListCursor | null = null
  for (let count = 0, reads = 0; count < EXPORTED_MAX; reads += 1) {
    if (reads === EXPORT_READS_MAX) throw new StreamAborted('too_many_events')
    const limit = Math.min(EXPORT_PAGE, EXPORTED_MAX - count)
    const page: Awaited<ReturnType<typeof pageOf>> = await pageOf(needs, which, limit, after, {
      signal,
    })
    if (!(await isInForce(needs, which.principal, signal))) throw new StreamAborted('revoked')
    const { calls, next } = page
    if (calls.length > 0)
      yield format === 'csv'
        ? csvLines(calls)
        : calls.map((call) => `${JSON.stringify(call)}\n`).join('')
    if (next === null) return
    count += calls.length
    after = next
  }
}

/** Server-sent events until the token or API key ends, the process stops, or the longest time. */
async function* eventsOf(
  needs: Needs,
  principal: Principal,
  from: { readonly types: readonly string[]; readonly sequence: number },
  filter: Parameters<typeof egressCallsAfter>[3],
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const { database, clock, streamSecs } = needs
  const { tenantId, expiresAtSecs } = principal
  const leftMs = Math.min(streamSecs * 1000, expiresAtSecs * 1000 - clock.now().getTime())
  const endsMs = clock.monotonicMs() + leftMs
  let { sequence } = from
  let beatMs = clock.monotonicMs()
  // An id without data: a client that connects again goes on here.
  yield `retry: 2000\nid: ${sequence}\n\n`
  try {
    while (clock.monotonicMs() < endsMs) {
      const read = await database.tenant(
        tenantId,
        async (tx) => {
          const found = await egressCallsAfter(
            tx,
            tenantId,
            { types: from.types, sequence },
            filter,
          )
          return { ...found, calls: await callsOf(tx, tenantId, found.rows, clock.now()) }
        },
        { signal },
      )
      if (!(await isInForce(needs, principal, signal))) return
      sequence = read.sequence
      const events = read.calls.map(
        (call, index) =>
          `id: ${read.rows[index]!.sequence}\nevent: call\ndata: ${JSON.stringify(call)}\n\n`,
      )
      const nowMs = clock.monotonicMs()
      if (events.length > 0 || nowMs - beatMs >= BEAT_MS) {
        beatMs = nowMs
        yield events.length > 0 ? events.join('') : `id: ${sequence}\n\n`
      }
      // A follower that is behind is as fast as it reads. One whose filter few calls match costs a scan in each look.
      if (!read.isMore) await sleep(POLL_MS, undefined, { ref: false, signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

const isInForce = ({ database, clock }: Needs, principal: Principal, signal: AbortSignal) =>
  database.system((tx) => isCallerInForce(tx, principal, clock.now()), { signal })
