/**
 * Locks that transactions hold until they end. A lock is a row of the table `locks`, because advisory locks do not exist on
 * every engine that speaks PostgreSQL.
 */
import { createHash } from 'node:crypto'
import type { Transaction } from '../sql.js'

/** Locks of a kind with any number of subjects share this many rows. */
const ROWS_OF_SUBJECTS = 16

/**
 * What is locked. A subject is a value of which there can be any number, such as the DID of an agent: subjects share
 * rows, so two of them can wait for each other.
 */
interface LockName {
  /** `api_keys`. */
  readonly kind: string
  /** Null for a lock that crosses tenants. */
  readonly tenantId: string | null
  readonly subject?: string | undefined
}

/** Waits for the lock, and holds it until the transaction ends. A transaction takes only one lock. */
export async function lockUntilEnd(tx: Transaction, name: LockName): Promise<void> {
  const key = keyOf(name)
  await Promise.all([
    // Processes of the release before take only this lock. The release after this one does not need it.
    tx.query({
      name: 'lock.advisory',
      text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
      values: [advisoryKeyOf(name)],
    }),
    tx.query({
      name: 'lock.row',
      text: 'insert into locks (key) values ($1) on conflict do nothing',
      values: [key],
    }),
    tx.query({
      name: 'lock.take',
      text: 'select key from locks where key = $1 for update',
      values: [key],
    }),
  ])
}

function keyOf({ kind, tenantId, subject }: LockName): string {
  const parts = [kind, ...(tenantId === null ? [] : [tenantId])]
  if (subject === undefined) return parts.join(':')
  const [byte = 0] = createHash('sha256').update(subject).digest()
  return [...parts, byte % ROWS_OF_SUBJECTS].join(':')
}

/** The key of the release before. */
function advisoryKeyOf({ kind, tenantId, subject }: LockName): string {
  if (tenantId === null) return subject ?? kind
  return subject === undefined ? `${kind}:${tenantId}` : `${kind}:${tenantId} ${subject}`
}
