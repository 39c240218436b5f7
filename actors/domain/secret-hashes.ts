/** How secrets and codes are stored: as hashes. */
import { createHash } from 'node:crypto'

/** Hash under which secrets of cookies and URLs are stored. */
export function sha256(token: string): Uint8Array {
  return createHash('sha256').update(token, 'utf8').digest()
}

/** Hash under which a code is stored. It is bound to a secret that is not stored, so that the row allows no guesses. */
export const codeSha256 = (purpose: string, secret: string, code: string): Uint8Array =>
  sha256(`${purpose}\n${secret}\n${code}`)

/** True if both are the hash of one secret. A stored one may be absent. */
export const isSameHash = (stored: Uint8Array | null, given: Uint8Array): boolean =>
  stored !== null && Buffer.compare(stored, given) === 0
