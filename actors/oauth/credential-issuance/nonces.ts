/**
 * `c_nonce` values (OpenID4VCI section 7). A nonce is its expiry and random bytes under a MAC of the service, so
 * that any process accepts the nonces of the others without storing them. The coordination backend makes each of
 * them usable once.
 */
import { createHash } from 'node:crypto'
import { type Clock, CLOCK_STEP_SECS_MAX } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'

const RANDOM_BYTES = 16
const CHARACTERS_MAX = 256
const BASE64URL = /^[A-Za-z0-9_-]+$/

export interface CredentialNonces {
  /** A new nonce for requests to one credential issuer. */
  make(issuer: string): Promise<string>
  /** Expiry in seconds since the epoch, or null if it is expired, forged or for another issuer. */
  read(issuer: string, nonce: string): Promise<number | null>
  /** True for the first use. */
  use(nonce: string, expiresAtSecs: number): Promise<boolean>
}

type CredentialNoncesNeeds = {
  readonly clock: Clock
  readonly random: Random
  readonly sealer: Sealer
  readonly coordination: Pick<Coordination, 'once'>
  readonly ttlSecs: number
}

export function credentialNonces(needs: CredentialNoncesNeeds): CredentialNonces {
  const { clock, random, sealer, coordination, ttlSecs } = needs
  const contextOf = (issuer: string) => `credentials:nonce:${issuer}`
  return {
    async make(issuer) {
      const content = Buffer.alloc(8 + RANDOM_BYTES)
      content.writeBigUInt64BE(BigInt(clock.nowSecs() + ttlSecs))
      content.set(random.bytes(RANDOM_BYTES), 8)
      // Authenticated encryption: the tag is the MAC.
      const sealed = await sealer.seal(SYSTEM_TENANT_ID, contextOf(issuer), content)
      return Buffer.from(sealed).toString('base64url')
    },
    async read(issuer, nonce) {
      if (nonce.length > CHARACTERS_MAX || !BASE64URL.test(nonce)) return null
      const sealed = Buffer.from(nonce, 'base64url')
      // One spelling per nonce, because a use is recorded by its text.
      if (sealed.toString('base64url') !== nonce) return null
      const content = await sealer
        .open(SYSTEM_TENANT_ID, contextOf(issuer), sealed)
        .catch(() => null)
      if (content === null || content.length !== 8 + RANDOM_BYTES) return null
      const expiresAtSecs = Number(Buffer.from(content).readBigUInt64BE())
      return expiresAtSecs > clock.nowSecs() ? expiresAtSecs : null
    },
    use(nonce, expiresAtSecs) {
      const id = createHash('sha256').update(nonce).digest('base64url')
      const remaining = Math.max(1, expiresAtSecs - clock.nowSecs() + 1)
      return coordination.once(`c_nonce:${id}`, remaining + CLOCK_STEP_SECS_MAX)
    },
  }
}
