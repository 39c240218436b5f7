/** Verifies signatures of access tokens, once per process and token. */
import { hash, type KeyObject } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import type { TokenStatusQuery } from '../../../../storage/oauth/token-sessions.js'
import { tokenStatusQuery } from '../../../domain/token-status.js'
import { ownPublicKey, type VerificationKey, verifyOwnJwt } from '../../../platform/jose/own-jwt.js'
import type { SigningKeysProtocol, VerificationKeyFound } from '../../signing-keys/protocol.js'
import { ACCESS_TOKEN_TYPE, type ReadToken, readAccessClaims } from '../issue/access-token.js'

const VERIFIED_MAX = 20_000
const KEYS_MAX = 64

/** A verified token and the ids that its status depends on, computed once. */
export type VerifiedToken = {
  readonly kid: string
  readonly token: ReadToken
  readonly query: TokenStatusQuery
  readonly ids: readonly string[]
}

type VerifiedTokens = (
  token: string,
  context: MessageContext,
) => VerifiedToken | null | Promise<VerifiedToken | null>

/** Null for a token that is not ours. */
export function createVerifiedTokens(
  keys: ActorRef<SigningKeysProtocol>,
  issuer: string,
): VerifiedTokens {
  /** By hash of the token. */
  const verifiedTokens = new Map<string, VerifiedToken>()
  const publicKeys = new Map<string, KeyObject>()
  /** Keys of this event loop turn, so that all tokens of one turn share one look-up. */
  const keysNow = new Map<string, VerificationKey | null>()

  /** Looked up once per turn even for a verified token: a withdrawn key invalidates its tokens. */
  async function keyOf(kid: string, context: MessageContext): Promise<VerificationKey | null> {
    const found = await keys.verificationKey({ kid }, context)
    if (found.tag === 'keys_unavailable') {
      throw new DependencyUnavailable('no verification keys are available')
    }
    const key = found.tag === 'unknown' ? null : importKey(found)
    if (keysNow.size === 0) setImmediate(() => keysNow.clear())
    if (keysNow.size < KEYS_MAX) keysNow.set(kid, key)
    return key
  }

  function importKey({ kid, algorithm, jwk }: VerificationKeyFound): VerificationKey {
    let publicKey = publicKeys.get(kid)
    if (publicKey === undefined) {
      publicKey = ownPublicKey(jwk)
      if (publicKeys.size >= KEYS_MAX) publicKeys.clear()
      publicKeys.set(kid, publicKey)
    }
    return { algorithm, publicKey }
  }

  async function verify(
    token: string,
    digest: string,
    context: MessageContext,
  ): Promise<VerifiedToken | null> {
    const jwt = await verifyOwnJwt(token, ACCESS_TOKEN_TYPE, (kid) => keyOf(kid, context))
    if (jwt === null) return null
    const readToken = readAccessClaims(jwt.claims, issuer)
    if (readToken === null) return null
    const query: TokenStatusQuery = tokenStatusQuery(readToken.principal)
    const ids = Object.values(query)
      .flat()
      .filter((id) => id !== null)
    const verified = { kid: jwt.kid, token: readToken, query, ids }
    if (verifiedTokens.size >= VERIFIED_MAX)
      verifiedTokens.delete(verifiedTokens.keys().next().value!)
    verifiedTokens.set(digest, verified)
    return verified
  }

  return (token, context) => {
    const digest = hash('sha256', token, 'base64url')
    const known = verifiedTokens.get(digest)
    if (known === undefined) return verify(token, digest, context)
    const key = keysNow.get(known.kid)
    if (key === undefined) return keyOf(known.kid, context).then((found) => found && known)
    return key && known
  }
}
