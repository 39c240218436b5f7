/** Verifies presented access tokens: signature, lifetime, status and binding (RFC 9068 section 4). */
import { createPublicKey, hash, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import { together } from '../../../../runtime/kernel/batched-asks.js'
import { isDelegationExpired } from '../../../../storage/agents/delegations.js'
import {
  readStandingsTogether,
  type Standing,
  type StandingOf,
} from '../../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { standingOf } from '../../../domain/token-status.js'
import type { KeysProtocol, VerificationKeyFound } from '../../signing-keys/protocol.js'
import { ACCESS_TOKEN_TYPE, type ReadToken, readAccessClaims } from '../issue/access-token.js'
import type { BriefMemory } from '../../../platform/batching/ttl-cache.js'
import {
  decodeJwt,
  hasType,
  type VerificationKey,
  verifySignature,
} from '../../../platform/jose/jwt.js'
import type { ProofJudge } from './dpop-verifier.js'
import type { Authenticate, Authenticated, Unauthenticated } from '../protocol.js'

/** Tolerance for clocks of other processes that run ahead. `exp` has no tolerance. */
const AHEAD_SECS_MAX = 10
const VERDICTS_MAX = 20_000
const KEYS_MAX = 64

export type TokenState =
  | { readonly state: 'active' | 'expired' | 'revoked'; readonly token: ReadToken }
  | { readonly state: 'invalid' }

export interface Bearer {
  /** The state of a token. `fresh` bypasses the status cache. */
  inspect(
    token: string,
    context: MessageContext,
    standing: 'remembered' | 'fresh',
  ): Promise<TokenState>
  /** Verifies the signature only and ignores the status. Null if the token is not ours. */
  read(token: string, context: MessageContext): Promise<ReadToken | null>
  /** All checks of a request to a route that needs an access token. */
  authenticate(
    presented: Authenticate,
    context: MessageContext,
  ): Promise<Authenticated | Unauthenticated>
}

export type BearerNeeds = {
  readonly keys: ActorRef<KeysProtocol>
  readonly database: Database
  readonly clock: Clock
  readonly issuer: string
  readonly proofs: ProofJudge
  readonly standings: BriefMemory<Standing>
}

/** A verified token and the ids that its status depends on, computed once. */
type Verdict = {
  readonly kid: string
  readonly token: ReadToken
  readonly of: StandingOf
  readonly ids: readonly string[]
}

export function createBearer({
  keys,
  database,
  clock,
  issuer,
  proofs,
  standings,
}: BearerNeeds): Bearer {
  /** Verified tokens by hash: each process verifies a signature once per token. */
  const verdicts = new Map<string, Verdict>()
  const publicKeys = new Map<string, KeyObject>()

  const readFresh = together((asked: readonly StandingOf[]) =>
    readStandingsTogether(database, asked),
  )

  /** Keys of this event loop turn, so that all tokens of one turn share one look-up. */
  const keysNow = new Map<string, VerificationKey | null>()

  /** Looked up once per turn even for a verified token: a withdrawn key invalidates its tokens. */
  async function keyOf(kid: string, context: MessageContext): Promise<VerificationKey | null> {
    const found = await keys.ask('verificationKey', { kid }, context)
    if (found.tag === 'keys_unavailable') {
      throw new DependencyUnavailable('no verification keys are available')
    }
    const key = found.tag === 'unknown' ? null : keyMadeOf(found)
    if (keysNow.size === 0) setImmediate(() => keysNow.clear())
    if (keysNow.size < KEYS_MAX) keysNow.set(kid, key)
    return key
  }

  function keyMadeOf({ kid, algorithm, jwk }: VerificationKeyFound): VerificationKey {
    let publicKey = publicKeys.get(kid)
    if (publicKey === undefined) {
      publicKey = createPublicKey({ key: { ...jwk } as JsonWebKey, format: 'jwk' })
      if (publicKeys.size >= KEYS_MAX) publicKeys.clear()
      publicKeys.set(kid, publicKey)
    }
    return { algorithm, publicKey }
  }

  function verified(
    token: string,
    context: MessageContext,
  ): Verdict | null | Promise<Verdict | null> {
    const digest = hash('sha256', token, 'base64url')
    const known = verdicts.get(digest)
    if (known === undefined) return verify(token, digest, context)
    const key = keysNow.get(known.kid)
    if (key === undefined) return keyOf(known.kid, context).then((asked) => asked && known)
    return key && known
  }

  async function verify(
    token: string,
    digest: string,
    context: MessageContext,
  ): Promise<Verdict | null> {
    const decoded = decodeJwt(token)
    if (decoded.tag === 'refused') return null
    const { jwt } = decoded
    const { kid } = jwt.header
    if (kid === undefined || !hasType(jwt.header, ACCESS_TOKEN_TYPE)) return null
    const key = await keyOf(kid, context)
    if (key === null || !verifySignature(jwt, key)) return null
    const readToken = readAccessClaims(jwt.claims, issuer)
    if (readToken === null) return null
    const of: StandingOf = standingOf(readToken.principal)
    const ids = Object.values(of)
      .flat()
      .filter((id) => id !== null)
    const verdict = { kid, token: readToken, of, ids }
    if (verdicts.size >= VERDICTS_MAX) verdicts.delete(verdicts.keys().next().value!)
    verdicts.set(digest, verdict)
    return verdict
  }

  function readStandingOf(
    { of, ids }: Verdict,
    how: 'remembered' | 'fresh',
  ): Standing | Promise<Standing> {
    const load = () => readFresh(of)
    // Delegated tokens always read their status fresh, so that a revoked delegation ends at once.
    if (how === 'fresh' || of.delegationId !== null) return load()
    return standings.known(of.tokenId) ?? standings.get(of.tokenId, ids, load)
  }

  async function inspect(
    token: string,
    context: MessageContext,
    how: 'remembered' | 'fresh',
  ): Promise<TokenState> {
    const judged = verified(token, context)
    const verdict = judged instanceof Promise ? await judged : judged
    if (verdict === null) return { state: 'invalid' }
    const { token: found } = verdict
    const nowSecs = clock.nowSecs()
    if (nowSecs >= found.principal.expiresAtSecs) return { state: 'expired', token: found }
    if (Math.max(found.notBeforeSecs, found.issuedAtSecs) > nowSecs + AHEAD_SECS_MAX)
      return { state: 'invalid' }
    const read = readStandingOf(verdict, how)
    const standing = read instanceof Promise ? await read : read
    const inForce = Object.values(standing).every(Boolean)
    return { state: inForce ? 'active' : 'revoked', token: found }
  }

  /** True if the expired token cannot be renewed because its delegation has expired too. */
  async function isDelegationOver({ principal }: ReadToken): Promise<boolean> {
    const { tenantId, delegationId } = principal
    if (delegationId === null) return false
    // Token times are whole seconds, so the last token ends up to two seconds before its delegation.
    const end = new Date(clock.now().getTime() + 2_000)
    return database.tenant(tenantId, (tx) => isDelegationExpired(tx, tenantId, delegationId, end))
  }

  return {
    read: async (token, context) => (await verified(token, context))?.token ?? null,
    inspect,
    async authenticate(presented, context) {
      const { scheme, dpopProof, httpMethod, httpUrl } = presented
      const found = await inspect(presented.token, context, 'remembered')
      if (found.state === 'invalid') return refused('unauthorized', 'the token is not valid')
      if (found.state === 'expired') {
        return (await isDelegationOver(found.token))
          ? refused('delegation_expired', 'the delegation has expired: request a new one')
          : refused('token_expired', 'the token has expired')
      }
      if (found.state === 'revoked') return refused('token_revoked', 'the token was revoked')
      const { principal } = found.token
      // A token for an application's own API is not valid here (RFC 9068 section 4).
      if (presented.anyAudience !== true && !principal.audience.includes(issuer))
        return refused('unauthorized', 'the token is for another audience')
      if (principal.jkt === null) {
        return scheme === 'Bearer'
          ? { tag: 'authenticated', principal }
          : refused('unauthorized', 'the token is not bound to a key: use the Bearer scheme')
      }
      const judged =
        scheme === 'Bearer' || dpopProof === null
          ? await proofs.missing('the token is bound to a key: use the DPoP scheme with a proof')
          : await proofs.judge({
              proof: dpopProof,
              httpMethod,
              httpUrl,
              accessToken: presented.token,
              boundTo: principal.jkt,
            })
      if (judged.tag === 'proven') return { tag: 'authenticated', principal }
      return { ...judged, tag: 'refused' }
    },
  }
}

function refused(error: Unauthenticated['error'], description: string): Unauthenticated {
  return { tag: 'refused', error, description }
}
