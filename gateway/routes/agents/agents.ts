/** Agent registration and login. */
import { quotaAddress } from '../../../actors/domain/quota-address.js'
import { z } from 'zod'
import { type AgentRegistered, agents } from '../../../actors/agents/agents/protocol.js'
import { PROOF_ALGORITHMS } from '../../../actors/oauth/tokens/protocol.js'
import { uuid } from '../../request/ids.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import {
  Agent,
  agentJson,
  ChallengeRequest,
  completionRefusals,
  keyJson,
  RegisteredAgent,
  RegistrationComplete,
  RegistrationStart,
  registrationOf,
  selectorOf,
  startRefusals,
  startReplies,
} from './agent-shapes.js'

const TAGS = ['Agents']

const registeredJson = ({ agent, key, issuer }: AgentRegistered) => ({
  agent_id: agent.id,
  tenant_id: agent.tenantId,
  issuer,
  agent: agentJson(agent),
  key: keyJson(key),
})

const startRegistration = route(agents, 'startAgentRegistration', {
  method: 'POST',
  path: '/api/v1/agents/auth/register/pow',
  summary: 'Start the registration of an agent',
  description:
    'Returns a proof-of-work challenge for a valid key ownership proof. The tenant is the one of ' +
    'tenant_id or tenant_slug, else the tenant of the host, else the control plane. The ownership proof ' +
    'signs the UUID of the tenant.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [{ policy: 'registration', by: 'address' }],
  capabilities: ['agents.pow_registration'],
  body: json(RegistrationStart),
  message: ({ body, host, registeringNetwork }) => ({
    kind: 'agent' as const,
    registration: registrationOf(body),
    tenant: selectorOf(body, host),
    network: registeringNetwork,
  }),
  documented: ['not-implemented'],
  replies: { ...startReplies, ...startRefusals },
})

const completeRegistration = route(agents, 'completeAgentRegistration', {
  method: 'POST',
  path: '/api/v1/agents/auth/register/pow/complete',
  summary: 'Complete the registration of an agent',
  description:
    'Spends the challenge on a nonce for which SHA-256 of `{challenge_token}:{nonce}` starts with ' +
    'difficulty_bits zero bits. Get tokens with challenge and verify.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  body: json(RegistrationComplete),
  message: ({ body }) => ({
    challengeId: body.challenge_id,
    nonce: body.nonce,
    challengeToken: body.challenge_token,
  }),
  documented: ['not-implemented'],
  replies: { registered: reply(200, RegisteredAgent, registeredJson), ...completionRefusals },
})

const registerDirectly = route(agents, 'registerAgent', {
  method: 'POST',
  path: '/api/v1/agents/auth/register',
  summary: 'Register an agent without proof of work',
  description: 'Only for tenants that allow it, in trusted environments.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [{ policy: 'registration', by: 'address' }],
  capabilities: ['agents.direct_registration'],
  body: json(RegistrationStart),
  message: ({ body, host, registeringNetwork }) => ({
    registration: registrationOf(body),
    tenant: selectorOf(body, host),
    network: registeringNetwork,
  }),
  replies: { registered: reply(201, RegisteredAgent, registeredJson), ...startRefusals },
})

const Challenge = z
  .object({
    challenge_id: z.uuid(),
    payload: z.string().meta({ description: 'The exact string to sign, as UTF-8' }),
    nonce: z.string(),
    agent_id: z.uuid(),
    key_id: z.string(),
    tenant_id: z.uuid(),
    issuer: z.url(),
    algorithm: z.enum(['ed25519', 'es256']),
    expires_at: z.iso.datetime(),
    expires_in: z.int(),
  })
  .meta({ id: 'AgentChallenge' })

const challenge = route(agents, 'challengeAgent', {
  method: 'POST',
  path: '/api/v1/agents/auth/challenge',
  summary: 'Get a login challenge',
  description:
    'The agent is identified by agent_id, did or key_id. tenant_id may name any tenant of an ' +
    'organization that the agent is a member of: the token is then for that tenant. Unknown and ' +
    'suspended agents get the same error.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [
    { policy: 'default', by: 'address' },
    {
      policy: 'agent-auth',
      by: ({ body, clientAddress }) =>
        `${body.agent_id ?? body.did ?? body.key_id ?? ''} ${quotaAddress(clientAddress)}`,
    },
  ],
  body: json(ChallengeRequest),
  message: ({ body, host }) => ({
    agent:
      body.agent_id !== undefined
        ? { by: 'agent_id' as const, value: body.agent_id }
        : body.did !== undefined
          ? { by: 'did' as const, value: body.did }
          : { by: 'key_id' as const, value: body.key_id ?? '' },
    tenant: selectorOf(body, host),
  }),
  replies: {
    challenged: reply(200, Challenge, (issued) => ({
      challenge_id: issued.challengeId,
      payload: issued.payload,
      nonce: issued.nonce,
      agent_id: issued.agentId,
      key_id: issued.keyId,
      tenant_id: issued.tenantId,
      issuer: issued.issuer,
      algorithm: issued.algorithm,
      expires_at: issued.expiresAt.toISOString(),
      expires_in: issued.expiresInSeconds,
    })),
    unknown_agent: problem(400, 'bad-request', {
      detail: 'The tenant has no active agent with this identifier and an active key.',
    }),
  },
})

const VerifyRequest = z
  .object({
    challenge_id: uuid(),
    signature: z.string().min(1).max(512).meta({ description: 'base64url over payload' }),
    key_id: z.string().min(1).max(128).optional(),
    scope: z.string().max(4096).optional().meta({ description: 'Default: all allowed scopes' }),
  })
  .meta({ id: 'AgentVerifyRequest' })

const AgentToken = z
  .object({
    access_token: z.string(),
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: z.int(),
    refresh_token: z.string(),
    scope: z.string(),
    agent_id: z.uuid(),
    tenant_id: z.uuid(),
    subject_type: z.literal('agent'),
  })
  .meta({ id: 'AgentToken' })

const verify = route(agents, 'verifyAgent', {
  method: 'POST',
  path: '/api/v1/agents/auth/verify',
  summary: 'Exchange a signed challenge for tokens',
  description:
    'The first call spends the challenge, whatever its outcome. With a DPoP header the tokens are ' +
    'bound to the key of the proof; an invalid proof does not spend the challenge.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  onceOnly: true,
  body: json(VerifyRequest),
  message: ({ body, clientAddress, credentials: { dpopProof, httpMethod, httpUrl } }) => ({
    address: clientAddress,
    challengeId: body.challenge_id,
    signature: body.signature,
    keyId: body.key_id,
    scope: body.scope,
    dpop: dpopProof === null ? null : { proof: dpopProof, httpMethod, httpUrl },
  }),
  replies: {
    verified: reply(200, AgentToken, (token) => ({
      access_token: token.accessToken,
      token_type: token.tokenType,
      expires_in: token.expiresInSeconds,
      refresh_token: token.refreshToken,
      scope: token.scopes.join(' '),
      agent_id: token.agentId,
      tenant_id: token.tenantId,
      subject_type: 'agent' as const,
    })),
    invalid_grant: problem(400, 'bad-request', {
      error: 'invalid_grant',
      detail: 'The challenge could not be verified. Get a new one.',
    }),
    invalid_scope: problem(400, 'bad-request', {
      error: 'invalid_scope',
      detail: 'The agent may not have one of the requested scopes in this tenant.',
    }),
    policy_denied: problem(403, 'policy-denied', {
      reason: 'access_policy',
      detail: 'An access policy of the tenant refuses this login.',
    }),
    proof_refused: problem(401, 'unauthorized', ({ error, description, dpopNonce }) => ({
      error,
      detail: description,
      headers: {
        'www-authenticate': `DPoP error="${error}", algs="${PROOF_ALGORITHMS.join(' ')}"`,
        ...(dpopNonce === undefined ? {} : { 'dpop-nonce': dpopNonce }),
      },
    })),
  },
})

const readSelf = route(agents, 'readOwnAgent', {
  method: 'GET',
  path: '/api/v1/agents/me',
  summary: 'Read the calling agent',
  tags: TAGS,
  exposure: 'internal',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'owner',
    subjects: ['agent'],
    direct: 'required',
  },
  message: ({ principal }) => ({ agentId: principal.subject }),
  replies: {
    found: reply(200, Agent, ({ agent }) => agentJson(agent)),
    unknown_agent: problem(404, 'not-found'),
  },
})

export const agentRoutes: readonly Route[] = [
  challenge,
  startRegistration,
  completeRegistration,
  registerDirectly,
  verify,
  readSelf,
]
