/** The kinds of changes that share commits (group-commit.ts), and how changes of one kind share a statement. */
import {
  appendStatement,
  type NewEvent,
  type OutboxEvent,
} from '../../../storage/platform/outbox.js'
import type { Statement, Transaction } from '../../../storage/platform/sql.js'

/** A change that its own statements decide. */
export type Change<Result> = {
  /** The row that it locks. Batches lock rows in this order, so that two processes cannot deadlock. */
  readonly row: string
  readonly apply: (tx: Transaction) => Promise<Applied<Result>>
}
type Applied<Result> = { readonly result: Result; readonly events: readonly NewEvent[] }

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

export type AnyChange =
  | ({ readonly kind: 'one' } & Change<unknown>)
  | ({ readonly kind: 'many' } & BatchedChange<unknown, unknown>)
  | ({ readonly kind: 'won' } & WonChange<unknown>)
  | ({ readonly kind: 'unconditional' } & UnconditionalChange)
export type AnyWon = Extract<AnyChange, { kind: 'won' }>
export type AnyBatched = Extract<AnyChange, { kind: 'many' }>
export type Waiting = {
  readonly change: AnyChange
  readonly committed: (result: unknown) => void
  readonly failed: (reason: unknown) => void
}
/** An unconditional change locks no row, so it sorts first. */
export function rowOf({ change }: Waiting): string {
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
export function wonIn(
  competitions: readonly Competition[],
  change: AnyChange,
): boolean | undefined {
  if (change.kind !== 'won') return undefined
  return competitions.some(({ won }) => won.has(change))
}

/** Groups the changes of a kind by their function, in the same order in every process. */
export function kindsOf<Kind extends AnyChange['kind']>(
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

/** The changes of one tenant that are known statements: those that need no decision, and those that are won. */
export class Stated {
  readonly tenantId: string
  readonly competitions: readonly Competition[]
  /** The statements of the competitions, in their order, and then of unconditional changes. */
  readonly statements: readonly Statement[]
  /** Events of unconditional changes. */
  readonly events: readonly OutboxEvent[]

  constructor(tenantId: string, batch: readonly Waiting[]) {
    const statements: Statement[] = []
    const events: OutboxEvent[] = []
    let hasWon = false
    for (const { change } of batch) {
      if (change.kind === 'won') hasWon = true
      if (change.kind !== 'unconditional') continue
      if (change.statements !== undefined) statements.push(...change.statements)
      for (const event of change.events) events.push(event)
    }
    const competitions = hasWon
      ? kindsOf(batch, 'won', ({ statement }) => statement).map(
          (changes) => new Competition(tenantId, changes),
        )
      : []
    this.tenantId = tenantId
    this.competitions = competitions
    this.statements = hasWon
      ? [...competitions.map(({ statement }) => statement), ...statements]
      : statements
    this.events = events
  }

  /** All statements, with the one that records the events. */
  get withEvents(): readonly Statement[] {
    if (this.events.length === 0) return this.statements
    return [...this.statements, appendStatement(this.events)]
  }

  /** Takes the results of `statements`. */
  judge(results: readonly { readonly rows: readonly object[] }[]): void {
    for (const [at, competition] of this.competitions.entries()) competition.judge(results[at]!)
  }
}

/** True for a change that is known statements. */
export function isStated({ kind }: AnyChange): boolean {
  return kind === 'won' || kind === 'unconditional'
}
