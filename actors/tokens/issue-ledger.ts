/**
 * Writes one durable row per issued token without a commit per token: rows of one tenant that come
 * while a transaction is under way go together in the next one (targets.md, finding 9).
 */
import { appendEvents, type NewEvent } from '../../storage/outbox.js'
import type { Database } from '../../storage/sql.js'

const ROWS_PER_COMMIT_MAX = 100
/** Tokens that may wait for their row; beyond it the service is overloaded and says so. */
const WAITING_MAX = 10_000

type Waiting = {
  readonly event: NewEvent
  readonly written: () => void
  readonly failed: (reason: unknown) => void
}

export interface IssueLedger {
  /** Resolves once the row is committed. */
  record(event: NewEvent): Promise<void>
}

export function issueLedger(database: Database): IssueLedger {
  const queues = new Map<string, Waiting[]>()
  let waiting = 0

  async function drain(tenantId: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, ROWS_PER_COMMIT_MAX)
      try {
        await database.tenant(tenantId, (tx) =>
          appendEvents(
            tx,
            batch.map(({ event }) => event),
          ),
        )
        for (const { written } of batch) written()
      } catch (error) {
        for (const { failed } of batch) failed(error)
      }
      waiting -= batch.length
    }
    queues.delete(tenantId)
  }

  return {
    record(event) {
      const { tenantId } = event
      if (waiting >= WAITING_MAX)
        return Promise.reject(new Error('too many tokens wait to be written'))
      waiting += 1
      return new Promise((written, failed) => {
        const queue = queues.get(tenantId)
        const entry = { event, written, failed }
        if (queue !== undefined) {
          queue.push(entry)
          return
        }
        const fresh = [entry]
        queues.set(tenantId, fresh)
        void drain(tenantId, fresh)
      })
    },
  }
}
