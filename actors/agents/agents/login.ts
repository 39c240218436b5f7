/**
 * Login: a challenge to sign, then tokens for the right signature. The challenge is spent by the
 * first verify, before anything else is judged, so that a wrong signature burns it (decisions.md 1.1).
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
import { chooseLogin, loginStands } from './rules.js'

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
    // One answer for every reason why not, so that nobody learns which agents or tenants exist.
    async challenge(
      { agent, tenant: selector }: RequestChallenge,
      context: MessageContext,
    ): Promise<AgentChallenged | typeof UNKNOWN_AGENT> {
      if (agent.by === 'agent_id' && !isUuid(agent.value)) return UNKNOWN_AGENT
      const resolved = await tenants.ask('resolve', selector, context)
      if (resolved.tag !== 'resolved') return UNKNOWN_AGENT
      const id = random.uuid()
      const nonce = random.token(NONCE_BYTES)
      // The agent may be at home in another tenant than the one it logs in to.
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
      const { challengeId, signature, keyId, scope, dpop } = message
      // A DPoP proof is judged first: a client that is told to use a nonce repeats the request
      // with the same challenge.
      const bound = dpop === null ? null : await tokens.ask('proveKey', dpop, context)
      if (bound?.tag === 'proof_refused') return bound

      if (!isUuid(challengeId)) return INVALID_GRANT
      // The id is all the request has: which tenant it belongs to is read from the row.
      const spent = await database.system((tx) => spendAgentChallenge(tx, challengeId), context)
      if (spent === undefined) return INVALID_GRANT
      if (!loginStands(spent, keyId)) return refuse(challengeId, spent, 'not_in_force', context)
      const { agentId, tenantId, fingerprint, publicKey, keyAlgorithm } = spent
      const payload = payloadOf(challengeId, { keyId: fingerprint, ...spent })
      const verdict = await pow.ask(
        'verifySignature',
        { publicKey, keyAlgorithm, payload, signature },
        context,
      )
      if (verdict.tag !== 'valid') return refuse(challengeId, spent, 'wrong_signature', context)
      const asked = scope === undefined ? null : parseScope(scope)
      const scopes = narrowScopes(asked, agentScopes(spent))
      if (scopes === undefined) return { tag: 'invalid_scope' }

      const jkt = bound?.jkt ?? null
      const [granted] = await Promise.all([
        tokens.ask(
          'grantAgent',
          { tenantId, organizationId: null, agentId, scopes, keyFingerprint: fingerprint, jkt },
          context,
        ),
        database.tenant(spent.homeTenantId, (tx) => touchAgent(tx, agentId, clock.now()), context),
      ])
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

  /** The caller learns nothing; the tenant does. One event a challenge: it is spent by now. */
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
