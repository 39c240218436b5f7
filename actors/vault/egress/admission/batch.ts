/** One transaction of a tenant: decides new calls, and records beginnings and ends. */
import {
  appendEvents,
  type OutboxEvent,
  recordedCallEvents,
} from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  type AuthorityQuery,
  type AuthorityRef,
  type AuthorityRow,
  bookUses,
  returnToAuthority,
  spendAuthorities,
} from '../../../../storage/vault/egress-authorities.js'
import {
  closeEgressBlocks,
  type EgressBlockRow,
  type Holding,
  holdsPart,
  isHeldByBlocks,
  openEgressBlocks,
  recallBlocks,
  renewEgressBlocks,
  type Settlement,
  settlingBlocks,
  takeForBlock,
} from '../../../../storage/vault/egress-blocks.js'
import type { BudgetSettlement } from '../../../../storage/vault/grant-budgets.js'
import {
  holdVaultCredentials,
  readHeldCredentials,
} from '../../../../storage/vault/vault-credentials.js'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  type Admitted,
  authoritiesOf,
  Decision,
  hasLimits,
  queryOf,
} from './decision.js'
import { beginEvent, type CallFacts } from './events.js'
import { settleBudgets } from './grant-budgets.js'
import { Block, HELD_MAX } from './block.js'
import type { KnownCaller, KnownCallers } from './known-callers.js'
import type { ApprovalLimits } from '../../../platform/call-approvals.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type PendingRequest = {
  readonly request: AdmissionRequest
  readonly key: string
  readonly resolve: (outcome: AdmissionOutcome) => void
  readonly reject: (error: unknown) => void
  /** How often it waited for blocks to give back what they hold of a limit. */
  recalls: number
}

/**
 * The beginning or the end of a call, or bytes that it has drawn from its block, to store. An event has a fixed id, so
 * that it is appended once. Each record is written as a whole literal with its members in this order: V8 gives objects
 * that extend a spread one hidden class each, which makes every later access slow.
 */
export type CallRecord = {
  readonly kind: 'begin' | 'drawn' | 'end'
  readonly event: OutboxEvent | null
  readonly facts: CallFacts
  readonly unusedBytes: number
  /** The end of a call that was cut by its byte budget, which spends the budget. */
  readonly spends: boolean
  /** It may be stored already: by a commit with a lost response, or by another process. */
  readonly isRetry: boolean
  /** The block that the record is about. */
  readonly block: Block | null
  /** What the call has used from what the block holds. Negative bytes are given back. */
  readonly used: Holding
  /** What its end changes in the budget of its grant. */
  readonly settles: BudgetSettlement | null
}

export const NOTHING: Holding = { requests: 0, bytes: 0 }

/** A call waits for a recall at most this often. */
export const RECALLS_MAX = 8

export type Batch = {
  readonly requests: readonly PendingRequest[]
  readonly records: readonly CallRecord[]
  readonly closing: readonly Block[]
  /** What is read is valid while the callers have this generation. */
  readonly generation: number
  readonly nowMs: number
  /** Whether blocks are asked to give back what they hold before a call is refused. */
  readonly mayRecall: boolean
}

export type Decided = {
  /** In the order of the requests. Null: to be decided again when blocks have given back what they hold. */
  readonly outcomes: readonly (AdmissionOutcome | null)[]
  /** Blocks that are not used any more. */
  readonly retired: readonly Block[]
}

type BatchNeeds = WriteNeeds & {
  readonly unrecordedMax: number
  readonly approvals: ApprovalLimits
}

/** What a transaction has found out about a caller, to remember after the commit. */
type Found = { readonly caller: KnownCaller; readonly opened: EgressBlockRow | null }

/** Runs the transaction. Callers are remembered after its commit. */
export async function writeBatch(
  needs: BatchNeeds,
  tenantId: string,
  known: KnownCallers,
  batch: Batch,
): Promise<Decided> {
  const { outcomes, found, retired } = await needs.database.tenant(tenantId, (tx) =>
    write(tx, needs, tenantId, known, batch),
  )
  for (const { caller } of found) known.remember(caller)
  return { outcomes, retired }
}

async function write(
  tx: Transaction,
  needs: BatchNeeds,
  tenantId: string,
  known: KnownCallers,
  { requests, records, closing, generation, nowMs, mayRecall }: Batch,
) {
  const now = needs.clock.now()
  const unstored = await withoutStored(tx, tenantId, records)
  const events = eventsOf(unstored)
  // Blocks are locked before credentials, and these before grants.
  const freed = await settleBlocks(tx, tenantId, unstored, closing)
  const cut = unstored.flatMap(({ spends, facts }) => (spends ? facts : []))
  const spent = cut.flatMap(({ authority, hold }) => (hold === undefined ? authority : []))
  if (spent.length > 0) recallBlocks(tx, tenantId)
  const queries = new Map<string, AuthorityQuery>()
  for (const { request, key } of requests) {
    if (!queries.has(key)) queries.set(key, queryOf(request))
  }
  const due = renewalsDue(known, [...queries.keys()], nowMs)
  // Locked before their grants, in the same order as a revocation, to avoid deadlocks.
  const credentialIds = new Set([...queries.values()].map(({ credentialId }) => credentialId))
  for (const { facts, unusedBytes, spends, settles } of unstored) {
    if (unusedBytes > 0 || spends || settles !== null) credentialIds.add(facts.credentialId)
  }
  for (const { block } of freed) credentialIds.add(block.credentialId)
  // Pipelined, so that it takes one round trip. Returned bytes are available to the requests of this
  // batch.
  const [held, , , , authoritiesByKey, renewed] = await Promise.all([
    credentialIds.size === 0 ? [] : holdVaultCredentials(tx, tenantId, [...credentialIds]),
    spendAuthorities(tx, tenantId, spent, now),
    settleBudgets(tx, tenantId, unstored, now),
    returnUnused(tx, tenantId, unstored, freed),
    authoritiesOf(tx, tenantId, queries, now),
    due.length === 0
      ? new Set<string>()
      : renewEgressBlocks(
          tx,
          tenantId,
          due.map(({ id }) => id),
        ),
  ])
  const rows = new Map(held.map((row) => [row.id, row]))
  const used = new Set<string>()
  for (const { kind, block, facts } of records) {
    if (kind === 'begin' && block?.takeStamp(nowMs) === true) used.add(facts.credentialId)
  }
  for (const { isStampDue, credentialId } of closing) if (isStampDue) used.add(credentialId)
  const decision = new Decision(tx, tenantId, needs, now)
  const outcomes: (AdmissionOutcome | null)[] = []
  const admittedBy = new Map<string, Admitted>()
  for (const { request, key } of requests) {
    const decided = decision.of(
      request,
      rows.get(request.credentialId),
      authoritiesByKey.get(key) ?? [],
    )
    const outcome = decided instanceof Promise ? await decided : decided
    if (outcome.tag === 'admitted') {
      used.add(request.credentialId)
      admittedBy.set(key, outcome)
      events.push(beginEvent(outcome.facts, now))
    }
    outcomes.push(outcome)
  }
  events.push(...decision.told)
  if (mayRecall) await recallForSpent(tx, tenantId, requests, outcomes, authoritiesByKey)
  const lost = lostOf(due, renewed, nowMs)
  const retired: Block[] = []
  const found: Found[] = []
  for (const [key, query] of queries) {
    const row = rows.get(query.credentialId)
    const authorities = authoritiesByKey.get(key) ?? []
    const before = known.find(key)
    const admission = admittedBy.get(key)
    const kept = blockToKeep(before?.block ?? null, authorities, lost)
    if (kept === null && before?.block?.retire() === true) retired.push(before.block)
    // Nothing is kept about a caller without an authority.
    if (row === undefined) continue
    // The second call opens a block: most callers of one call do not need one.
    const opens = kept === null && before !== undefined && admission !== undefined
    const of = { tenantId, query, authorities, now, nowMs }
    const fresh = opens ? await blockFor(tx, needs, admission, of) : null
    const caller: KnownCaller = {
      key,
      row,
      authorities,
      readMs: nowMs,
      generation,
      usedMs: admission === undefined ? (before?.usedMs ?? nowMs) : nowMs,
      block: fresh?.block ?? kept,
      isRefreshing: false,
      latest: before?.latest ?? null,
    }
    found.push({ caller, opened: fresh?.opened ?? null })
  }
  openEgressBlocks(
    tx,
    found.flatMap(({ opened }) => opened ?? []),
  )
  if (used.size > 0) bookUses(tx, tenantId, [...used].sort(), now, events)
  else appendEvents(tx, events)
  return { outcomes, found, retired }
}

/** Calls that are refused only because blocks hold a part of the limit wait until that is given back. */
async function recallForSpent(
  tx: Transaction,
  tenantId: string,
  requests: readonly PendingRequest[],
  outcomes: (AdmissionOutcome | null)[],
  authoritiesByKey: ReadonlyMap<string, readonly AuthorityRow[]>,
): Promise<void> {
  const places: number[] = []
  const ids = new Set<string>()
  for (const [place, { key, recalls }] of requests.entries()) {
    if (outcomes[place]?.tag !== 'budget_exceeded' || recalls >= RECALLS_MAX) continue
    places.push(place)
    for (const each of authoritiesByKey.get(key) ?? [])
      if (hasLimits(each) && !each.isSpent) ids.add(each.id)
  }
  if (places.length === 0 || !(await isHeldByBlocks(tx, tenantId, [...ids]))) return
  if (places.some((place) => requests[place]!.recalls === 0)) recallBlocks(tx, tenantId)
  for (const place of places) outcomes[place] = null
}

/** A new block of a caller, or null if its authority has none. */
async function blockFor(
  tx: Transaction,
  { random, unrecordedMax: callsMax }: BatchNeeds,
  { facts: { authority, credentialId } }: Admitted,
  of: {
    readonly tenantId: string
    readonly query: AuthorityQuery
    readonly authorities: readonly AuthorityRow[]
    readonly now: Date
    readonly nowMs: number
  },
): Promise<{ readonly block: Block; readonly opened: EgressBlockRow } | null> {
  const { tenantId, query, now, nowMs } = of
  const first = of.authorities.find(({ id }) => id === authority.id)
  if (first === undefined || first.approval !== 'none' || callsMax === 0) return null
  const isLimited = hasLimits(first)
  const held = !isLimited
    ? NOTHING
    : holdsPart(first)
      ? await takeForBlock(tx, tenantId, authority, HELD_MAX, now)
      : undefined
  if (held === undefined) return null
  const id = random.uuid()
  const hasRequests = first.maxRequests !== null
  const hasBytes = first.maxBytes !== null
  const opened: EgressBlockRow = {
    tenantId,
    id,
    credentialId,
    authorityId: authority.id,
    agentId: query.agentId,
    delegationId: query.delegationId,
    callsMax,
    requestsHeld: hasRequests ? held.requests : null,
    bytesHeld: hasBytes ? held.bytes : null,
  }
  const limits = isLimited ? { hasRequests, hasBytes } : null
  const block = new Block({ id, credentialId, authority, callsMax, nowMs, limits, held })
  return { block, opened }
}

/**
 * Reads busy callers again and renews their blocks, in parallel with the transactions that record their calls.
 * @returns blocks that are not used any more.
 */
export async function refreshCallers(
  { database, clock }: Pick<BatchNeeds, 'database' | 'clock'>,
  tenantId: string,
  known: KnownCallers,
  refreshes: ReadonlyMap<string, AuthorityQuery>,
): Promise<readonly Block[]> {
  const { generation } = known
  const nowMs = clock.monotonicMs()
  const due = renewalsDue(known, [...refreshes.keys()], nowMs)
  const ids = [...new Set([...refreshes.values()].map(({ credentialId }) => credentialId))]
  const [rows, authoritiesByKey, renewed] = await database.tenant(tenantId, (tx) =>
    Promise.all([
      readHeldCredentials(tx, tenantId, ids),
      authoritiesOf(tx, tenantId, refreshes, clock.now()),
      due.length === 0
        ? new Set<string>()
        : renewEgressBlocks(
            tx,
            tenantId,
            due.map(({ id }) => id),
          ),
    ]),
  )
  const lost = lostOf(due, renewed, nowMs)
  const retired: Block[] = []
  for (const [key, { credentialId }] of refreshes) {
    const before = known.find(key)
    const row = rows.find(({ id }) => id === credentialId)
    const authorities = authoritiesByKey.get(key) ?? []
    if (before === undefined || row === undefined) continue
    const block = blockToKeep(before.block, authorities, lost)
    if (block === null && before.block?.retire() === true) retired.push(before.block)
    known.remember({ ...before, row, authorities, readMs: nowMs, generation, block })
  }
  return retired
}

/** Notes the renewal of blocks. @returns those that are gone. */
function lostOf(
  due: readonly Block[],
  renewed: ReadonlySet<string>,
  nowMs: number,
): ReadonlySet<Block> {
  const lost = new Set(due.filter(({ id }) => !renewed.has(id)))
  for (const block of due) if (!lost.has(block)) block.renewedMs = nowMs
  return lost
}

/** A block is used while its grant or lease is in force and the row exists. */
function blockToKeep(
  block: Block | null,
  authorities: readonly AuthorityRow[],
  lost: ReadonlySet<Block>,
): Block | null {
  if (block === null || block.isRetired || lost.has(block)) return null
  const isThere = authorities.some(
    (each) =>
      each.id === block.authority.id &&
      each.revokedAt === null &&
      !each.isSpent &&
      hasLimits(each) === (block.limits !== null),
  )
  return isThere ? block : null
}

function renewalsDue(known: KnownCallers, keys: readonly string[], nowMs: number): Block[] {
  return keys.flatMap((key) => {
    const block = known.find(key)?.block
    return block && known.isRenewalDue(block, nowMs) ? block : []
  })
}

async function withoutStored(
  tx: Transaction,
  tenantId: string,
  records: readonly CallRecord[],
): Promise<readonly CallRecord[]> {
  const retried = records.flatMap(({ isRetry, event }) => (isRetry && event ? event.id : []))
  if (retried.length === 0) return records
  const stored = await recordedCallEvents(tx, tenantId, retried)
  return records.filter(({ event }) => event === null || !stored.has(event.id))
}

/** The events of the records. */
export function eventsOf(records: readonly CallRecord[]): OutboxEvent[] {
  const events: OutboxEvent[] = []
  for (const { event } of records) if (event !== null) events.push(event)
  return events
}

/** What the records have used from the blocks, one settlement per block. */
export function settlementsOf(records: readonly CallRecord[]): readonly Settlement[] {
  const sums = new Map<Block, { blockId: string; requests: number; bytes: number }>()
  for (const { block, used } of records) {
    if (block === null || (used.requests === 0 && used.bytes === 0)) continue
    let sum = sums.get(block)
    if (sum === undefined) sums.set(block, (sum = { blockId: block.id, requests: 0, bytes: 0 }))
    sum.requests += used.requests
    sum.bytes += used.bytes
  }
  return [...sums.values()]
}

/** What a closed block held of the limits. */
type Freed = { readonly block: Block; readonly held: Holding }

/** Settles and closes blocks. @returns what the closed ones held, to give back in this transaction. */
async function settleBlocks(
  tx: Transaction,
  tenantId: string,
  records: readonly CallRecord[],
  closing: readonly Block[],
): Promise<readonly Freed[]> {
  const settlements = settlementsOf(records)
  const ids = closing.map(({ id }) => id)
  const [, closed] = await Promise.all([
    settlements.length === 0 ? undefined : tx.query(settlingBlocks(tenantId, settlements)),
    ids.length === 0 ? [] : closeEgressBlocks(tx, tenantId, ids),
  ])
  return closed.flatMap(({ blockId, ...held }) => {
    const block = closing.find(({ id }) => id === blockId)
    return block === undefined || (held.requests === 0 && held.bytes === 0) ? [] : { block, held }
  })
}

/** Returns what calls and closed blocks have not used, with one statement per budget. */
async function returnUnused(
  tx: Transaction,
  tenantId: string,
  ends: readonly CallRecord[],
  freed: readonly Freed[],
): Promise<void> {
  const unused = new Map<string, { authority: AuthorityRef; requests: number; bytes: number }>()
  const add = (authority: AuthorityRef, { requests, bytes }: Holding) => {
    const sum = unused.get(authority.id) ?? { authority, requests: 0, bytes: 0 }
    sum.requests += requests
    sum.bytes += bytes
    unused.set(authority.id, sum)
  }
  for (const { facts, unusedBytes } of ends) {
    if (unusedBytes > 0) add(facts.authority, { requests: 0, bytes: unusedBytes })
  }
  for (const { block, held } of freed) add(block.authority, held)
  await Promise.all(
    [...unused.values()].map(({ authority, ...sum }) =>
      returnToAuthority(tx, tenantId, authority, sum),
    ),
  )
}
