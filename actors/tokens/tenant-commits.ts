/**
 * Commits changes of one tenant together. Events are numbered per tenant, so that transactions which
 * append them follow one another anyway; what comes while one is under way shares the next, and with
 * it one round to the disk.
 */
import { appendEvents, type NewEvent } from '../../storage/outbox.js'
import type { Database, Transaction } from '../../storage/sql.js'

const CHANGES_PER_COMMIT_MAX = 100
/** Changes that may wait; beyond it the service is overloaded and says so. */
const WAITING_MAX = 10_000

export type Change<Result> = {
  /** The row it is about: batches take rows in this order, so that two processes cannot deadlock. */
  readonly row: string
  readonly apply: (tx: Transaction) => Promise<Applied<Result>>
}
export type Applied<Result> = { readonly result: Result; readonly events: readonly NewEvent[] }

export interface TenantCommits {
  /** Resolves once the change is committed, with its events. */
  commit<Result>(tenantId: string, change: Change<Result>): Promise<Result>
}

type Waiting = {
  readonly change: Change<unknown>
  readonly committed: (result: unknown) => void
  readonly failed: (reason: unknown) => void
}

export function tenantCommits(database: Database): TenantCommits {
  const queues = new Map<string, Waiting[]>()
  let waiting = 0

  async function together(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    const results = await database.tenant(tenantId, async (tx) => {
      const applied: Applied<unknown>[] = []
      for (const { change } of batch) applied.push(await change.apply(tx))
      await appendEvents(
        tx,
        applied.flatMap(({ events }) => events),
      )
      return applied.map(({ result }) => result)
    })
    for (const [index, { committed }] of batch.entries()) committed(results[index])
  }

  /** A change that fails must not take its neighbours along: after a failure each goes alone. */
  async function settle(tenantId: string, batch: readonly Waiting[]): Promise<void> {
    try {
      await together(tenantId, batch)
    } catch (error) {
      if (batch.length === 1) {
        batch[0]!.failed(error)
        return
      }
      for (const one of batch) await settle(tenantId, [one])
    }
  }

  async function drain(tenantId: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, CHANGES_PER_COMMIT_MAX)
      batch.sort((a, b) => (a.change.row < b.change.row ? -1 : 1))
      await settle(tenantId, batch)
      waiting -= batch.length
    }
    queues.delete(tenantId)
  }

  return {
    commit<Result>(tenantId: string, change: Change<Result>) {
      if (waiting >= WAITING_MAX) {
        return Promise.reject(new Error('too many changes wait to be committed'))
      }
      waiting += 1
      return new Promise<Result>((resolve, failed) => {
        const committed = (result: unknown) => resolve(result as Result)
        const entry: Waiting = { change, committed, failed }
        const queue = queues.get(tenantId)
        if (queue === undefined) {
          const fresh = [entry]
          queues.set(tenantId, fresh)
          void drain(tenantId, fresh)
        } else queue.push(entry)
      })
    },
  }
}
