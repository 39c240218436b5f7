/**
 * Group commit per tenant. Event numbering serialises a tenant's transactions anyway, so changes that
 * arrive during a commit are batched into the next one and share its fsync.
 *
 * Changes that need no decision are written in one round trip. Changes that the database decides share
 * one statement per kind where that statement exists.
 */
import { RECORDED_CHANNEL } from '../../../storage/platform/event-numbers.js'
import {
  appendEvents,
  appending,
  type NewEvent,
  type OutboxEvent,
  RECORDED,
} from '../../../storage/platform/outbox.js'
import type { Database, Statement, Transaction } from '../../../storage/platform/sql.js'
import { notifyAfterCommit } from '../../../storage/platform/transaction.js'
import { DatabaseUnavailable, isGivenUp } from '../../../storage/platform/unavailable.js'

const CHANGES_PER_COMMIT_MAX = 100
/**
 * Concurrent commits per tenant. The second one waits inside PostgreSQL and continues without this
 * process, however busy it is. It starts only with enough changes, since small commits waste fsyncs.
 */
const RUNNING_MAX = 2
const SECOND_COMMIT_MIN = 8
/** Changes that may wait. Above it the service answers that it is overloaded. */
const WAITING_MAX = 10_000

const NONE: readonly never[] = []

/** A change that its own statements decide. */
export type Change<Result> = {
  /** The row that it locks. Batches lock rows in this order, so that two processes cannot deadlock. */
  readonly row: string
  readonly apply: (tx: Transaction) => Promise<Applied<Result>>
}
export type Applied<Result> = { readonly result: Result; readonly events: readonly NewEvent[] }

/** A change that one statement decides for many rows. */
export type BatchedChange<Input, Result> = {
  readonly row: string
  /** Returns the results in the order of the inputs, which are sorted by row. */
  readonly decide: (
    tx: Transaction,
    tenantId: string,
    inputs: readonly Input[],
  ) => Promise<readonly Result[]>
  readonly input: Input
  readonly events: (result: Result) => readonly NewEvent[]
}

/** A change that one statement decides for many rows, and that records its event in the same statement. */
export type WonChange<Input> = {
  readonly row: string
  /**
   * The statement of the inputs, which are sorted by row, and of their events in the same order. Its rows are the
   * `place`, from 1, of each change that succeeded.
   */
  readonly statement: (
    tenantId: string,
    inputs: readonly Input[],
    events: readonly OutboxEvent[],
  ) => Statement
  readonly input: Input
  /** Recorded if the change succeeds. */
  readonly event: OutboxEvent
}

/** A change without a decision: it reads nothing and cannot be refused. */
export type UnconditionalChange = {
  readonly statements?: readonly Statement[] | undefined
  readonly events: readonly OutboxEvent[]
}

/** Each promise resolves after the change and its events are committed. */
export interface GroupCommit {
  commit<Result>(tenantId: string, change: Change<Result>): Promise<Result>
  decide<Input, Result>(tenantId: string, change: BatchedChange<Input, Result>): Promise<Result>
  /** True if the change succeeded. */
  win<Input>(tenantId: string, change: WonChange<Input>): Promise<boolean>
  write(tenantId: string, change: UnconditionalChange): Promise<void>
}

type AnyChange =
  | ({ readonly kind: 'one' } & Change<unknown>)
  | ({ readonly kind: 'many' } & BatchedChange<unknown, unknown>)
  | ({ readonly kind: 'won' } & WonChange<unknown>)
  | ({ readonly kind: 'unconditional' } & UnconditionalChange)
type AnyWon = Extract<AnyChange, { kind: 'won' }>
type AnyBatched = Extract<AnyChange, { kind: 'many' }>
type Waiting = {
  readonly change: AnyChange
  readonly committed: (result: unknown) => void
  readonly failed: (reason: unknown) => void
}
type TenantQueue = { readonly waiting: Waiting[]; running: number; planned: boolean }

/**
 * @param options.crossesTenants the changes write global rows too. Their statements filter by tenant themselves.
 */
export function groupCommit(
  database: Database,
  { crossesTenants = false }: { readonly crossesTenants?: boolean } = {},
): GroupCommit {
  const transaction = <T>(tenantId: string, work: (tx: Transaction) => Promise<T>) =>
    crossesTenants ? database.system(work) : database.tenant(tenantId, work)
  const queues = new Map<string, TenantQueue>()
  let waiting = 0

  async function commitBatch(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    const statements: Statement[] = []
    const events: OutboxEvent[] = []
    let stated = 0
    for (const { change } of batch) {
      if (change.kind === 'won') stated += 1
      if (change.kind !== 'unconditional') continue
      stated += 1
      for (const statement of change.statements ?? NONE) statements.push(statement)
      for (const event of change.events) events.push(event)
    }
    const competitions = kindsOf(batch, 'won', ({ statement }) => statement).map(
      (changes) => new Competition(tenantId, changes),
    )
    if (stated === batch.length) {
      const all = [...competitions.map(({ statement }) => statement), ...statements]
      if (events.length > 0) all.push(appending(events))
      const answers = await database.together(crossesTenants ? null : tenantId, all, {
        wakes: RECORDED,
      })
      for (const [at, competition] of competitions.entries()) competition.judge(answers[at]!)
      for (const { change, committed } of batch) committed(wonIn(competitions, change))
      return
    }
    const results = await transaction(tenantId, async (tx) => {
      const found = new Map<AnyChange, unknown>()
      // The work can run again, so it adds to a list of its own.
      const all = [...events]
      const decide = async () => {
        for (const competition of competitions) {
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
      await Promise.all([...statements.map((statement) => tx.query(statement)), decide()])
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
  async function commitOrSplit(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    try {
      await commitBatch(tenantId, batch)
    } catch (error) {
      const isUnavailable = error instanceof DatabaseUnavailable && !isGivenUp(error.cause)
      if (batch.length === 1 || isUnavailable) {
        for (const { failed } of batch) failed(error)
        return
      }
      for (const one of batch) await commitOrSplit(tenantId, [one])
    }
  }

  async function run(tenantId: string, queue: TenantQueue): Promise<void> {
    const batch = queue.waiting.splice(0, CHANGES_PER_COMMIT_MAX)
    batch.sort((a, b) => (rowOf(a) < rowOf(b) ? -1 : 1))
    queue.running += 1
    await commitOrSplit(tenantId, batch)
    queue.running -= 1
    waiting -= batch.length
    if (queue.waiting.length > 0) plan(tenantId, queue)
    else if (queue.running === 0) queues.delete(tenantId)
  }

  /** Schedules a commit after the current tick, so that it includes all changes made in the tick. */
  function plan(tenantId: string, queue: TenantQueue): void {
    if (queue.planned || !isDue(queue)) return
    queue.planned = true
    process.nextTick(() => {
      queue.planned = false
      void run(tenantId, queue)
    })
  }

  function enqueue<Result>(tenantId: string, change: AnyChange): Promise<Result> {
    if (waiting >= WAITING_MAX) {
      const reason = 'too many changes wait to be committed'
      return Promise.reject(new DatabaseUnavailable(reason, undefined, true))
    }
    waiting += 1
    return new Promise<Result>((resolve, failed) => {
      const committed = (result: unknown) => resolve(result as Result)
      let queue = queues.get(tenantId)
      if (queue === undefined) {
        queue = { waiting: [], running: 0, planned: false }
        queues.set(tenantId, queue)
      }
      queue.waiting.push({ change, committed, failed })
      plan(tenantId, queue)
    })
  }

  return {
    commit: (tenantId, change) => enqueue(tenantId, { kind: 'one', ...change }),
    decide: (tenantId, change) =>
      enqueue(tenantId, { kind: 'many', ...change } as unknown as AnyBatched),
    win: (tenantId, change) => enqueue(tenantId, { kind: 'won', ...change } as unknown as AnyWon),
    write: (tenantId, { statements, events }) =>
      enqueue(tenantId, { kind: 'unconditional', statements, events }),
  }
}

/** False if the waiting changes should wait for more changes before they are committed. */
function isDue({ running, waiting }: TenantQueue): boolean {
  if (running === 0) return true
  return running < RUNNING_MAX && waiting.length >= SECOND_COMMIT_MIN
}

/** An unconditional change locks no row, so it sorts first. */
function rowOf({ change }: Waiting): string {
  return change.kind === 'unconditional' ? '' : change.row
}

/** Changes of one statement, and which of them succeeded. */
class Competition {
  readonly changes: readonly AnyWon[]
  readonly statement: Statement
  readonly won = new Set<AnyChange>()

  constructor(tenantId: string, changes: readonly AnyWon[]) {
    this.changes = changes
    const inputs = changes.map(({ input }) => input)
    const events = changes.map(({ event }) => event)
    this.statement = changes[0]!.statement(tenantId, inputs, events)
  }

  /** Takes the rows of the statement. A transaction that runs again replaces what it took before. */
  judge({ rows }: { readonly rows: readonly object[] }): void {
    this.won.clear()
    for (const row of rows) {
      const { place } = row as { readonly place: number }
      this.won.add(this.changes[place - 1]!)
    }
  }
}

/** Undefined for an unconditional change. */
function wonIn(competitions: readonly Competition[], change: AnyChange): boolean | undefined {
  if (change.kind !== 'won') return undefined
  return competitions.some(({ won }) => won.has(change))
}

/** Groups the changes of a kind by their function, in the same order in every process. */
function kindsOf<Kind extends AnyChange['kind']>(
  batch: readonly Waiting[],
  kind: Kind,
  functionOf: (change: Extract<AnyChange, { kind: Kind }>) => { readonly name: string },
): Extract<AnyChange, { kind: Kind }>[][] {
  type Change = Extract<AnyChange, { kind: Kind }>
  const kinds = new Map<{ readonly name: string }, Change[]>()
  for (const { change } of batch) {
    if (change.kind !== kind) continue
    const of = functionOf(change as Change)
    const sameKind = kinds.get(of)
    if (sameKind === undefined) kinds.set(of, [change as Change])
    else sameKind.push(change as Change)
  }
  return [...kinds].sort(([a], [b]) => (a.name < b.name ? -1 : 1)).map(([, sameKind]) => sameKind)
}
