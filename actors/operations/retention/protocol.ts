/** Removes what has run out: challenges, sessions, refresh tokens, idempotency keys. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type UpkeepProtocol = {
  /** One round over everything that expires; the actor also runs it by its own timer. */
  sweep: Ask<null, Swept>
}

export type Swept = {
  readonly tag: 'swept'
  /** Rows removed by kind. */
  readonly removed: Readonly<Record<string, number>>
}

export const upkeep = address<UpkeepProtocol>('upkeep', ['sweep'])
