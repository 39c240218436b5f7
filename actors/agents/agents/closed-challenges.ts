/**
 * Cache of closed challenges. `consumed` and `expired` are final states, so a row seen in one of them
 * is not read again: repeated requests for a spent challenge cause no database work.
 */
import type { PowChallengeRow } from '../../../storage/agents/pow-challenges.js'

const CLOSED_MAX = 4096

export interface ClosedChallenges {
  get(id: string): PowChallengeRow | undefined
  /** Remembers a challenge if it is closed. */
  note(challenge: PowChallengeRow): void
}

export function closedChallenges(): ClosedChallenges {
  const closed = new Map<string, PowChallengeRow>()
  return {
    get: (id) => closed.get(id),
    note(challenge) {
      if (challenge.status === 'issued' && !challenge.outlived) return
      if (closed.has(challenge.id)) return
      if (closed.size >= CLOSED_MAX) closed.delete(closed.keys().next().value!)
      closed.set(challenge.id, challenge)
    },
  }
}
