/** The pure functions of the pow pool. Each verifies one proof; the pool batches the calls. */
import { judgeOwnership } from './signatures.js'
import type { OwnershipVerdict, VerifyOwnership, VerifyWork, WorkVerdict } from './protocol.js'
import { judgeWork } from './work.js'

export function work({ challengeToken, nonce, difficultyBits }: VerifyWork): WorkVerdict['tag'] {
  return judgeWork(challengeToken, nonce, difficultyBits)
}

export function ownership(claim: VerifyOwnership): OwnershipVerdict {
  return judgeOwnership(claim)
}
