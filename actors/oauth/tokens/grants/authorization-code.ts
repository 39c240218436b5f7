/**
 * grant_type=authorization_code: redeems a code once (RFC 6749 section 4.1.3, RFC 7636 section 4.6,
 * RFC 9449 section 10).
 *
 * All checks run first, then one statement redeems the code and creates its refresh family. If the
 * same client redeems the code again with a valid proof, the family is revoked (RFC 6749 section
 * 4.1.2). One of several concurrent redemptions succeeds, and the next one revokes its tokens. A
 * redemption that cannot succeed (another client, a wrong code_verifier) changes nothing.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { type CodeRow, redeemingCodes } from '../../../../storage/oauth/authorization-codes.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { revokeRefreshFamily } from '../../../../storage/oauth/refresh-tokens.js'
import { type Client, publicClientId } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import { effectiveClaims, effectiveScopes } from '../issue/effective-scopes.js'
import { issuedEvent, revokedEvent } from '../issue/issued-event.js'
import { demandsDpop, RESOURCE_NEEDS_PROOF, type ResourceLookup } from '../issue/api-resource.js'
import { type TokenScope, downscope, resourcesOfGrant } from '../issue/downscoping.js'
import { personGrant, type GrantNeeds, signPersonTokens } from '../issue/user-tokens.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import { REFRESH_TOKEN_BYTES, type RefreshProof } from './refresh-token.js'
import type { OAuthReason } from '../../../domain/oauth-reasons.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { refuse } from '../refusals.js'
import type { BatchedLookups } from '../issue/batched-lookups.js'

/** RFC 7636 section 4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

type CodeNeeds = GrantNeeds & {
  readonly lookups: BatchedLookups
  readonly resources: ResourceLookup
  /** Drops cached status of these ids, so that this process refuses their tokens immediately. */
  readonly invalidate: (ids: readonly string[]) => void
}

export async function grantCode(
  needs: CodeNeeds,
  client: Client,
  form: OAuthForm,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  if (client.kind !== 'application' || !client.row.grantTypes.includes('authorization_code'))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )
  const code = form.get('code')
  if (code === null) return refuse('invalid_request', 'code is missing', 'parameter_missing')
  const { lookups, clock } = needs
  const row = await lookups.code(sha256(code))
  if (row === undefined || row.clientId !== client.row.id)
    return refuse(
      'invalid_grant',
      'the code is unknown or belongs to another client',
      'code_unknown',
    )
  const mismatch = mismatchOf(row, form)
  if (mismatch !== undefined) return refuse('invalid_grant', mismatch[1], mismatch[0])
  if (row.jkt !== null && proof.jkt === null)
    return proof.refusal('the code is bound to a key: send a DPoP proof')
  if (row.jkt !== null && row.jkt !== proof.jkt)
    return refuse('invalid_grant', 'the code is bound to another key', 'code_key_mismatch')
  if (row.redeemedAt !== null) return revoke(needs, row, publicClientId(client), context)
  if (row.expiresAt <= clock.now())
    return refuse('invalid_grant', 'the code has expired', 'code_expired')
  if (!row.standing)
    return refuse(
      'invalid_grant',
      'the session or the user behind the code is no longer active',
      'session_ended',
    )
  const resources = await resourcesOfGrant(needs.resources, row, publicClientId(client), form)
  if ('tag' in resources) return resources
  if (proof.jkt === null && demandsDpop(resources)) return proof.refusal(RESOURCE_NEEDS_PROOF)
  const scopes = effectiveScopes(row.scopes, client, resources)
  if ('tag' in scopes) return scopes
  const tokenScope = downscope(form, row, { issuer: needs.issuer, scopes, resources })
  if ('tag' in tokenScope) return tokenScope
  return redeem(needs, row, { client, proof, scopes, tokenScope }, context)
}

/** Checks redirect_uri and code_verifier against the authorization request. Returns the fault. */
function mismatchOf(
  row: Pick<CodeRow, 'redirectUri' | 'codeChallenge'>,
  form: OAuthForm,
): readonly [OAuthReason, description: string] | undefined {
  const redirectUri = form.get('redirect_uri')
  // With PKCE the parameter may be absent (OAuth 2.1 section 4.1.3): the verifier proves more.
  const isOptional = redirectUri === null && row.codeChallenge !== null
  if (!isOptional && redirectUri !== row.redirectUri)
    return ['redirect_uri_mismatch', 'redirect_uri is not the one of the authorization request']
  const verifier = form.get('code_verifier')
  if (row.codeChallenge === null)
    return verifier === null
      ? undefined
      : ['pkce_mismatch', 'the authorization request had no code_challenge']
  if (verifier === null) return ['pkce_mismatch', 'code_verifier is missing']
  if (!VERIFIER.test(verifier))
    return ['pkce_mismatch', 'code_verifier must be 43 to 128 unreserved characters']
  const computed = hash('sha256', verifier, 'buffer')
  const expected = Buffer.from(row.codeChallenge, 'base64url')
  return computed.length === expected.length && timingSafeEqual(computed, expected)
    ? undefined
    : ['pkce_mismatch', 'code_verifier does not match the code_challenge']
}

type Redemption = {
  readonly client: Client & { readonly kind: 'application' }
  readonly proof: RefreshProof
  readonly scopes: readonly string[]
  readonly tokenScope: TokenScope
}

async function redeem(
  needs: CodeNeeds,
  row: CodeRow,
  { client, proof, scopes, tokenScope }: Redemption,
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { commits, random, jwt, metrics } = needs
  const refreshes = client.row.grantTypes.includes('refresh_token')
  const refreshToken = refreshes ? random.token(REFRESH_TOKEN_BYTES) : null
  const offline = refreshes && scopes.includes('offline_access')
  const { access, grant, idToken } = await signPersonTokens(
    needs,
    personGrant(row, tokenScope, {
      grantId: row.id,
      clientId: publicClientId(client),
      sessionId: row.sessionId,
      idTokenSessionId: row.sessionId,
      scopes,
      level: row.level,
      claims: effectiveClaims(row.claims, client),
      nonce: row.nonce,
      jkt: proof.jkt,
    }),
    client.row.idTokenSignedResponseAlg,
    context,
  )
  const now = access.issuedAt
  const event = issuedEvent(random, grant, access, 'authorization_code', context.requestId)
  const redeemed = await commits.win(row.tenantId, {
    row: row.id,
    statement: redeemingCodes,
    input: {
      id: row.id,
      // A confidential client may rotate its key, since its refresh tokens are bound to the client
      // (RFC 9449 section 5).
      jkt: client.confidential ? null : proof.jkt,
      refreshTokenSha256: refreshToken === null ? null : sha256(refreshToken),
      offline,
      now,
      expiresAt: new Date(now.getTime() + jwt.refresh_token_lifetime_human_secs * 1000),
    },
    event,
  })
  // Another process redeemed the code first, so this is the second use.
  if (!redeemed) return revoke(needs, row, publicClientId(client), context)
  metrics.issued('authorization_code', 'human')
  const { accessToken, tokenType, expiresInSecs } = access
  const { authorizationDetails } = tokenScope
  return {
    tag: 'issued',
    accessToken,
    tokenType,
    expiresInSecs,
    scopes,
    refreshToken,
    idToken,
    authorizationDetails,
  }
}

async function revoke(
  { database, random, clock, invalidate }: CodeNeeds,
  { tenantId, id, subject, sessionId }: CodeRow,
  clientId: string,
  context: MessageContext,
): Promise<OAuthRefused> {
  const now = clock.now()
  // Ignores the request's abort signal: a client that disconnects must not prevent the revocation.
  await database.tenant(tenantId, async (tx) => {
    if (!(await revokeRefreshFamily(tx, tenantId, id, 'code_reuse', now))) return
    const resource = { type: 'refresh_family', id } as const
    const ended = { tenantId, resource, clientId, subject, sessionId }
    appendEvents(tx, [revokedEvent(random, ended, now, context.requestId)])
  })
  invalidate([id])
  context.log.warn({ tenantId, clientId, grantId: id }, 'an authorization code was reused')
  return refuse('invalid_grant', 'the code was used before: its tokens are revoked', 'code_reused')
}
