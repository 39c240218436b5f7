/** Issues the first access token and refresh token of an agent session. */
import type { GrantNeeds } from '../issue/user-tokens.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { openingAgentSessions } from '../../../../storage/oauth/token-sessions.js'
import type { AccessGrant } from '../issue/access-token.js'
import { issuedEvent } from '../issue/issued-event.js'
import type { ChallengeSpent, GrantAgent, Granted } from '../protocol.js'
import { REFRESH_TOKEN_BYTES } from './refresh-token.js'
import { sha256 } from '../../../domain/secret-hashes.js'

/** RFC 8176: proof of possession of a key. */
const AGENT_AMR = ['pop']

export async function grantAgent(
  { commits, signer, metrics, clock, random, issuer, jwt }: GrantNeeds,
  message: GrantAgent,
  context: MessageContext,
): Promise<Granted | ChallengeSpent> {
  const { tenantId, organizationId, agentId, scopes, keyFingerprint, jkt } = message
  const now = clock.now()
  const sessionId = random.uuid()
  const refreshToken = random.token(REFRESH_TOKEN_BYTES)
  // An agent's own token is for the issuer and has no assurance level.
  const grant: AccessGrant = {
    subject: agentId,
    subjectType: 'agent',
    tenantId,
    organizationId,
    clientId: agentId,
    scopes,
    audience: [issuer],
    sessionId,
    // The session is the agent's only grant, so ending the session ends the token.
    grantId: null,
    level: null,
    amr: AGENT_AMR,
    authTimeSecs: Math.floor(now.getTime() / 1000),
    jkt,
    authorizationDetails: null,
  }
  const signed = await signer.sign(grant, jwt.access_token_lifetime_agent_secs, context)
  const event = issuedEvent(random, grant, signed, 'agent_login', context.requestId)
  const opened = await commits.win(tenantId, {
    row: message.challengeId ?? sessionId,
    statement: openingAgentSessions,
    input: {
      challengeId: message.challengeId,
      sessionId,
      agentId,
      organizationId,
      keyFingerprint,
      scopes,
      audience: issuer,
      jkt,
      familyId: random.uuid(),
      refreshTokenSha256: sha256(refreshToken),
      now,
      expiresAt: new Date(now.getTime() + jwt.refresh_token_lifetime_agent_secs * 1000),
    },
    event,
  })
  if (!opened) return { tag: 'challenge_spent' }
  metrics.issued('agent_login', 'agent')
  const { accessToken, tokenType, expiresInSecs } = signed
  return { tag: 'granted', accessToken, tokenType, expiresInSecs, refreshToken, scopes, sessionId }
}
