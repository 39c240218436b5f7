/** How secrets and codes are stored: as hashes. */
import { hash } from 'node:crypto'

/** Hash under which a random secret is stored: a token, a code, a key, a cookie. */
export function sha256(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** Hash under which a code is stored. It is bound to a secret that is not stored, so that the row allows no guesses. */
export const codeSha256 = (purpose: string, secret: string, code: string): Uint8Array =>
  sha256(`${purpose}\n${secret}\n${code}`)

/** True if both are the hash of one secret. A stored one may be absent. */
export const isSameHash = (stored: Uint8Array | null, given: Uint8Array): boolean =>
  stored !== null && Buffer.compare(stored, given) === 0
