/**
 * Group commit: changes that arrive during a commit share the next one, with its round trip and its fsync.
 *
 * Changes that are known statements share commits over all tenants. Changes that decide between statements share
 * commits with the other changes of their tenant (docs/concepts/storage.md, Group commit).
 */
import { RECORDED_CHANNEL } from '../../../storage/platform/event-numbers.js'
import {
  appendEvents,
  appendStatement,
  sequencerChannels,
} from '../../../storage/platform/outbox.js'
import type { Database, TenantsPart, Transaction } from '../../../storage/platform/sql.js'
import { notifyAfterCommit } from '../../../storage/platform/transaction.js'
import { DatabaseUnavailable, isGivenUp } from '../../../storage/platform/unavailable.js'
import {
  type AnyBatched,
  type AnyChange,
  type AnyWon,
  type BatchedChange,
  type Change,
  isStated,
  kindsOf,
  rowOf,
  Stated,
  type UnconditionalChange,
  type Waiting,
  wonIn,
  type WonChange,
} from './changes.js'

const CHANGES_PER_COMMIT_MAX = 100
/**
 * Concurrent commits per tenant, and of all tenants together. The second one waits inside PostgreSQL and continues
 * without this process, however busy it is. It starts only with enough changes, since small commits waste fsyncs.
 */
const RUNNING_MAX = 2
const SECOND_COMMIT_MIN = 8
/** A shared commit that takes longer does not hold up the next one. */
const SLOW_COMMIT_MS = 50
/** Shared commits at one time, slow ones included. */
const SHARED_MAX = 6
/** The time that a statement of a shared commit waits for a lock. Its tenant has the lock, and the others wait with it. */
const SHARED_LOCK_TIMEOUT_MS = 50
/** After a shared commit failed, tenants whose statements can be the reason commit alone for this time. */
const APART_MS = 5_000
/** Changes that may wait. Above it the service answers that it is overloaded. */
const WAITING_MAX = 10_000
const WAITING_PER_TENANT_MAX = 5_000

/** Each promise resolves after the change and its events are committed. */
export interface GroupCommit {
  commit<Result>(tenantId: string, change: Change<Result>): Promise<Result>
  decide<Input, Result>(tenantId: string, change: BatchedChange<Input, Result>): Promise<Result>
  /** True if the change succeeded. */
  win<Input>(tenantId: string, change: WonChange<Input>): Promise<boolean>
  write(tenantId: string, change: UnconditionalChange): Promise<void>
}

type TenantQueue = {
  readonly tenantId: string
  readonly waiting: Waiting[]
  /** Waiting changes that decide between statements. */
  deciding: number
  running: number
  /** True while a commit of this tenant alone is scheduled. */
  planned: boolean
}
/** Changes of one tenant in a commit. */
type Part = { readonly queue: TenantQueue; readonly changes: readonly Waiting[] }

type CommitNeeds = { readonly database: Database; readonly crossesTenants: boolean }

/**
 * @param options.crossesTenants the changes write global rows too. Their statements filter by tenant themselves, and they
 * share commits only within their tenant.
 */
export function groupCommit(
  database: Database,
  { crossesTenants = false }: { readonly crossesTenants?: boolean } = {},
): GroupCommit {
  return new WaitingChanges({ database, crossesTenants })
}

/** The changes that wait, and when which of them are committed. */
class WaitingChanges implements GroupCommit {
  readonly #needs: CommitNeeds
  readonly #queues = new Map<string, TenantQueue>()
  /** Tenants whose changes the next shared commits take, in the order of their turns. */
  readonly #due = new Set<TenantQueue>()
  /** Tenants that commit alone for a while. */
  readonly #apart = new Set<string>()
  #waiting = 0
  /** Shared commits that are not slow. */
  #running = 0
  #shared = 0
  #isSharedPlanned = false

  constructor(needs: CommitNeeds) {
    this.#needs = needs
  }

  commit<Result>(tenantId: string, change: Change<Result>): Promise<Result> {
    return this.#enqueue(tenantId, { kind: 'one', ...change })
  }

  decide<Input, Result>(tenantId: string, change: BatchedChange<Input, Result>): Promise<Result> {
    return this.#enqueue(tenantId, { kind: 'many', ...change } as unknown as AnyBatched)
  }

  win<Input>(tenantId: string, change: WonChange<Input>): Promise<boolean> {
    return this.#enqueue(tenantId, { kind: 'won', ...change } as unknown as AnyWon)
  }

  write(tenantId: string, { statements, events }: UnconditionalChange): Promise<void> {
    return this.#enqueue(tenantId, { kind: 'unconditional', statements, events })
  }

  /** Commits the changes of one tenant, and then plans its next ones. */
  async #commitPart({ queue, changes }: Part): Promise<void> {
    await commitOrSplit(this.#needs, queue.tenantId, changes)
    this.#finish(queue, changes.length)
  }

  #finish(queue: TenantQueue, count: number): void {
    queue.running -= 1
    this.#waiting -= count
    if (queue.waiting.length > 0) this.#plan(queue)
    else if (queue.running === 0) this.#queues.delete(queue.tenantId)
  }

  /**
   * Commits the changes of several tenants together. If that fails, tenants with their own statements commit
   * separately, and the others together, by bisection if they are the reason.
   * @param ended runs after the first attempt.
   */
  async #commitShared(parts: readonly Part[], ended: () => void): Promise<void> {
    const [first] = parts
    if (parts.length === 1) {
      await commitOrSplit(this.#needs, first!.queue.tenantId, first!.changes)
      ended()
      this.#finish(first!.queue, first!.changes.length)
      return
    }
    let failure: unknown
    try {
      await commitTogether(this.#needs.database, parts)
    } catch (error) {
      failure = error
    }
    ended()
    if (failure === undefined || isLost(failure)) {
      for (const { queue, changes } of parts) {
        // Changes of a commit that succeeded have their results already.
        if (failure !== undefined) for (const { failed } of changes) failed(failure)
        this.#finish(queue, changes.length)
      }
      return
    }
    const eventsOnly = parts.filter(({ changes }) => changes.every(recordsOnly))
    if (eventsOnly.length < parts.length) {
      const others = parts.filter((part) => !eventsOnly.includes(part))
      const retries = others.map((part) => this.#commitApart(part))
      if (eventsOnly.length > 0) retries.push(this.#commitShared(eventsOnly, () => undefined))
      await Promise.all(retries)
      return
    }
    const middle = parts.length >> 1
    await Promise.all(
      [parts.slice(0, middle), parts.slice(middle)].map((half) =>
        half.length === 1 ? this.#commitApart(half[0]!) : this.#commitShared(half, () => undefined),
      ),
    )
  }

  #commitApart(part: Part): Promise<void> {
    const { tenantId } = part.queue
    if (!this.#apart.has(tenantId)) {
      this.#apart.add(tenantId)
      setTimeout(() => this.#apart.delete(tenantId), APART_MS).unref()
    }
    return this.#commitPart(part)
  }

  /** Takes the changes of the next shared commit: each tenant has an equal share, and those that came first come first. */
  #nextParts(): readonly Part[] {
    const chosen: TenantQueue[] = []
    for (const queue of this.#due) {
      chosen.push(queue)
      if (chosen.length === CHANGES_PER_COMMIT_MAX) break
    }
    // Tenants with few changes leave the rest of their share to the others.
    chosen.sort((a, b) => a.waiting.length - b.waiting.length)
    let free = CHANGES_PER_COMMIT_MAX
    const parts = chosen.map((queue, index) => {
      const part = this.#take(queue, Math.floor(free / (chosen.length - index)))
      free -= part.changes.length
      return part
    })
    for (const { queue } of parts) {
      // A tenant that has more comes last.
      this.#due.delete(queue)
      if (queue.waiting.length > 0) this.#plan(queue)
    }
    // All processes lock the rows of tenants in the same order.
    return parts.sort((a, b) => (a.queue.tenantId < b.queue.tenantId ? -1 : 1))
  }

  #take(queue: TenantQueue, most: number): Part {
    const changes = queue.waiting.splice(0, most)
    changes.sort((a, b) => (rowOf(a) < rowOf(b) ? -1 : 1))
    queue.running += 1
    return { queue, changes }
  }

  #runShared(): void {
    this.#running += 1
    this.#shared += 1
    const parts = this.#nextParts()
    if (parts.length === 0) {
      // A tenant took its changes into a separate commit in the same tick.
      this.#running -= 1
      this.#shared -= 1
      return
    }
    this.#planShared()
    let isSlow = false
    const timer = setTimeout(() => {
      isSlow = true
      this.#running -= 1
      this.#planShared()
    }, SLOW_COMMIT_MS)
    void this.#commitShared(parts, () => {
      clearTimeout(timer)
      if (!isSlow) this.#running -= 1
      this.#shared -= 1
      this.#planShared()
    })
  }

  /** Schedules a commit after the current tick, so that it includes all changes made in the tick. */
  #planShared(): void {
    if (this.#isSharedPlanned || this.#running >= RUNNING_MAX || this.#shared >= SHARED_MAX) return
    if (!hasChanges(this.#due, this.#running === 0 ? 1 : SECOND_COMMIT_MIN)) return
    this.#isSharedPlanned = true
    process.nextTick(() => {
      this.#isSharedPlanned = false
      this.#runShared()
    })
  }

  #runAlone(queue: TenantQueue): void {
    const part = this.#take(queue, CHANGES_PER_COMMIT_MAX)
    for (const { change } of part.changes) if (!isStated(change)) queue.deciding -= 1
    void this.#commitPart(part)
  }

  #plan(queue: TenantQueue): void {
    if (queue.planned || !isDue(queue)) return
    if (!this.#needs.crossesTenants && queue.deciding === 0 && !this.#apart.has(queue.tenantId)) {
      this.#due.add(queue)
      this.#planShared()
      return
    }
    this.#due.delete(queue)
    queue.planned = true
    process.nextTick(() => {
      queue.planned = false
      this.#runAlone(queue)
    })
  }

  #enqueue<Result>(tenantId: string, change: AnyChange): Promise<Result> {
    let queue = this.#queues.get(tenantId)
    if (this.#waiting >= WAITING_MAX || (queue?.waiting.length ?? 0) >= WAITING_PER_TENANT_MAX) {
      const reason = 'too many changes wait to be committed'
      return Promise.reject(new DatabaseUnavailable(reason, undefined, true))
    }
    if (queue === undefined) {
      queue = { tenantId, waiting: [], deciding: 0, running: 0, planned: false }
      this.#queues.set(tenantId, queue)
    }
    const changed = queue
    this.#waiting += 1
    if (!isStated(change)) changed.deciding += 1
    return new Promise<Result>((resolve, failed) => {
      const committed = (result: unknown) => resolve(result as Result)
      changed.waiting.push({ change, committed, failed })
      this.#plan(changed)
    })
  }
}

/** One commit of changes of one tenant. */
async function commitBatch(
  { database, crossesTenants }: CommitNeeds,
  tenantId: string,
  batch: readonly Waiting[],
): Promise<void> {
  const stated = new Stated(tenantId, batch)
  if (batch.every(({ change }) => isStated(change))) {
    const sight = crossesTenants ? null : tenantId
    stated.judge(await database.together(sight, stated.withEvents, { wakes: sequencerChannels }))
    for (const { change, committed } of batch) committed(wonIn(stated.competitions, change))
    return
  }
  const transaction = <T>(work: (tx: Transaction) => Promise<T>) =>
    crossesTenants ? database.system(work) : database.tenant(tenantId, work)
  const unconditional = stated.statements.slice(stated.competitions.length)
  const results = await transaction(async (tx) => {
    const found = new Map<AnyChange, unknown>()
    // The work can run again, so it adds to a new list.
    const all = [...stated.events]
    const decide = async () => {
      for (const competition of stated.competitions) {
        competition.judge(await tx.query(competition.statement))
        notifyAfterCommit(tx, RECORDED_CHANNEL)
        for (const change of competition.changes) found.set(change, competition.won.has(change))
      }
      for (const changes of kindsOf(batch, 'many', ({ decide }) => decide)) {
        const inputs = changes.map(({ input }) => input)
        const decided = await changes[0]!.decide(tx, tenantId, inputs)
        for (const [index, change] of changes.entries()) {
          found.set(change, decided[index])
          all.push(...change.events(decided[index]))
        }
      }
    }
    // Unconditional statements share the round trip of the first decision.
    await Promise.all([...unconditional.map((statement) => tx.query(statement)), decide()])
    for (const { change } of batch) {
      if (change.kind !== 'one') continue
      const applied = await change.apply(tx)
      found.set(change, applied.result)
      all.push(...applied.events)
    }
    appendEvents(tx, all)
    return found
  })
  for (const { change, committed } of batch) committed(results.get(change))
}

/**
 * A failed change must not fail the rest of its batch: after a failure each change is retried alone.
 * Not so if the database is unavailable: it may have committed the batch, and a retry would be
 * refused as a reuse.
 */
async function commitOrSplit(
  needs: CommitNeeds,
  tenantId: string,
  batch: readonly Waiting[],
): Promise<void> {
  try {
    await commitBatch(needs, tenantId, batch)
  } catch (error) {
    if (batch.length === 1 || isLost(error)) {
      for (const { failed } of batch) failed(error)
      return
    }
    for (const one of batch) await commitOrSplit(needs, tenantId, [one])
  }
}

/** One commit of several tenants. Row-level security limits the statements of each of them to its own rows. */
async function commitTogether(database: Database, parts: readonly Part[]): Promise<void> {
  const stated = parts.map(({ queue, changes }) => new Stated(queue.tenantId, changes))
  const events = stated.flatMap((one) => one.events)
  const tenantIds = stated.filter((one) => one.events.length > 0).map(({ tenantId }) => tenantId)
  const asked: TenantsPart[] = []
  for (const one of stated) {
    if (one.events.some((event) => event.tenantId !== one.tenantId)) {
      throw new Error('a change of a tenant has an event of another one')
    }
    if (one.statements.length === 0) continue
    asked.push({ tenantIds: [one.tenantId], statements: one.statements })
  }
  const hasLocks = asked.length > 0
  if (events.length > 0) asked.push({ tenantIds, statements: [appendStatement(events)] })
  const results = await database.among(asked, {
    wakes: sequencerChannels,
    lockTimeoutMs: hasLocks ? SHARED_LOCK_TIMEOUT_MS : undefined,
  })
  let at = 0
  for (const one of stated) if (one.statements.length > 0) one.judge(results[at++]!)
  for (const [index, { competitions }] of stated.entries()) {
    for (const { change, committed } of parts[index]!.changes) {
      committed(wonIn(competitions, change))
    }
  }
}

/** False if the waiting changes should wait for more changes before they are committed. */
function isDue({ running, waiting }: TenantQueue): boolean {
  if (running === 0) return true
  return running < RUNNING_MAX && waiting.length >= SECOND_COMMIT_MIN
}

function hasChanges(due: ReadonlySet<TenantQueue>, least: number): boolean {
  let count = 0
  for (const { waiting } of due) {
    count += waiting.length
    if (count >= least) return true
  }
  return false
}

/** True if the outcome of a commit is unknown, or the database was not reached. */
function isLost(error: unknown): boolean {
  return error instanceof DatabaseUnavailable && !isGivenUp(error.cause)
}

function recordsOnly({ change }: Waiting): boolean {
  return change.kind === 'unconditional' && (change.statements ?? []).length === 0
}
