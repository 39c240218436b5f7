/** Verifies presented access tokens: signature, lifetime, status and binding (RFC 9068 section 4). */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import { type Clock, CLOCK_STEP_SECS_MAX } from '../../../../runtime/kernel/clock.js'
import { together } from '../../../../runtime/kernel/batched-asks.js'
import { isDelegationExpired } from '../../../../storage/agents/delegations.js'
import {
  readTokenStatusBatch,
  type TokenStatus,
  type TokenStatusQuery,
} from '../../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { Principal } from '../../../domain/principal.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import type { ReadToken } from '../issue/access-token.js'
import type { TtlCache } from '../../../platform/batching/ttl-cache.js'
import type { DpopVerifier } from './dpop-verifier.js'
import type { Authenticate, Authenticated, Unauthenticated } from '../protocol.js'
import type { ApiKeyVerifier } from './api-key-verifier.js'
import { createVerifiedTokens, type VerifiedToken } from './verified-tokens.js'
import { API_KEY_PREFIX } from '../../../domain/oauth/api-key.js'

/** Tolerance for clocks of other processes that run ahead. `exp` has no tolerance. */
const AHEAD_SECS_MAX = 10
/**
 * Tolerance of `iat` besides, for a clock that was stepped back after a token was issued. Only this deployment signs these
 * tokens, so this time is never a forgery.
 */
const ISSUED_AHEAD_SECS_MAX = CLOCK_STEP_SECS_MAX + AHEAD_SECS_MAX

type TokenState =
  | { readonly state: 'active' | 'expired' | 'revoked'; readonly token: ReadToken }
  | { readonly state: 'invalid' }

export interface AccessTokenVerifier {
  /** The state of a token. `fresh` bypasses the status cache. */
  inspect(token: string, context: MessageContext, status: 'cached' | 'fresh'): Promise<TokenState>
  /** Verifies the signature only and ignores the status. Null if the token is not ours. */
  read(token: string, context: MessageContext): Promise<ReadToken | null>
  /** All checks of a request to a route that needs an access token. */
  authenticate(
    request: Authenticate,
    context: MessageContext,
  ): Promise<Authenticated | Unauthenticated>
}

type AccessTokenVerifierNeeds = {
  /** Null where API keys are off. */
  readonly apiKeys?: ApiKeyVerifier | null | undefined
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly database: Database
  readonly clock: Clock
  readonly issuer: string
  readonly dpopVerifier: DpopVerifier
  readonly statuses: TtlCache<TokenStatus>
}

export function createAccessTokenVerifier(needs: AccessTokenVerifierNeeds): AccessTokenVerifier {
  const { apiKeys, keys, database, clock, issuer, dpopVerifier, statuses } = needs
  const verifyOnce = createVerifiedTokens(keys, issuer)
  const readFresh = together((queries: readonly TokenStatusQuery[]) =>
    readTokenStatusBatch(database, queries),
  )

  function readStatus(
    { query, ids }: VerifiedToken,
    how: 'cached' | 'fresh',
  ): TokenStatus | Promise<TokenStatus> {
    const load = () => readFresh(query)
    // Delegated tokens always read their status fresh, so that a revoked delegation ends immediately.
    if (how === 'fresh' || query.delegationId !== null) return load()
    return statuses.peek(query.tokenId) ?? statuses.get(query.tokenId, ids, load)
  }

  async function inspect(
    token: string,
    context: MessageContext,
    how: 'cached' | 'fresh',
  ): Promise<TokenState> {
    const verifying = verifyOnce(token, context)
    const verified = verifying instanceof Promise ? await verifying : verifying
    if (verified === null) return { state: 'invalid' }
    const { token: found } = verified
    const nowSecs = clock.nowSecs()
    if (nowSecs >= found.principal.expiresAtSecs) return { state: 'expired', token: found }
    const isAhead =
      found.issuedAtSecs > nowSecs + ISSUED_AHEAD_SECS_MAX ||
      (found.notBeforeSecs > found.issuedAtSecs && found.notBeforeSecs > nowSecs + AHEAD_SECS_MAX)
    if (isAhead) return { state: 'invalid' }
    const reading = readStatus(verified, how)
    const status = reading instanceof Promise ? await reading : reading
    const inForce = Object.values(status).every(Boolean)
    return { state: inForce ? 'active' : 'revoked', token: found }
  }

  return {
    read: async (token, context) => (await verifyOnce(token, context))?.token ?? null,
    inspect,
    async authenticate(request, context) {
      if (apiKeys != null && request.token.startsWith(API_KEY_PREFIX))
        return apiKeys.authenticate(request, context)
      const found = await inspect(request.token, context, 'cached')
      if (found.state === 'invalid') return refused('unauthorized', 'the token is not valid')
      if (found.state === 'expired') return refuseExpired(needs, found.token)
      if (found.state === 'revoked') return refused('token_revoked', 'the token was revoked')
      const { principal } = found.token
      // A token of an application's own API is not valid here (RFC 9068 section 4).
      if (request.anyAudience !== true && !principal.audience.includes(issuer))
        return refused('unauthorized', 'the token is for another audience')
      if (principal.jkt !== null) return checkProof(dpopVerifier, request, principal, principal.jkt)
      if (request.scheme !== 'Bearer')
        return refused('unauthorized', 'the token is not bound to a key: use the Bearer scheme')
      return { tag: 'authenticated', principal }
    },
  }
}

/** True if the expired token cannot be renewed because its delegation has expired too. */
async function isDelegationOver(
  { database, clock }: AccessTokenVerifierNeeds,
  { principal }: ReadToken,
): Promise<boolean> {
  const { tenantId, delegationId } = principal
  if (delegationId === null) return false
  // Token times are whole seconds, so the last token ends up to two seconds before its delegation.
  const end = new Date(clock.now().getTime() + 2_000)
  return database.tenant(tenantId, (tx) => isDelegationExpired(tx, tenantId, delegationId, end))
}

async function refuseExpired(
  needs: AccessTokenVerifierNeeds,
  token: ReadToken,
): Promise<Unauthenticated> {
  return (await isDelegationOver(needs, token))
    ? refused('delegation_expired', 'the delegation has expired: request a new one')
    : refused('token_expired', 'the token has expired')
}

/** Checks the DPoP proof of a bound token (RFC 9449 section 7). */
async function checkProof(
  dpopVerifier: DpopVerifier,
  { token, scheme, dpopProof, httpMethod, httpUrl }: Authenticate,
  principal: Principal,
  jkt: string,
): Promise<Authenticated | Unauthenticated> {
  const checked =
    scheme === 'Bearer' || dpopProof === null
      ? await dpopVerifier.missing('the token is bound to a key: use the DPoP scheme with a proof')
      : await dpopVerifier.verify({
          proof: dpopProof,
          httpMethod,
          httpUrl,
          accessToken: token,
          boundTo: jkt,
        })
  if (checked.tag === 'proven') return { tag: 'authenticated', principal }
  return { ...checked, tag: 'refused' }
}

function refused(error: Unauthenticated['error'], description: string): Unauthenticated {
  return { tag: 'refused', error, description }
}
