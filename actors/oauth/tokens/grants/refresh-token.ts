/**
 * grant_type=refresh_token. Each token is turned into the next exactly once; the family dies when
 * one comes back that should not (RFC 9700 section 4.14.2; decisions.md 7.2, refresh token).
 *
 * A live token is rotated. The token rotated last, from the same client and key, within 10 s of its
 * rotation and before its successor was used, gets the same answer again: it got lost on its way.
 * Anything else that was rotated is a replay: the family is revoked. The session of an agent ends with
 * it, and what a person delegated; that of a person goes on, with other applications in it.
 */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { revokeDelegation } from '../../../../storage/agents/delegations.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import {
  type RefreshTokenRow,
  revokeRefreshFamily,
  rotateRefreshTokens,
} from '../../../../storage/oauth/refresh-tokens.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { endSession } from '../../../../storage/oauth/token-sessions.js'
import { byClient, delegationsRevoked } from '../../../domain/revocation.js'
import type { AccessGrant } from '../issue/access-token.js'
import type { Client } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import { heldClaims, heldScopes } from '../issue/effective-scopes.js'
import { issuedEvent, reuseEvent } from '../issue/issued-event.js'
import type { TokenMetrics } from '../metrics.js'
import { type Breadth, narrowed } from '../issue/downscoping.js'
import {
  personGrant,
  type PersonTokens,
  type PersonTokensNeeds,
  signPersonTokens,
} from '../issue/user-tokens.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { FoundTogether } from '../issue/batched-lookups.js'
import type { TenantCommits } from '../../../platform/batching/group-commit.js'

export const REFRESH_TOKEN_BYTES = 32
const GRACE_MS = 10_000
const REUSED = 'the refresh token was used before: its family was revoked'
const NOT_THEIRS = 'the refresh token is unknown, or not one of this client'

export type RefreshNeeds = PersonTokensNeeds & {
  readonly commits: TenantCommits
  readonly found: FoundTogether
  readonly sealer: Sealer
  readonly metrics: TokenMetrics
  readonly clock: Clock
  readonly random: Random
  /** Told what was ended, so that this process refuses it from now on. */
  readonly standingChanged: (ids: readonly string[]) => void
}

/** What the proof of the request showed, or how its absence is refused. */
export type RefreshProof = {
  readonly jkt: string | null
  readonly refusal: (description: string) => Promise<ProofRefused>
}

export function hashRefreshToken(token: string): Uint8Array {
  return createHash('sha256').update(token, 'utf8').digest()
}

export async function grantRefresh(
  needs: RefreshNeeds,
  client: Client,
  form: OAuthForm,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const token = form.get('refresh_token')
  if (token === null) return refuse('invalid_request', 'refresh_token is missing')
  if (client.kind === 'application' && !client.row.grantTypes.includes('refresh_token'))
    return refuse('unauthorized_client', 'the application does not have this grant')

  const { found, clock } = needs
  const row = await found.refreshToken(hashRefreshToken(token))
  if (row === undefined) return refuse('invalid_grant', NOT_THEIRS)
  const verdict = judgeRefresh(row, client.row.id, proof.jkt, clock.now())
  switch (verdict) {
    case 'refused':
      return refuse('invalid_grant', whyRefused(row, client.row.id, clock.now()))
    case 'wrong_key':
      return proof.refusal('the refresh token is bound to another key')
    case 'replayed':
      return revoke(needs, row, client, 'replay', context)
    case 'repeated':
      return repeat(needs, row, client, context)
    case 'live':
      return rotate(needs, row, form, client, proof, context)
  }
}

export type RefreshVerdict = 'live' | 'repeated' | 'replayed' | 'wrong_key' | 'refused'

/** What a presented token deserves, given its row. Pure: time is a value. */
export function judgeRefresh(
  row: RefreshTokenRow,
  clientId: string,
  jkt: string | null,
  now: Date,
): RefreshVerdict {
  const over = row.revokedAt !== null || row.sessionEndedAt !== null || row.expiresAt <= now
  if (over || !row.tenantActive || !row.clientActive) return 'refused'
  const sameClient = row.clientId === clientId
  const sameKey = row.jkt === null || row.jkt === jkt
  if (row.rotatedAt !== null) {
    const inGrace = now.getTime() - row.rotatedAt.getTime() <= GRACE_MS
    const repeatable = inGrace && !row.successorUsed && row.successorAnswer !== null
    return repeatable && sameClient && sameKey ? 'repeated' : 'replayed'
  }
  if (!sameClient) return 'refused'
  return sameKey ? 'live' : 'wrong_key'
}

async function rotate(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  form: OAuthForm,
  client: Client,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const held = heldScopes(row.scopes, client)
  if ('tag' in held) return held
  const scopes = narrowedScopes(form, held)
  if (scopes === null) return refuse('invalid_scope', 'a scope is malformed or was not granted')
  const breadth = narrowed(form, row, { issuer: needs.issuer, scopes })
  if ('tag' in breadth) return breadth

  const { commits, sealer, metrics, random } = needs
  // A family without a key may still get a bound access token (RFC 9449 section 5).
  const jkt = row.jkt ?? proof.jkt
  // Everything that can fail comes before the turn: a token is never spent for nothing.
  const { access, grant, idToken } = await sign(
    needs,
    row,
    { scopes, breadth, jkt },
    client,
    context,
  )
  const { accessToken, tokenType, expiresInSecs } = access
  const { authorizationDetails } = breadth
  const refreshToken = random.token(REFRESH_TOKEN_BYTES)
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
  const successorAnswer = await sealer.seal(
    row.tenantId,
    answerContext(row),
    Buffer.from(JSON.stringify(answer)),
  )
  const event = issuedEvent(random, grant, access, 'refresh_token', context.requestId)
  const rotated = await commits.decide(row.tenantId, {
    row: row.familyId,
    decide: rotateRefreshTokens,
    input: {
      familyId: row.familyId,
      generation: row.generation,
      successorSha256: hashRefreshToken(refreshToken),
      successorAnswer,
      now: access.issuedAt,
    },
    events: (won) => (won ? [event] : []),
  })
  if (rotated) {
    metrics.issued('refresh_token', row.subjectType)
    return answer
  }
  // Another process was faster. Its row now says what this request is: a repetition, or too late.
  return afterLostRace(needs, row, client, proof, context)
}

/** What of a family the one token is for. */
type Narrowed = {
  readonly scopes: readonly string[]
  readonly breadth: Breadth
  readonly jkt: string | null
}

async function sign(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  { scopes, breadth, jkt }: Narrowed,
  client: Client,
  context: MessageContext,
): Promise<PersonTokens> {
  const { level } = row
  if (row.subjectType === 'human' && level !== null && client.kind === 'application') {
    // OpenID Connect Core section 12.2: without the nonce of the first one.
    const of = personGrant(row, breadth, {
      grantId: row.familyId,
      // A sign-out also ends access tokens of an offline grant. The grant itself goes on.
      sessionId: row.accessSessionId,
      idTokenSessionId: row.browserSessionId ?? row.sessionId,
      scopes,
      level,
      claims: heldClaims(row.claims, client),
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
    audience: breadth.audience,
    sessionId: row.sessionId,
    grantId: null,
    level: null,
    amr: row.amr,
    authTimeSecs: Math.floor(row.authTime.getTime() / 1000),
    jkt,
    authorizationDetails: null,
    ...(row.delegationId === null ? {} : borrowed(row, row.delegationId)),
  }
  // Never longer than the family, which never outlasts its delegation.
  const leftSecs = Math.floor((row.expiresAt.getTime() - needs.clock.now().getTime()) / 1000)
  const lifetimeSecs = needs.jwt.access_token_lifetime_agent_secs
  const secs = row.delegationId === null ? lifetimeSecs : Math.min(lifetimeSecs, leftSecs)
  const access = await needs.signer.sign(grant, Math.max(secs, 1), context)
  return { access, grant, idToken: null }
}

/** What makes a token one of a person for whom the agent acts. */
function borrowed(row: RefreshTokenRow, delegationId: string) {
  return {
    subjectType: 'human',
    level: row.level,
    actors: [{ sub: row.clientId, subjectType: 'agent' }],
    delegationId,
  } as const
}

async function afterLostRace(
  needs: RefreshNeeds,
  before: RefreshTokenRow,
  client: Client,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const row = await needs.found.refreshToken(before.tokenSha256)
  if (row === undefined) return refuse('invalid_grant', NOT_THEIRS)
  const verdict = judgeRefresh(row, client.row.id, proof.jkt, needs.clock.now())
  if (verdict === 'repeated') return repeat(needs, row, client, context)
  if (verdict === 'replayed') return revoke(needs, row, client, 'replay', context)
  return refuse('invalid_grant', whyRefused(row, client.row.id, needs.clock.now()))
}

/** The same answer again, from the seal. */
async function repeat(
  needs: RefreshNeeds,
  row: RefreshTokenRow,
  client: Client,
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { sealer } = needs
  if (row.successorAnswer === null) return revoke(needs, row, client, 'replay', context)
  const opened = await sealer.open(row.tenantId, answerContext(row), row.successorAnswer)
  return JSON.parse(Buffer.from(opened).toString('utf8')) as Issued
}

async function revoke(
  { database, random, clock, standingChanged }: RefreshNeeds,
  row: RefreshTokenRow,
  client: Client,
  reason: string,
  context: MessageContext,
): Promise<OAuthRefused> {
  const now = clock.now()
  const { tenantId, familyId, sessionId, clientId, subject, subjectType } = row
  // Not cancelled with the request: a thief who hangs up must not save the family.
  await database.tenant(tenantId, async (tx) => {
    const revoked = await revokeRefreshFamily(tx, tenantId, familyId, reason, now)
    if (!revoked) return
    if (subjectType === 'agent')
      await endSession(tx, tenantId, sessionId, 'refresh_token_reuse', now)
    // What was stolen is not the token alone but what it stands for.
    const ended =
      row.delegationId === null
        ? undefined
        : await revokeDelegation(tx, tenantId, row.delegationId, 'refresh_token_reuse', now)
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
  standingChanged([sessionId, familyId])
  context.log.warn({ tenantId, familyId, clientId, reason }, 'a refresh token was used again')
  return refuse('invalid_grant', clientId === client.row.id ? REUSED : NOT_THEIRS)
}

/** Never wider than the grant; the family keeps what it has (RFC 6749 section 6). */
function narrowedScopes(form: OAuthForm, granted: readonly string[]): readonly string[] | null {
  const scope = form.get('scope')
  if (scope === null) return granted
  const asked = readScope(scope)
  return asked?.every((one) => granted.includes(one)) ? asked : null
}

function answerContext({ familyId, generation }: RefreshTokenRow): string {
  return `refresh_token:${familyId}:${generation}:answer`
}

/** Of a live family, or of one that ended, which only its own client is told. */
function whyRefused(row: RefreshTokenRow, clientId: string, now: Date): string {
  if (row.clientId !== clientId) return NOT_THEIRS
  if (row.revokedAt !== null) return 'the refresh token was revoked'
  if (row.sessionEndedAt !== null) return 'the session of the refresh token has ended'
  return row.expiresAt <= now
    ? 'the refresh token has expired'
    : 'whoever the refresh token stands for is not active any more'
}
