/** Signs access tokens and ID tokens. */
import type { ActorRef, AskOptions } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { SigningKeysProtocol, SigningAlgorithm } from '../../signing-keys/protocol.js'
import { ACCESS_TOKEN_TYPE, type AccessGrant, accessClaims, grantClaims } from './access-token.js'
import { ID_TOKEN_TYPE } from './id-token.js'

export type SignedAccess = {
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly tokenId: string
  readonly expiresInSecs: number
  readonly issuedAt: Date
}

export interface TokenSigner {
  /**
   * @param ofGrant the shared claims of the grant, if `grantClaims` already computed them.
   * @throws {DependencyUnavailable} if no signing key is available.
   */
  sign(
    grant: AccessGrant,
    lifetimeSecs: number,
    options?: AskOptions,
    ofGrant?: string,
  ): Promise<SignedAccess>
  /** @throws as `sign` does. */
  signIdToken(
    claims: Readonly<Record<string, unknown>>,
    algorithm: SigningAlgorithm,
    options?: AskOptions,
  ): Promise<string>
}

export type TokenSignerNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
}

export function tokenSigner({ keys, clock, random, issuer }: TokenSignerNeeds): TokenSigner {
  return {
    async sign(grant, lifetimeSecs, options, ofGrant = grantClaims(grant, issuer)) {
      const issuedAt = clock.now()
      const nowSecs = Math.floor(issuedAt.getTime() / 1000)
      const tokenId = random.uuid()
      const claims = accessClaims(ofGrant, { tokenId, nowSecs, lifetimeSecs })
      const signed = await keys.sign({ typ: ACCESS_TOKEN_TYPE, claims }, options)
      if (signed.tag !== 'signed') throw new DependencyUnavailable('no signing key is available')
      return {
        accessToken: signed.token,
        tokenType: grant.jkt === null ? 'Bearer' : 'DPoP',
        tokenId,
        expiresInSecs: lifetimeSecs,
        issuedAt,
      }
    },
    async signIdToken(claims, algorithm, options) {
      const message = { typ: ID_TOKEN_TYPE, claims: JSON.stringify(claims), algorithm }
      const signed = await keys.sign(message, options)
      if (signed.tag !== 'signed') throw new Error('no signing key is available')
      return signed.token
    },
  }
}
