/**
 * Redeems an approved delegation for an agent: issues its first access token and the root of its
 * refresh family. It signs first and redeems second. A failure in between then loses a token that was
 * never sent, where the other order would lose the user's approval.
 */
import type { GrantNeeds } from '../issue/user-tokens.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findSessionKey } from '../../../../storage/agents/agent-status.js'
import {
  type DelegationRow,
  findDelegation,
  redeemDelegation,
} from '../../../../storage/agents/delegations.js'
import { delegationIntent } from '../../../domain/agents/delegation-intent.js'
import type { AccessGrant } from '../issue/access-token.js'
import { tokenAudience } from '../issue/audience.js'
import { issuedEvent } from '../issue/issued-event.js'
import type { DelegatedGranted, GrantDelegated } from '../protocol.js'
import { REFRESH_TOKEN_BYTES } from './refresh-token.js'
import { sha256 } from '../../../domain/secret-hashes.js'

/** The claims of a delegated token: the user, how they authenticated, and the agent that acts. */
function delegatedGrant(
  d: DelegationRow,
  { scopes, audience, jkt }: Pick<AccessGrant, 'scopes' | 'audience' | 'jkt'>,
): AccessGrant {
  return {
    subject: d.subject,
    subjectType: 'human',
    tenantId: d.tenantId,
    organizationId: d.organizationId,
    clientId: d.agentId,
    scopes,
    audience,
    // A delegation's session has the id of the delegation, and ends with it.
    sessionId: d.id,
    grantId: null,
    level: d.level,
    amr: d.amr,
    authTimeSecs: Math.floor(d.authTime.getTime() / 1000),
    jkt,
    authorizationDetails: null,
    actors: [{ sub: d.agentId, subjectType: 'agent' }],
    delegationId: d.id,
    delegation: delegationIntent(d),
  }
}

export async function grantDelegated(
  { database, commits, signer, metrics, clock, random, issuer, jwt }: GrantNeeds,
  { tenantId, delegationId, agentSessionId, jkt, lifetimeSecs }: GrantDelegated,
  context: MessageContext,
): Promise<DelegatedGranted | { readonly tag: 'gone' }> {
  // The agent's session may belong to another tenant, so the look-up crosses tenants.
  const found = await database.system(async (tx) => {
    const row = await findDelegation(tx, tenantId, delegationId)
    const key = agentSessionId && (await findSessionKey(tx, tenantId, agentSessionId))
    return row === undefined || row.revokedAt !== null ? null : { row, key: key ?? null }
  }, context)
  if (found === null) return { tag: 'gone' }
  const { row, key } = found
  const now = clock.now()
  const expiresAt = new Date(row.createdAt.getTime() + lifetimeSecs * 1000)
  const leftSecs = Math.floor((expiresAt.getTime() - now.getTime()) / 1000)
  if (leftSecs < 1) return { tag: 'gone' }
  const { scopes } = row
  const audience = tokenAudience([row.audience], { own: row.audience, issuer, scopes })
  const grant = delegatedGrant({ ...row, expiresAt }, { scopes, audience, jkt })
  const lifetime = Math.min(jwt.access_token_lifetime_agent_secs, leftSecs)
  const signed = await signer.sign(grant, lifetime, context)
  const event = issuedEvent(random, grant, signed, 'delegation', context.requestId)
  // A refresh token is useless if the first access token lasts as long as the delegation.
  const refreshes = leftSecs > lifetime || scopes.includes('offline_access')
  const refreshToken = random.token(REFRESH_TOKEN_BYTES)
  const refreshSecs = Math.min(jwt.refresh_token_lifetime_agent_secs, leftSecs)
  const redeemed = await commits.commit(tenantId, {
    row: delegationId,
    apply: async (tx) => {
      const won = await redeemDelegation(tx, {
        tenantId,
        id: delegationId,
        keyFingerprint: key,
        jkt,
        audience,
        familyId: random.uuid(),
        refreshTokenSha256: sha256(refreshToken),
        now,
        expiresAt,
        refreshExpiresAt: new Date(now.getTime() + refreshSecs * 1000),
      })
      return { result: won, events: won ? [event] : [] }
    },
  })
  if (!redeemed) return { tag: 'gone' }
  metrics.issued('delegation', 'human')
  const { accessToken, tokenType, expiresInSecs } = signed
  return {
    tag: 'granted',
    accessToken,
    tokenType,
    expiresInSecs,
    refreshToken: refreshes ? refreshToken : null,
    scopes,
  }
}
