/** The pure functions of the pow pool. Each verifies one proof; the pool batches the calls. */
import { judgeOwnership, judgeSignature } from './signatures.js'
import type {
  OwnershipVerdict,
  SignatureVerdict,
  VerifyOwnership,
  VerifySignature,
} from './protocol.js'

export function ownership(claim: VerifyOwnership): OwnershipVerdict {
  return judgeOwnership(claim)
}

export function signature(claim: VerifySignature): SignatureVerdict['tag'] {
  return judgeSignature(claim)
}
