/**
 * Login by signed challenge. The first verify spends the challenge, whatever its outcome: with the commit of the session,
 * or with that of the refusal before it is answered (docs/reference/agents.md). Concurrent logins share statements.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { together } from '../../../runtime/kernel/batched-asks.js'
import {
  findAgentChallenges,
  findLoginCandidates,
  insertAgentChallenges,
  type LoginName,
  type NamedLogin,
  type NewAgentChallenge,
  type OpenChallenge,
  spendAgentChallenges,
} from '../../../storage/agents/agent-challenges.js'
import { type AgentLogin, touchAgents } from '../../../storage/agents/agents.js'
import type { Database } from '../../../storage/platform/sql.js'
import { eventData, type NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { agentScopes, narrowScopes, parseScope } from '../../domain/scopes.js'
import { challengePayload } from '../../domain/signed-strings.js'
import { groupCommit } from '../../platform/batching/group-commit.js'
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
  const commits = groupCommit(database)
  // The agent's home tenant may differ from the tenant it logs in to, so these statements cross tenants.
  const candidatesBy = (by: LoginName) =>
    together((asked: readonly NamedLogin[]) => findLoginCandidates(database, by, asked))
  const candidatesOf: Readonly<Record<LoginName, ReturnType<typeof candidatesBy>>> = {
    agent_id: candidatesBy('agent_id'),
    did: candidatesBy('did'),
    key_id: candidatesBy('key_id'),
  }
  const issue = together(async (challenges: readonly NewAgentChallenge[]) => {
    const expiries = await insertAgentChallenges(database, challenges)
    return challenges.map(({ id }) => expiries.get(id))
  })
  const find = together((ids: readonly string[]) => findAgentChallenges(database, ids))
  const touch = together(async (logins: readonly AgentLogin[]) => {
    await touchAgents(database, logins)
    return logins
  })

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
      const tenantId = resolved.tenant.id
      const candidates = await candidatesOf[agent.by]({ name: agent.value, tenantId })
      const chosen = chooseLogin(candidates, resolved)
      if (chosen === undefined) return UNKNOWN_AGENT
      const { agentId, fingerprint, algorithm } = chosen.candidate
      const expiresAt = await issue({
        id,
        tenantId: chosen.tenantId,
        agentId,
        fingerprint,
        nonce,
        ttlSecs: settings.agent_challenge_ttl_secs,
      })
      if (expiresAt === undefined) return UNKNOWN_AGENT
      const { tenantId: loginTenantId } = chosen
      const issued = { tenantId: loginTenantId, agentId, keyId: fingerprint, algorithm, expiresAt }
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
      const open = await find(challengeId)
      if (open === undefined) return INVALID_GRANT
      if (!mayLogIn(open, keyId)) return refuse(open, 'not_in_force', context)
      const { agentId, tenantId, fingerprint, publicKey, keyAlgorithm } = open
      const payload = payloadOf(challengeId, { keyId: fingerprint, ...open })
      const verdict = await pow.verifySignature(
        { publicKey, keyAlgorithm, payload, signature },
        context,
      )
      if (verdict.tag !== 'valid') return refuse(open, 'wrong_signature', context)
      const requested = scope === undefined ? null : parseScope(scope)
      const scopes = narrowScopes(requested, agentScopes(open))
      if (scopes === undefined)
        return (await spend(open, [])) ? { tag: 'invalid_scope' } : INVALID_GRANT

      const jkt = bound?.jkt ?? null
      const granted = await tokens.grantAgent(
        {
          tenantId,
          organizationId: null,
          agentId,
          scopes,
          keyFingerprint: fingerprint,
          jkt,
          challengeId,
          address,
        },
        context,
      )
      if (granted.tag === 'challenge_spent') return INVALID_GRANT
      if (granted.tag === 'policy_denied') return (await spend(open, [])) ? granted : INVALID_GRANT
      // The tokens are issued, so a lost stamp does not fail the login.
      await touch({ agentId, now: clock.now() }).catch((error: unknown) =>
        context.log.warn({ err: error, agentId }, 'the time of a login could not be stored'),
      )
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

  /** True for the call that spent the challenge. Its events are recorded with it. */
  function spend({ id, tenantId }: OpenChallenge, events: readonly NewEvent[]): Promise<boolean> {
    return commits.decide(tenantId, {
      row: id,
      decide: spendAgentChallenges,
      input: id,
      events: (isSpent) => (isSpent ? events : []),
    })
  }

  /**
   * Records the cause for the tenant and hides it from the caller. A challenge causes one event at most,
   * because it is spent.
   */
  async function refuse(
    open: OpenChallenge,
    reason: string,
    { requestId }: MessageContext,
  ): Promise<typeof INVALID_GRANT> {
    const { id, tenantId, agentId, fingerprint } = open
    const about = {
      actor: { type: 'agent', id: agentId },
      resource: { type: 'agent_challenge', id },
      requestId,
    }
    const event: NewEvent = {
      id: random.uuid(),
      tenantId,
      type: 'auth.login.failure',
      occurredAt: clock.now(),
      data: eventData(about, { method: 'agent_key', key_id: fingerprint, reason }),
    }
    await spend(open, [event])
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
