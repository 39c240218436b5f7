/** Agent management. */
import { z } from 'zod'
import { agentManagement } from '../../../actors/agents/agents/management/protocol.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { callerOf } from '../../request/caller.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import {
  Agent,
  agentJson,
  Anchor,
  anchorJson,
  Key,
  keyJson,
  startRefusals,
} from './agent-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const TAGS = ['Agents']
const PATH = '/api/v1/agents/{agent_id}'

const AgentParams = z.object({ agent_id: z.string().max(64) })
const KeyParams = AgentParams.extend({ key_id: z.string().max(128) })

const AnchorParams = AgentParams.extend({
  anchor: z.string().max(256).meta({ description: 'The DID, with its percent signs encoded' }),
})

const readers = {
  tags: TAGS,
  exposure: 'internal',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'operator',
    scopes: ['agents:read', 'agents:manage'],
  },
} as const
const managers = {
  tags: TAGS,
  exposure: 'internal',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'operator',
    scopes: ['agents:manage'],
  },
} as const
/** The agent itself or a caller with agents:manage; the actor checks which. */
const selfOrManager = {
  tags: TAGS,
  exposure: 'internal',
  security: { scheme: 'bearer', controlPlaneTokens: 'owner' },
} as const

const unknownAgent = problem(404, 'not-found', { detail: 'There is no such agent.' })
const found = reply(200, Agent, ({ agent }: { agent: Parameters<typeof agentJson>[0] }) =>
  agentJson(agent),
)
const elsewhere = problem(403, 'policy-denied', {
  detail: 'Only the home tenant of the agent can do this. Your tenant can suspend the agent.',
})
const mayNotManage = problem(403, 'insufficient-scope', (_outcome, { baseUrl }) => ({
  detail: 'Only the agent itself, or a caller with agents:manage, can change keys and anchors.',
  headers: scopeChallenge(baseUrl, ['agents:manage']),
}))
const boundToken = problem(403, 'forbidden', {
  reason: 'token_bound_to_organization',
  detail: 'A token that is restricted to one organization cannot change keys and anchors.',
})
const ownerAbove = problem(403, 'forbidden', {
  detail: 'The agent is an owner of the tenant: only a token with tenant:manage may change it.',
})
const lastOwner = problem(409, 'conflict', {
  error: 'last_owner',
  detail:
    'The agent is the last owner of an organization. Give the organization another owner first.',
})
const keyRefusals = {
  unknown_agent: unknownAgent,
  unknown_key: problem(404, 'not-found', { detail: 'The agent has no such key.' }),
  may_not_manage: mayNotManage,
  owner_above_caller: ownerAbove,
  bound_token: boundToken,
  at_home_elsewhere: elsewhere,
  key_revoked: problem(409, 'conflict', { detail: 'The key is revoked. A revocation is final.' }),
  last_active_key: problem(409, 'conflict', {
    detail: "This is the agent's last active key. Add another one first.",
  }),
  last_owner: lastOwner,
}
const changed = reply(200, Key, ({ key }: { key: Parameters<typeof keyJson>[0] }) => keyJson(key))

const NewKey = z
  .object({
    public_key: z.string().min(1).max(256),
    key_algorithm: z.enum(['ed25519', 'es256']),
    key_ownership_proof: z
      .string()
      .max(512)
      .meta({
        description:
          'Signature of the new key over the ownership string, with anchor_type did_key and the ' +
          'home tenant of the agent.',
      }),
  })
  .meta({ id: 'NewAgentKey' })

const beyondCaller = (what: string) =>
  problem<{ scopes: readonly string[] }, 'insufficient-scope'>(
    403,
    'insufficient-scope',
    ({ scopes }, { baseUrl }) => ({
      detail: `${what}: ${scopes.join(' ')}.`,
      headers: scopeChallenge(baseUrl, scopes),
    }),
  )

const AgentChange = z
  .object({
    scopes: z.array(z.string().max(128)).max(100).optional().meta({
      description: 'Replaces the scopes of the agent. The caller must hold every one of them.',
    }),
  })
  .meta({ id: 'AgentChange' })

export const agentManagementRoutes: readonly Route[] = [
  route(agentManagement, 'listAgents', {
    method: 'GET',
    path: '/api/v1/agents',
    summary: 'List the agents of the tenant, newest first',
    description:
      'Agents registered in the tenant, and agents of other tenants that are members of its ' +
      'organization.',
    ...readers,
    query: PageQuery,
    message: (request) => ({
      caller: callerOf(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(Agent, ({ agents }) => agents.map(agentJson)),
    },
  }),
  route(agentManagement, 'readAgent', {
    method: 'GET',
    path: PATH,
    summary: 'Read an agent',
    ...readers,
    params: AgentParams,
    message: one,
    replies: { found, unknown_agent: unknownAgent },
  }),
  route(agentManagement, 'updateAgent', {
    method: 'PATCH',
    path: PATH,
    summary: 'Change the scopes of an agent',
    description: 'Removing a scope ends the sessions of the agent, which has to log in again.',
    ...managers,
    params: AgentParams,
    body: json(AgentChange),
    message: (request) => ({
      ...one(request),
      scopes: request.body.scopes,
    }),
    replies: {
      found,
      unknown_agent: unknownAgent,
      owner_above_caller: ownerAbove,
      at_home_elsewhere: elsewhere,
      unknown_scopes: problem(400, 'bad-request', ({ scopes }) => ({
        error: 'invalid_scope',
        detail: `Not scopes of an agent of this tenant: ${scopes.join(' ')}.`,
        errors: [{ pointer: '#/scopes', detail: 'contains unknown scopes' }],
      })),
      beyond_caller: beyondCaller('The caller does not hold these scopes and cannot grant them'),
    },
  }),
  route(agentManagement, 'deleteAgent', {
    method: 'DELETE',
    path: PATH,
    summary: 'Delete an agent with its keys, sessions and tokens',
    ...managers,
    params: AgentParams,
    message: one,
    replies: {
      removed: empty(204),
      unknown_agent: unknownAgent,
      at_home_elsewhere: elsewhere,
      last_owner: lastOwner,
      owner_above_caller: ownerAbove,
    },
  }),
  route(agentManagement, 'suspendAgent', {
    method: 'POST',
    path: `${PATH}/suspend`,
    summary: 'Suspend an agent and end its sessions and tokens',
    description:
      'The home tenant suspends the agent in every tenant, another tenant only in itself. ' +
      'Idempotent.',
    ...managers,
    params: AgentParams,
    message: one,
    replies: {
      found,
      unknown_agent: unknownAgent,
      last_owner: lastOwner,
      owner_above_caller: ownerAbove,
    },
  }),
  route(agentManagement, 'activateAgent', {
    method: 'POST',
    path: `${PATH}/activate`,
    summary: 'Lift a suspension',
    description: 'Ended sessions stay ended. Idempotent.',
    ...managers,
    params: AgentParams,
    message: one,
    replies: {
      found,
      unknown_agent: unknownAgent,
      owner_above_caller: ownerAbove,
      suspended_at_home: problem(409, 'conflict', {
        detail: 'The home tenant of the agent has suspended it.',
      }),
    },
  }),
  route(agentManagement, 'addAgentKey', {
    method: 'POST',
    path: `${PATH}/keys`,
    summary: 'Add a key to an agent',
    description:
      'Allowed for the agent itself with a direct token, and with agents:manage for a caller who ' +
      'holds every scope of the agent beyond the default ones.',
    ...selfOrManager,
    idempotent: true,
    params: AgentParams,
    body: json(NewKey),
    message: (request) => ({
      ...one(request),
      publicKey: request.body.public_key,
      keyAlgorithm: request.body.key_algorithm,
      keyOwnershipProof: request.body.key_ownership_proof,
      idempotency: request.idempotency,
    }),
    replies: {
      added: reply(
        201,
        Key,
        ({ key }) => keyJson(key),
        (_added, { path }) => ({ location: path.replace(/\/keys$/, '') }),
      ),
      unknown_agent: unknownAgent,
      may_not_manage: mayNotManage,
      owner_above_caller: ownerAbove,
      bound_token: boundToken,
      at_home_elsewhere: elsewhere,
      invalid_registration: startRefusals.invalid_registration,
      invalid_ownership_proof: startRefusals.invalid_ownership_proof,
      fingerprint_known: startRefusals.fingerprint_known,
      too_many_keys: problem(409, 'conflict', ({ most }) => ({
        detail: `The agent has the maximum of ${most} keys that are not revoked.`,
      })),
      beyond_caller: beyondCaller('The agent has scopes that the caller does not hold'),
      ...idempotencyRefusals,
    },
  }),
  route(agentManagement, 'deprecateAgentKey', {
    method: 'POST',
    path: `${PATH}/keys/{key_id}/deprecate`,
    summary: 'Deprecate a key: no new logins with it',
    description:
      'Challenges issued before can still be verified. Idempotent. An agent cannot deprecate its own last active key. ' +
      'Allowed for the agent itself and with agents:manage.',
    ...selfOrManager,
    params: KeyParams,
    message: (request) => ({
      ...one(request),
      keyId: request.params.key_id,
    }),
    replies: { changed, ...keyRefusals },
  }),
  route(agentManagement, 'revokeAgentKey', {
    method: 'POST',
    path: `${PATH}/keys/{key_id}/revoke`,
    summary: 'Revoke a key and end the sessions and delegations of its logins',
    description:
      'Final and idempotent. An agent cannot revoke its own last active key. Allowed for the ' +
      'agent itself and with agents:manage.',
    ...selfOrManager,
    params: KeyParams,
    message: (request) => ({
      ...one(request),
      keyId: request.params.key_id,
    }),
    replies: { changed, ...keyRefusals },
  }),
  route(agentManagement, 'revokeAgentAnchor', {
    method: 'POST',
    path: `${PATH}/anchors/{anchor}/revoke`,
    summary: 'Revoke an anchor: the agent loses that DID',
    description:
      'Final and idempotent. Keys and sessions stay: the agent logs in by its id or a key. Other ' +
      'agents cannot register the DID. An agent cannot revoke its own last active anchor. ' +
      'Allowed for the agent itself and with agents:manage.',
    ...selfOrManager,
    params: AnchorParams,
    message: (request) => ({
      ...one(request),
      value: request.params.anchor,
    }),
    replies: {
      anchor_revoked: reply(200, Anchor, ({ anchor }) => anchorJson(anchor)),
      unknown_agent: unknownAgent,
      unknown_anchor: problem(404, 'not-found', { detail: 'The agent has no such anchor.' }),
      may_not_manage: mayNotManage,
      owner_above_caller: ownerAbove,
      bound_token: boundToken,
      at_home_elsewhere: elsewhere,
      last_active_anchor: problem(409, 'conflict', {
        detail: "This is the agent's last active anchor. Add a key first.",
      }),
    },
  }),
]

function one(request: {
  readonly principal: Principal
  readonly clientAddress: string
  readonly params: { readonly agent_id: string }
}) {
  return { caller: callerOf(request), agentId: request.params.agent_id }
}
