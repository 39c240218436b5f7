/**
 * grant_type=refresh_token. Each token is rotated exactly once. Reuse revokes the family (RFC 9700
 * section 4.14.2).
 *
 * A live token is rotated. If the response got lost, the client may repeat the request: the most
 * recently rotated token, from the same client and key, within 10 s of the rotation and before its
 * successor was used, returns the same response. Any other use of a rotated token is a replay and
 * revokes the family. A replay also ends an agent's session and the delegation behind it. It does not
 * end a user's session, which other applications share.
 */
import { type DelegationFacts, delegationIntent } from '../../../domain/agents/delegation-intent.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { revokeDelegationRow } from '../../../../storage/agents/delegations.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import {
  type RefreshTokenRow,
  revokeRefreshFamily,
  rotatingRefreshTokens,
} from '../../../../storage/oauth/refresh-tokens.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { endSessionRow } from '../../../../storage/oauth/token-sessions.js'
import { byClient, delegationsRevoked } from '../../../domain/revocation.js'
import type { AccessGrant } from '../issue/access-token.js'
import { type Client, isAdmitted, publicClientId } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import type { DeadFamilies, DeadFamily } from './dead-families.js'
import { effectiveClaims, effectiveScopes } from '../issue/effective-scopes.js'
import { issuedEvent, reuseEvent } from '../issue/issued-event.js'
import { demandsDpop, RESOURCE_NEEDS_PROOF, type ResourceLookup } from '../issue/api-resource.js'
import { type TokenScope, downscope, resourcesOfGrant } from '../issue/downscoping.js'
import {
  personGrant,
  type PersonTokens,
  type GrantNeeds,
  signPersonTokens,
} from '../issue/user-tokens.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import type { OAuthReason } from '../../../domain/oauth-reasons.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { refuse } from '../refusals.js'
import type { BatchedLookups } from '../issue/batched-lookups.js'

export const REFRESH_TOKEN_BYTES = 32
const GRACE_MS = 10_000
const REUSED = 'the refresh token was used before: its family is revoked'
const REPEATED = 'the refresh token was used just now, and not by this workload'
const NOT_THEIRS = 'the refresh token is unknown or belongs to another client'

type RefreshNeeds = GrantNeeds & {
  readonly lookups: BatchedLookups
  readonly resources: ResourceLookup
  readonly sealer: Sealer
  readonly deadFamilies: DeadFamilies
  /** Drops cached status of these ids, so that this process refuses their tokens immediately. */
  readonly invalidate: (ids: readonly string[]) => void
}

/** The key thumbprint of the request's DPoP proof, and how to refuse a request without one. */
export type RefreshProof = {
  readonly jkt: string | null
  readonly refusal: (description: string, reason?: OAuthReason) => Promise<ProofRefused>
}

export async function grantRefresh(
  needs: RefreshNeeds,
  client: Client,
  form: OAuthForm,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const token = form.get('refresh_token')
  if (token === null)
    return refuse('invalid_request', 'refresh_token is missing', 'parameter_missing')
  if (client.kind === 'application' && !client.row.grantTypes.includes('refresh_token'))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )

  const { lookups, clock, deadFamilies } = needs
  const tokenSha256 = sha256(token)
  const dead = deadFamilies.find(tokenSha256)
  if (dead !== undefined) {
    needs.metrics.deadFamilyRemembered()
    return refuse('invalid_grant', ...whyRefused(dead, client.row.id, clock.now()))
  }
  const row = await lookups.refreshToken(tokenSha256)
  if (row === undefined) return refuse('invalid_grant', NOT_THEIRS, 'refresh_token_unknown')
  deadFamilies.note(tokenSha256, row)
  const verdict = judgeRefresh(row, client.row.id, proof.jkt, clock.now())
  switch (verdict) {
    case 'refused':
      return refuse('invalid_grant', ...whyRefused(row, client.row.id, clock.now()))
    case 'wrong_key':
      return proof.refusal('the refresh token is bound to another key', 'proof_key_mismatch')
    case 'replayed':
      return revoke(needs, row, client, 'replay', context)
    case 'repeated':
      return repeat(needs, row, client, context)
    case 'live':
      return rotate(needs, row, { form, client, proof }, context)
  }
}

type RefreshVerdict = 'live' | 'repeated' | 'replayed' | 'wrong_key' | 'refused'

/** Decides the outcome for a refresh token from its row. Pure: time is a value. */
export function judgeRefresh(
  row: RefreshTokenRow,
  clientId: string,
  jkt: string | null,
  now: Date,
): RefreshVerdict {
  const isOver = row.revokedAt !== null || row.sessionEndedAt !== null || row.expiresAt <= now
  if (isOver || !row.tenantActive || !row.clientActive) return 'refused'
  const sameClient = row.clientId === clientId
  const sameKey = row.jkt === null || row.jkt === jkt
  if (row.rotatedAt !== null) {
    // A clock that was stepped back does not prolong the grace period.
    const inGrace = Math.abs(now.getTime() - row.rotatedAt.getTime()) <= GRACE_MS
    const repeatable = inGrace && !row.successorUsed && row.successorAnswer !== null
    return repeatable && sameClient && sameKey ? 'repeated' : 'replayed'
  }
  if (!sameClient) return 'refused'
  return sameKey ? 'live' : 'wrong_key'
}

type Asked = { readonly form: OAuthForm; readonly client: Client; readonly proof: RefreshProof }

async function rotate(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  { form, client, proof }: Asked,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const resources = await resourcesOfGrant(needs.resources, row, publicClientId(client), form)
  if ('tag' in resources) return resources
  if (proof.jkt === null && demandsDpop(resources)) return proof.refusal(RESOURCE_NEEDS_PROOF)
  const effective = effectiveScopes(row.scopes, client, resources)
  if ('tag' in effective) return effective
  const scopes = requestedScopes(form, effective)
  if (scopes === null)
    return refuse('invalid_scope', 'a scope is malformed or was not granted', 'scope_not_allowed')
  const tokenScope = downscope(form, row, { issuer: needs.issuer, scopes, resources })
  if ('tag' in tokenScope) return tokenScope

  const { commits, sealer, metrics, random } = needs
  // A family without a key may still get a bound access token (RFC 9449 section 5).
  const jkt = row.jkt ?? proof.jkt
  // Everything that can fail comes before the rotation, so that a failure does not use up the token.
  const { access, grant, idToken } = await sign(
    needs,
    row,
    { scopes, tokenScope, jkt },
    client,
    context,
  )
  const { accessToken, tokenType, expiresInSecs } = access
  const { authorizationDetails } = tokenScope
  const kept = keptToken(client, form)
  const refreshToken = kept ?? random.token(REFRESH_TOKEN_BYTES)
  const answer: Issued = {
    tag: 'issued',
    accessToken,
    tokenType,
    expiresInSecs,
    scopes,
    refreshToken,
    idToken,
    authorizationDetails,
  }
  const event = issuedEvent(random, grant, access, 'refresh_token', context.requestId)
  if (kept !== null) {
    // No look at the family: if it was just revoked, its access tokens are refused.
    await commits.write(row.tenantId, { events: [event] })
    metrics.issued('refresh_token', row.subjectType)
    return answer
  }
  const successorAnswer = await sealer.seal(
    row.tenantId,
    answerContext(row),
    Buffer.from(
      JSON.stringify(isAdmitted(client) ? { ...answer, ruleId: client.admitted.ruleId } : answer),
    ),
  )
  const rotated = await commits.win(row.tenantId, {
    row: row.familyId,
    statement: rotatingRefreshTokens,
    input: {
      familyId: row.familyId,
      generation: row.generation,
      successorSha256: sha256(refreshToken),
      successorAnswer,
      now: access.issuedAt,
    },
    event,
  })
  if (rotated) {
    metrics.issued('refresh_token', row.subjectType)
    return answer
  }
  // Another process rotated it first. The row now tells whether this is a repetition or a replay.
  return afterLostRace(needs, row, client, proof, context)
}

/** The refresh token, if it stays: its client is authenticated and proves a key with each refresh (RFC 9700 section 2.2.2). */
function keptToken(client: Client, form: OAuthForm): string | null {
  if (client.kind !== 'application' || client.row.rotateRefreshTokens) return null
  return client.confidential && client.row.dpopBoundAccessTokens ? form.get('refresh_token') : null
}

/** The part of a family for one token. */
type DownscopedGrant = {
  readonly scopes: readonly string[]
  readonly tokenScope: TokenScope
  readonly jkt: string | null
}

async function sign(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  { scopes, tokenScope, jkt }: DownscopedGrant,
  client: Client,
  context: MessageContext,
): Promise<PersonTokens> {
  const { level } = row
  if (row.subjectType === 'human' && level !== null && client.kind === 'application') {
    // A refreshed ID token has no nonce (OpenID Connect Core section 12.2).
    const of = personGrant(row, tokenScope, {
      grantId: row.familyId,
      clientId: publicClientId(client),
      // A sign-out also ends access tokens of an offline grant, but not the grant itself.
      sessionId: row.accessSessionId,
      idTokenSessionId: row.browserSessionId ?? row.sessionId,
      scopes,
      level,
      claims: effectiveClaims(row.claims, client),
      nonce: null,
      jkt,
    })
    return signPersonTokens(needs, of, client.row.idTokenSignedResponseAlg, context)
  }
  const grant: AccessGrant = {
    subject: row.subject,
    subjectType: 'agent',
    tenantId: row.tenantId,
    organizationId: row.organizationId,
    clientId: row.clientId,
    scopes,
    audience: tokenScope.audience,
    sessionId: row.sessionId,
    grantId: null,
    level: null,
    amr: row.amr,
    authTimeSecs: Math.floor(row.authTime.getTime() / 1000),
    jkt,
    authorizationDetails: null,
    ...(row.delegation === null ? {} : delegatedClaims(row, row.delegation)),
  }
  // A delegated token never outlives its family, which never outlives the delegation.
  const leftSecs = Math.floor((row.expiresAt.getTime() - needs.clock.now().getTime()) / 1000)
  const lifetimeSecs = needs.jwt.access_token_lifetime_agent_secs
  const secs = row.delegationId === null ? lifetimeSecs : Math.min(lifetimeSecs, leftSecs)
  const access = await needs.signer.sign(grant, Math.max(secs, 1), context)
  return { access, grant, idToken: null }
}

/** The claims of a delegated token: the user is the subject and the agent acts. */
function delegatedClaims(row: RefreshTokenRow, delegation: DelegationFacts) {
  return {
    subjectType: 'human',
    level: row.level,
    actors: [{ sub: row.clientId, subjectType: 'agent' }],
    delegationId: delegation.id,
    delegation: delegationIntent(delegation),
  } as const
}

async function afterLostRace(
  needs: RefreshNeeds,
  before: RefreshTokenRow,
  client: Client,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const row = await needs.lookups.refreshToken(before.tokenSha256)
  if (row === undefined) return refuse('invalid_grant', NOT_THEIRS, 'refresh_token_unknown')
  const verdict = judgeRefresh(row, client.row.id, proof.jkt, needs.clock.now())
  if (verdict === 'repeated') return repeat(needs, row, client, context)
  if (verdict === 'replayed') return revoke(needs, row, client, 'replay', context)
  return refuse('invalid_grant', ...whyRefused(row, client.row.id, needs.clock.now()))
}

/** Returns the stored response of the rotation again. */
async function repeat(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  client: Client,
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { sealer } = needs
  if (row.successorAnswer === null) return revoke(needs, row, client, 'replay', context)
  const response = await sealer.open(row.tenantId, answerContext(row), row.successorAnswer)
  const { ruleId, ...answer } = JSON.parse(Buffer.from(response).toString('utf8')) as Issued & {
    readonly ruleId?: string
  }
  // The tokens of the application may have more than the rule of a workload.
  return isAdmitted(client) && client.admitted.ruleId !== ruleId
    ? refuse('invalid_grant', REPEATED, 'refresh_token_reused')
    : answer
}

async function revoke(
  { database, random, clock, invalidate }: RefreshNeeds,
  row: RefreshTokenRow,
  client: Client,
  reason: string,
  context: MessageContext,
): Promise<OAuthRefused> {
  const now = clock.now()
  const { tenantId, familyId, sessionId, subject, subjectType } = row
  const isTheirs = row.clientId === client.row.id
  const clientId = isTheirs ? publicClientId(client) : row.clientId
  // Ignores the request's abort signal: a client that disconnects must not prevent the revocation.
  await database.tenant(tenantId, async (tx) => {
    const revoked = await revokeRefreshFamily(tx, tenantId, familyId, reason, now)
    if (!revoked) return
    if (subjectType === 'agent')
      await endSessionRow(tx, tenantId, sessionId, 'refresh_token_reuse', now)
    // The thief may hold the delegation's tokens, so the delegation ends too.
    const ended =
      row.delegationId === null
        ? undefined
        : await revokeDelegationRow(tx, tenantId, row.delegationId, 'refresh_token_reuse', now)
    appendEvents(tx, [
      ...delegationsRevoked(
        random,
        ended === undefined ? [] : [ended],
        byClient(clientId, context.requestId),
      ),
      reuseEvent(
        random,
        { tenantId, familyId, sessionId, clientId, subject, reason },
        now,
        context.requestId,
      ),
    ])
  })
  invalidate([sessionId, familyId])
  context.log.warn({ tenantId, familyId, clientId, reason }, 'a refresh token was reused')
  return refuse(
    'invalid_grant',
    isTheirs ? REUSED : NOT_THEIRS,
    isTheirs ? 'refresh_token_reused' : 'refresh_token_unknown',
  )
}

/** At most the granted scopes. The family keeps all of them (RFC 6749 section 6). */
function requestedScopes(form: OAuthForm, granted: readonly string[]): readonly string[] | null {
  const scope = form.get('scope')
  if (scope === null) return granted
  const requested = readScope(scope)
  return requested?.every((one) => granted.includes(one)) ? requested : null
}

function answerContext({ familyId, generation }: RefreshTokenRow): string {
  return `refresh_token:${familyId}:${generation}:answer`
}

/** Why a refresh token is refused. Only its own client gets the reason. */
function whyRefused(
  row: DeadFamily,
  clientId: string,
  now: Date,
): readonly [description: string, OAuthReason] {
  if (row.clientId !== clientId) return [NOT_THEIRS, 'refresh_token_unknown']
  if (row.revokedAt !== null) return ['the refresh token was revoked', 'refresh_token_revoked']
  if (row.sessionEndedAt !== null)
    return ['the session of the refresh token has ended', 'session_ended']
  return row.expiresAt <= now
    ? ['the refresh token has expired', 'refresh_token_expired']
    : ['the user, agent or application of the refresh token is no longer active', 'session_ended']
}
