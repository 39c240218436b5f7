/** Deletes expired rows: challenges, sessions, refresh tokens, idempotency keys and others. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type RetentionProtocol = {
  /** Runs one round over everything that expires. The actor also runs it on its own timer. */
  sweep: Ask<null, Swept>
}

export type Swept = {
  readonly tag: 'swept'
  /** Deleted rows by kind. */
  readonly removed: Readonly<Record<string, number>>
}

export const retention = address<RetentionProtocol>('upkeep', ['sweep'])
