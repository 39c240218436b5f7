/** The agent starts a delegation request and polls for the token. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findSessionKey } from '../../../storage/agents/agent-status.js'
import { knownAudiences } from '../../../storage/oauth/applications.js'
import {
  insertDelegationRequest,
  pollDelegationRequest,
} from '../../../storage/agents/delegation-requests.js'
import { recordAudit } from '../../platform/record-audit.js'
import { newUserCode } from '../../domain/user-code.js'
import { sha256 } from '../../domain/secret-hashes.js'
import type { DelegationNeeds, DelegationHandler } from './needs.js'
import type { PollDelegation, PollOutcome } from './protocol.js'
import { requestedScopes, judgePoll } from './rules.js'
import { inTenant } from '../../platform/in-tenant.js'

const DEVICE_CODE_BYTES = 32
/** RFC 8628 section 3.5: each poll that comes too fast adds five seconds to the interval. */
const SLOW_DOWN_SECS = 5
/** With a million open requests, one code in 25,000 collides. */
const CODE_TRIES_MAX = 8

export const startDelegation: DelegationHandler<'startDelegation'> = async (
  { database, clock, random, metrics, issuer, settings },
  { caller, scope, audience, purpose },
  context,
) => {
  const { tenantId, subject: agentId, sessionId, scopes: held } = caller.principal
  const requested = requestedScopes(scope, held)
  if ('refused' in requested) return { tag: 'invalid_scope', scopes: requested.refused }
  const target = audience ?? issuer
  const deviceCode = random.token(DEVICE_CODE_BYTES)
  // Crosses tenants, because the agent's home tenant may be another one.
  const outcome = await database.system(async (tx) => {
    if (target !== issuer && (await knownAudiences(tx, tenantId, [target])).length === 0) {
      return { tag: 'invalid_target' } as const
    }
    const keyFingerprint =
      sessionId === null ? null : ((await findSessionKey(tx, tenantId, sessionId)) ?? null)
    const now = clock.now()
    const request = {
      tenantId,
      id: random.uuid(),
      agentId,
      keyFingerprint,
      deviceCodeSha256: sha256(deviceCode),
      scopes: requested.scopes,
      audience: target,
      purpose,
      address: caller.address,
      interval: settings.interval_secs,
      createdAt: now,
      expiresAt: new Date(now.getTime() + settings.ttl_secs * 1000),
    }
    for (let tries = 0; tries < CODE_TRIES_MAX; tries += 1) {
      const userCode = newUserCode((count) => random.bytes(count))
      if (!(await insertDelegationRequest(tx, { ...request, userCode }))) continue
      recordAudit(tx, { clock, random }, caller, context, {
        type: 'admin.delegation.requested',
        resource: { type: 'delegation_request', id: request.id },
        data: {
          scope: requested.scopes.join(' '),
          audience: target,
          ...(purpose !== null && { purpose }),
        },
      })
      return { tag: 'started', userCode } as const
    }
    throw new Error('no free user code found')
  }, context)
  if (outcome.tag === 'invalid_target') return outcome
  metrics.countStep('requested')
  return {
    ...outcome,
    deviceCode,
    expiresInSecs: settings.ttl_secs,
    intervalSecs: settings.interval_secs,
  }
}

export const pollDelegation: DelegationHandler<'pollDelegation'> = async (
  needs,
  message,
  context,
) => {
  const outcome = await outcomeOf(needs, message, context)
  needs.metrics.countPoll(outcome.tag)
  return outcome
}

async function outcomeOf(
  { database, clock, tokens, settings }: DelegationNeeds,
  { principal, deviceCode, address }: PollDelegation,
  context: MessageContext,
): Promise<PollOutcome> {
  const { tenantId, subject: agentId, sessionId, jkt } = principal
  const now = clock.now()
  const poll = {
    tenantId,
    agentId,
    deviceCodeSha256: sha256(deviceCode),
    now,
    penalty: SLOW_DOWN_SECS,
  }
  const request = await inTenant(database, tenantId, context, (tx) =>
    pollDelegationRequest(tx, poll),
  )
  if (request === undefined) return { tag: 'invalid' }
  const verdict = judgePoll(request, now)
  if (verdict.tag !== 'approved') return verdict
  const outcome = await tokens.grantDelegated(
    {
      tenantId,
      delegationId: request.id,
      address,
      agentSessionId: sessionId,
      jkt,
      lifetimeSecs: settings.delegation_ttl_secs,
    },
    context,
  )
  // A concurrent poll redeemed it, or the person revoked it at this moment.
  return outcome.tag === 'gone' ? { tag: 'invalid' } : outcome
}
