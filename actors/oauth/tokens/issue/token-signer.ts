/** Signs access tokens and ID tokens. */
import type { ActorRef, AskOptions } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { allocateStatus, statusListUri } from '../../../../storage/oauth/status-lists.js'
import { tokenStatusQuery } from '../../../domain/token-status.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { SigningKeysProtocol, SigningAlgorithm } from '../../signing-keys/protocol.js'
import type { Issued } from '../protocol.js'
import { ACCESS_TOKEN_TYPE, type AccessGrant, accessClaims, grantClaims } from './access-token.js'
import { ID_TOKEN_TYPE } from './id-token.js'

export type SignedAccess = {
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly tokenId: string
  readonly expiresInSecs: number
  readonly issuedAt: Date
}

/** The answer of a grant that gives an access token alone. */
export const accessAlone = (
  { accessToken, tokenType, expiresInSecs }: SignedAccess,
  scopes: readonly string[],
): Issued => ({
  tag: 'issued',
  accessToken,
  tokenType,
  expiresInSecs,
  scopes,
  refreshToken: null,
  idToken: null,
  authorizationDetails: null,
})

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

type TokenSignerNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
  /** Holds the status lists. Null if no token gets an entry. */
  readonly database: Database | null
}

export function tokenSigner({
  keys,
  clock,
  random,
  issuer,
  database,
}: TokenSignerNeeds): TokenSigner {
  return {
    async sign(grant, lifetimeSecs, options, ofGrant = grantClaims(grant, issuer)) {
      const issuedAt = clock.now()
      const nowSecs = Math.floor(issuedAt.getTime() / 1000)
      const tokenId = random.uuid()
      const status =
        grant.tokenStatusList === true && database !== null
          ? await statusEntry(database, random, issuer, { grant, tokenId, issuedAt, lifetimeSecs })
          : null
      const claims = accessClaims(ofGrant, { tokenId, nowSecs, lifetimeSecs, status })
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
      if (signed.tag !== 'signed') throw new DependencyUnavailable('no signing key is available')
      return signed.token
    },
  }
}

/** Allocates the entry of a token. One that is never handed out expires with the token. */
async function statusEntry(
  database: Database,
  random: Random,
  issuer: string,
  token: {
    readonly grant: AccessGrant
    readonly tokenId: string
    readonly issuedAt: Date
    readonly lifetimeSecs: number
  },
): Promise<{ readonly idx: number; readonly uri: string }> {
  const { grant, tokenId, issuedAt, lifetimeSecs } = token
  const { tenantId } = grant
  const { idx, listId } = await database.tenant(tenantId, (tx) =>
    allocateStatus(tx, random, {
      tenantId,
      purpose: 'access_token',
      issuer,
      ref: tokenId,
      query: tokenStatusQuery({
        ...grant,
        actors: grant.actors ?? [],
        delegationId: grant.delegationId ?? null,
        tokenId,
        acr: grant.level === null ? null : `aal${grant.level}`,
        resourceIds: grant.resourceIds ?? [],
      }),
      now: issuedAt,
      expiresAt: new Date(issuedAt.getTime() + lifetimeSecs * 1000),
    }),
  )
  return { idx, uri: statusListUri(issuer, listId) }
}
