/**
 * Login by signed challenge. The first verify spends the challenge, whatever its outcome: with the commit of the
 * session, or with the commit of the refusal before it is answered (docs/reference/agents.md). Concurrent logins share
 * statements.
 */
import type { Handler, ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { together } from '../../../runtime/kernel/batched-asks.js'
import {
  findAgentChallenges,
  findLoginCandidates,
  insertAgentChallenges,
  type LoginCandidate,
  type LoginName,
  type NamedLogin,
  type NewAgentChallenge,
  type OpenChallenge,
  spendAgentChallenges,
} from '../../../storage/agents/agent-challenges.js'
import { type AgentLogin, touchAgents } from '../../../storage/agents/agents.js'
import type { Database } from '../../../storage/platform/sql.js'
import { catalogued, type NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { agentScopes, narrowScopes, parseScope } from '../../domain/scopes.js'
import { challengePayload } from '../../domain/signed-strings.js'
import { type GroupCommit, groupCommit } from '../../platform/batching/group-commit.js'
import type { PowProtocol } from '../proof-of-work/protocol.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import type { AgentsProtocol } from './protocol.js'
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
  settings: { readonly agent_challenge_ttl_secs: number }
}

export type LoginTools = LoginNeeds & {
  readonly commits: GroupCommit
  readonly candidatesOf: Readonly<
    Record<LoginName, (asked: NamedLogin) => Promise<readonly LoginCandidate[]>>
  >
  readonly issueLogin: (challenge: NewAgentChallenge) => Promise<Date | undefined>
  readonly findLogin: (id: string) => Promise<OpenChallenge | undefined>
  readonly touch: (login: AgentLogin) => Promise<unknown>
}
type Does<K extends keyof AgentsProtocol> = Handler<LoginTools, AgentsProtocol, K>

export function loginTools(needs: LoginNeeds): LoginTools {
  const { database } = needs
  // The agent's home tenant may differ from the tenant it logs in to, so these statements cross tenants.
  const candidatesBy = (by: LoginName) =>
    together((asked: readonly NamedLogin[]) => findLoginCandidates(database, by, asked))
  return {
    ...needs,
    commits: groupCommit(database),
    candidatesOf: {
      agent_id: candidatesBy('agent_id'),
      did: candidatesBy('did'),
      key_id: candidatesBy('key_id'),
    },
    issueLogin: together(async (challenges: readonly NewAgentChallenge[]) => {
      const expiries = await insertAgentChallenges(database, challenges)
      return challenges.map(({ id }) => expiries.get(id))
    }),
    findLogin: together((ids: readonly string[]) => findAgentChallenges(database, ids)),
    touch: together(async (logins: readonly AgentLogin[]) => {
      await touchAgents(database, logins)
      return logins
    }),
  }
}

// One error for every cause, so that callers cannot probe which agents or tenants exist.
export const challengeAgent: Does<'challengeAgent'> = async (
  tools,
  { agent, tenant: selector },
  context,
) => {
  const { random, tenants, issuer, settings } = tools
  if (agent.by === 'agent_id' && !isUuid(agent.value)) return UNKNOWN_AGENT
  const resolved = await tenants.resolve(selector, context)
  if (resolved.tag !== 'resolved') return UNKNOWN_AGENT
  const id = random.uuid()
  const nonce = random.token(NONCE_BYTES)
  const tenantId = resolved.tenant.id
  const candidates = await tools.candidatesOf[agent.by]({ name: agent.value, tenantId })
  const chosen = chooseLogin(candidates, resolved)
  if (chosen === undefined) return UNKNOWN_AGENT
  const { agentId, fingerprint, algorithm } = chosen.candidate
  const expiresAt = await tools.issueLogin({
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
    payload: payloadOf(issuer, id, { nonce, ...issued }),
  }
}

export const verifyAgent: Does<'verifyAgent'> = async (tools, message, context) => {
  const { clock, pow, tokens, issuer } = tools
  const { challengeId, signature, keyId, scope, dpop, address } = message
  // The DPoP proof is checked first: a client that gets use_dpop_nonce repeats the request with
  // the same challenge.
  const bound = dpop === null ? null : await tokens.proveKey(dpop, context)
  if (bound?.tag === 'proof_refused') return bound

  if (!isUuid(challengeId)) return INVALID_GRANT
  const open = await tools.findLogin(challengeId)
  if (open === undefined) return INVALID_GRANT
  if (!mayLogIn(open, keyId)) return refuse(tools, open, 'not_in_force', context)
  const { agentId, tenantId, fingerprint, publicKey, keyAlgorithm } = open
  const payload = payloadOf(issuer, challengeId, { keyId: fingerprint, ...open })
  const verdict = await pow.verifySignature(
    { publicKey, keyAlgorithm, payload, signature },
    context,
  )
  if (verdict.tag !== 'valid') return refuse(tools, open, 'wrong_signature', context)
  const requested = scope === undefined ? null : parseScope(scope)
  const scopes = narrowScopes(requested, agentScopes(open))
  if (scopes === undefined)
    return (await spend(tools, open, [])) ? { tag: 'invalid_scope' } : INVALID_GRANT

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
  if (granted.tag === 'policy_denied')
    return (await spend(tools, open, [])) ? granted : INVALID_GRANT
  // The tokens are issued, so a lost stamp does not fail the login.
  await tools
    .touch({ agentId, now: clock.now() })
    .catch((error: unknown) =>
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
}

/** True for the call that spent the challenge. Its events are recorded with it. */
function spend(
  { commits }: LoginTools,
  { id, tenantId }: OpenChallenge,
  events: readonly NewEvent[],
): Promise<boolean> {
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
  tools: LoginTools,
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
    id: tools.random.uuid(),
    tenantId,
    occurredAt: tools.clock.now(),
    ...catalogued('auth.login.failure', about, {
      method: 'agent_key',
      key_id: fingerprint,
      reason,
    }),
  }
  await spend(tools, open, [event])
  return INVALID_GRANT
}

function payloadOf(
  issuer: string,
  challengeId: string,
  fields: { tenantId: string; agentId: string; keyId: string; nonce: string; expiresAt: Date },
): string {
  const { tenantId, agentId, keyId, nonce, expiresAt } = fields
  const expiresAtSecs = Math.floor(expiresAt.getTime() / 1000)
  return challengePayload({ issuer, tenantId, agentId, keyId, challengeId, nonce, expiresAtSecs })
}
