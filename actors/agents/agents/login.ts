/**
 * Login by signed challenge. The first verify spends the challenge before any other check, so a wrong
 * signature invalidates it too (docs/reference/agents.md).
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  findLoginCandidates,
  insertAgentChallenge,
  type SpentChallenge,
  spendAgentChallenge,
} from '../../../storage/agents/agent-challenges.js'
import { touchAgent } from '../../../storage/agents/agents.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database } from '../../../storage/platform/sql.js'
import { eventData, type NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { agentScopes, narrowScopes, parseScope } from '../../domain/scopes.js'
import { challengePayload } from '../../domain/signed-strings.js'
import type { PowProtocol } from '../proof-of-work/protocol.js'
import type { ChallengeSettings } from '../proof-of-work/settings.js'
import type { TenantsProtocol } from '../../identity/tenants/protocol.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import type {
  AgentChallenged,
  AgentVerified,
  RequestChallenge,
  VerifyChallenge,
  VerifyRefused,
} from './protocol.js'
import { chooseLogin, mayLogIn } from './rules.js'

const NONCE_BYTES = 32
const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const
const INVALID_GRANT = { tag: 'invalid_grant' } as const

export type LoginNeeds = {
  database: Database
  clock: Clock
  random: Random
  tenants: ActorRef<TenantsProtocol>
  pow: ActorRef<PowProtocol>
  tokens: ActorRef<TokensProtocol>
  issuer: string
  settings: Pick<ChallengeSettings, 'agent_challenge_ttl_secs'>
}

export function login(needs: LoginNeeds) {
  const { database, clock, random, tenants, pow, tokens, issuer, settings } = needs

  return {
    // One error for every cause, so that callers cannot probe which agents or tenants exist.
    async challenge(
      { agent, tenant: selector }: RequestChallenge,
      context: MessageContext,
    ): Promise<AgentChallenged | typeof UNKNOWN_AGENT> {
      if (agent.by === 'agent_id' && !isUuid(agent.value)) return UNKNOWN_AGENT
      const resolved = await tenants.resolve(selector, context)
      if (resolved.tag !== 'resolved') return UNKNOWN_AGENT
      const id = random.uuid()
      const nonce = random.token(NONCE_BYTES)
      // The agent's home tenant may differ from the tenant it logs in to.
      const issued = await database.system(async (tx) => {
        const candidates = await findLoginCandidates(tx, agent.by, agent.value, resolved.tenant.id)
        const chosen = chooseLogin(candidates, resolved)
        if (chosen === undefined) return undefined
        const { agentId, fingerprint, algorithm } = chosen.candidate
        const { expiresAt } = await insertAgentChallenge(tx, {
          id,
          tenantId: chosen.tenantId,
          agentId,
          fingerprint,
          nonce,
          ttlSecs: settings.agent_challenge_ttl_secs,
        })
        return { tenantId: chosen.tenantId, agentId, keyId: fingerprint, algorithm, expiresAt }
      }, context)
      if (issued === undefined) return UNKNOWN_AGENT
      return {
        tag: 'challenged',
        ...issued,
        challengeId: id,
        nonce,
        issuer,
        expiresInSeconds: settings.agent_challenge_ttl_secs,
        payload: payloadOf(id, { nonce, ...issued }),
      }
    },

    async verify(
      message: VerifyChallenge,
      context: MessageContext,
    ): Promise<AgentVerified | VerifyRefused> {
      const { challengeId, signature, keyId, scope, dpop, address } = message
      // The DPoP proof is checked first: a client that gets use_dpop_nonce repeats the request with
      // the same challenge.
      const bound = dpop === null ? null : await tokens.proveKey(dpop, context)
      if (bound?.tag === 'proof_refused') return bound

      if (!isUuid(challengeId)) return INVALID_GRANT
      // The request has only the id; the row says which tenant it belongs to.
      const spent = await database.system((tx) => spendAgentChallenge(tx, challengeId), context)
      if (spent === undefined) return INVALID_GRANT
      if (!mayLogIn(spent, keyId)) return refuse(challengeId, spent, 'not_in_force', context)
      const { agentId, tenantId, fingerprint, publicKey, keyAlgorithm } = spent
      const payload = payloadOf(challengeId, { keyId: fingerprint, ...spent })
      const verdict = await pow.verifySignature(
        { publicKey, keyAlgorithm, payload, signature },
        context,
      )
      if (verdict.tag !== 'valid') return refuse(challengeId, spent, 'wrong_signature', context)
      const requested = scope === undefined ? null : parseScope(scope)
      const scopes = narrowScopes(requested, agentScopes(spent))
      if (scopes === undefined) return { tag: 'invalid_scope' }

      const jkt = bound?.jkt ?? null
      const [granted] = await Promise.all([
        tokens.grantAgent(
          {
            tenantId,
            organizationId: null,
            agentId,
            scopes,
            keyFingerprint: fingerprint,
            jkt,
            address,
          },
          context,
        ),
        database.tenant(spent.homeTenantId, (tx) => touchAgent(tx, agentId, clock.now()), context),
      ])
      if (granted.tag === 'policy_denied') return granted
      return {
        tag: 'verified',
        accessToken: granted.accessToken,
        tokenType: granted.tokenType,
        expiresInSeconds: granted.expiresInSecs,
        refreshToken: granted.refreshToken,
        scopes: granted.scopes,
        agentId,
        tenantId,
      }
    },
  }

  /**
   * Records the cause for the tenant and hides it from the caller. A challenge causes one event at most,
   * because it is spent.
   */
  async function refuse(
    challengeId: string,
    { tenantId, agentId, fingerprint }: SpentChallenge,
    reason: string,
    context: MessageContext,
  ): Promise<typeof INVALID_GRANT> {
    const about = {
      actor: { type: 'agent', id: agentId },
      resource: { type: 'agent_challenge', id: challengeId },
      requestId: context.requestId,
    }
    const event: NewEvent = {
      id: random.uuid(),
      tenantId,
      type: 'auth.login.failure',
      occurredAt: clock.now(),
      data: eventData(about, { method: 'agent_key', key_id: fingerprint, reason }),
    }
    await database.tenant(tenantId, (tx) => appendEvents(tx, [event]), context)
    return INVALID_GRANT
  }

  function payloadOf(
    challengeId: string,
    fields: { tenantId: string; agentId: string; keyId: string; nonce: string; expiresAt: Date },
  ): string {
    const { tenantId, agentId, keyId, nonce, expiresAt } = fields
    const expiresAtSecs = Math.floor(expiresAt.getTime() / 1000)
    return challengePayload({ issuer, tenantId, agentId, keyId, challengeId, nonce, expiresAtSecs })
  }
}
