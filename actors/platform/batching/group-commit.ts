/**
 * Commits changes of one tenant together. Events are numbered per tenant, so that transactions which
 * append them follow one another anyway; what comes while one is under way shares the next, and with
 * it one round to the disk.
 *
 * What is known beforehand goes in one round trip. What has to be decided first is decided for all
 * that come together by one statement, where there is one.
 */
import {
  appendEvents,
  commitEvents,
  type NewEvent,
  type OutboxEvent,
} from '../../../storage/platform/outbox.js'
import type { Database, Statement, Transaction } from '../../../storage/platform/sql.js'
import { DatabaseUnavailable, isGivenUp } from '../../../storage/platform/unavailable.js'

const CHANGES_PER_COMMIT_MAX = 100
/**
 * One is carried out while the next lies ready in the database: it goes on at once, whatever this
 * process is busy with. Few changes are better off in a commit of more.
 */
const UNDER_WAY_MAX = 2
const NEXT_FROM = 8
/** Changes that may wait; beyond it the service is overloaded and says so. */
const WAITING_MAX = 10_000

const NONE: readonly never[] = []

/** A change that is decided by the database. */
export type Change<Result> = {
  /** The row it is about: batches take rows in this order, so that two processes cannot deadlock. */
  readonly row: string
  readonly apply: (tx: Transaction) => Promise<Applied<Result>>
}
export type Applied<Result> = { readonly result: Result; readonly events: readonly NewEvent[] }

/** A change of a kind that one statement decides for many. */
export type ManyChange<Input, Result> = {
  readonly row: string
  /** Results in the order of the inputs, which are in the order of their rows. */
  readonly decide: (
    tx: Transaction,
    tenantId: string,
    inputs: readonly Input[],
  ) => Promise<readonly Result[]>
  readonly input: Input
  readonly events: (result: Result) => readonly NewEvent[]
}

/** A change that can only succeed: nothing is read to make it. */
export type Certainty = {
  readonly statements?: readonly Statement[] | undefined
  readonly events: readonly OutboxEvent[]
}

/** Each resolves once the change is committed, with its events. */
export interface TenantCommits {
  commit<Result>(tenantId: string, change: Change<Result>): Promise<Result>
  decide<Input, Result>(tenantId: string, change: ManyChange<Input, Result>): Promise<Result>
  write(tenantId: string, change: Certainty): Promise<void>
}

type Any =
  | ({ readonly kind: 'one' } & Change<unknown>)
  | ({ readonly kind: 'many' } & ManyChange<unknown, unknown>)
  | ({ readonly kind: 'certain' } & Certainty)
type Many = Extract<Any, { kind: 'many' }>
type Waiting = {
  readonly change: Any
  readonly committed: (result: unknown) => void
  readonly failed: (reason: unknown) => void
}
type DeliveryLane = { readonly waiting: Waiting[]; underWay: number; planned: boolean }

export function tenantCommits(database: Database): TenantCommits {
  const lanes = new Map<string, DeliveryLane>()
  let waiting = 0

  async function together(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    const statements: Statement[] = []
    const events: OutboxEvent[] = []
    let certain = 0
    for (const { change } of batch) {
      if (change.kind !== 'certain') continue
      certain += 1
      for (const statement of change.statements ?? NONE) statements.push(statement)
      for (const event of change.events) events.push(event)
    }
    if (certain === batch.length) {
      await commitEvents(database, tenantId, statements, events)
      for (const { committed } of batch) committed(undefined)
      return
    }
    const results = await database.tenant(tenantId, async (tx) => {
      const found = new Map<Any, unknown>()
      const decide = async () => {
        for (const changes of kindsOf(batch)) {
          const inputs = changes.map(({ input }) => input)
          const decided = await changes[0]!.decide(tx, tenantId, inputs)
          for (const [at, change] of changes.entries()) {
            found.set(change, decided[at])
            events.push(...change.events(decided[at]))
          }
        }
      }
      // What is known goes out with the first that is decided.
      await Promise.all([...statements.map((statement) => tx.query(statement)), decide()])
      for (const { change } of batch) {
        if (change.kind !== 'one') continue
        const applied = await change.apply(tx)
        found.set(change, applied.result)
        events.push(...applied.events)
      }
      appendEvents(tx, events)
      return found
    })
    for (const { change, committed } of batch) committed(results.get(change))
  }

  /**
   * A change that fails must not take its neighbours along: after a failure each goes alone. Not where
   * the database is away: it may have committed them, and what is made twice is refused as used.
   */
  async function settle(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    try {
      await together(tenantId, batch)
    } catch (error) {
      const isAway = error instanceof DatabaseUnavailable && !isGivenUp(error.cause)
      if (batch.length === 1 || isAway) {
        for (const { failed } of batch) failed(error)
        return
      }
      for (const one of batch) await settle(tenantId, [one])
    }
  }

  async function run(tenantId: string, lane: DeliveryLane): Promise<void> {
    const batch = lane.waiting.splice(0, CHANGES_PER_COMMIT_MAX)
    batch.sort((a, b) => (rowOf(a) < rowOf(b) ? -1 : 1))
    lane.underWay += 1
    await settle(tenantId, batch)
    lane.underWay -= 1
    waiting -= batch.length
    if (lane.waiting.length > 0) plan(tenantId, lane)
    else if (lane.underWay === 0) lanes.delete(tenantId)
  }

  /** Once everything that goes on at the moment has come to rest: what comes of it goes together. */
  function plan(tenantId: string, lane: DeliveryLane): void {
    if (lane.planned || !isTimely(lane)) return
    lane.planned = true
    process.nextTick(() => {
      lane.planned = false
      void run(tenantId, lane)
    })
  }

  function enter<Result>(tenantId: string, change: Any): Promise<Result> {
    if (waiting >= WAITING_MAX) {
      const reason = 'too many changes wait to be committed'
      return Promise.reject(new DatabaseUnavailable(reason, undefined, true))
    }
    waiting += 1
    return new Promise<Result>((resolve, failed) => {
      const committed = (result: unknown) => resolve(result as Result)
      let lane = lanes.get(tenantId)
      if (lane === undefined) {
        lane = { waiting: [], underWay: 0, planned: false }
        lanes.set(tenantId, lane)
      }
      lane.waiting.push({ change, committed, failed })
      plan(tenantId, lane)
    })
  }

  return {
    commit: (tenantId, change) => enter(tenantId, { kind: 'one', ...change }),
    decide: (tenantId, change) => enter(tenantId, { kind: 'many', ...change } as unknown as Many),
    write: (tenantId, { statements, events }) =>
      enter(tenantId, { kind: 'certain', statements, events }),
  }
}

/** Whether what waits is better off now than with the changes to come. */
function isTimely({ underWay, waiting }: DeliveryLane): boolean {
  if (underWay === 0) return true
  return underWay < UNDER_WAY_MAX && waiting.length >= NEXT_FROM
}

/** What can only succeed waits for no row. */
function rowOf({ change }: Waiting): string {
  return change.kind === 'certain' ? '' : change.row
}

/** Changes of one kind side by side, the kinds in the same order in every process. */
function kindsOf(batch: readonly Waiting[]): Many[][] {
  const kinds = new Map<unknown, Many[]>()
  for (const { change } of batch) {
    if (change.kind !== 'many') continue
    const alike = kinds.get(change.decide)
    if (alike === undefined) kinds.set(change.decide, [change])
    else alike.push(change)
  }
  return [...kinds].sort(([a], [b]) => (nameOf(a) < nameOf(b) ? -1 : 1)).map(([, alike]) => alike)
}

const nameOf = (decide: unknown): string => (decide as { name: string }).name
