/**
 * Challenges that were found closed. Consumed and expired are final, so a row once seen in such a
 * state never needs to be read again: whoever hammers a spent challenge costs no database work.
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
