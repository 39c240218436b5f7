/** Proof of work as an agent does it. Flows load this module alone: the actors' module costs more than most tests. */
import { judgeWork } from '../../../actors/agents/proof-of-work/work.js'

/** The smallest nonce that solves the puzzle, or the smallest that does not. */
export function nonceFor(
  { challengeToken, difficultyBits }: { challengeToken: string; difficultyBits: number },
  wanted: 'valid' | 'invalid' = 'valid',
): string {
  let nonce = 0
  while (judgeWork(challengeToken, String(nonce), difficultyBits) !== wanted) nonce += 1
  return String(nonce)
}
