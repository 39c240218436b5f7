/** Agents, looked after. decisions.md 17 and 21. */
import { z } from 'zod'
import { roster } from '../../../actors/agents/management/protocol.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
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

const readers = { scheme: 'bearer', scopes: ['agents:read', 'agents:manage'] } as const
const managers = { scheme: 'bearer', scopes: ['agents:manage'] } as const
/** The agent itself or a holder of agents:manage: which of them it is, the actor knows. */
const anybody = { scheme: 'bearer' } as const

const unknownAgent = problem(404, 'not-found', { detail: 'There is no such agent.' })
const found = reply(200, Agent, ({ agent }: { agent: Parameters<typeof agentJson>[0] }) =>
  agentJson(agent),
)
const elsewhere = problem(403, 'policy-denied', {
  detail: 'The agent is at home in another tenant, which decides this. It can be suspended here.',
})
const mayNotManage = problem(403, 'insufficient-scope', (_outcome, { baseUrl }) => ({
  detail: 'Keys and anchors are changed by the agent itself or with the scope agents:manage.',
  headers: scopeChallenge(baseUrl, ['agents:manage']),
}))
const boundToken = problem(403, 'forbidden', {
  detail: 'Keys and anchors are not changed with a token that is bound to an organization.',
})
const keyRefusals = {
  unknown_agent: unknownAgent,
  unknown_key: problem(404, 'not-found', { detail: 'The agent has no such key.' }),
  may_not_manage: mayNotManage,
  bound_token: boundToken,
  at_home_elsewhere: elsewhere,
  key_revoked: problem(409, 'conflict', { detail: 'The key is revoked, which is final.' }),
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
          'Made with the new key over the ownership string: anchor_type did_key, tenant the home ' +
          'of the agent.',
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
      description: 'Replaces what the agent may have at home; never more than the caller',
    }),
  })
  .meta({ id: 'AgentChange' })

export const rosterRoutes: readonly Route[] = [
  route(roster, 'list', {
    method: 'GET',
    path: '/api/v1/agents',
    operationId: 'listAgents',
    summary: 'List the agents of the tenant, newest first',
    description: 'Those at home in it, and members of its organization that are at home elsewhere.',
    tags: TAGS,
    exposure: 'internal',
    security: readers,
    query: PageQuery,
    message: (request) => ({
      caller: callerOf(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: reply(
        200,
        z.array(Agent),
        ({ agents }) => agents.map(agentJson),
        ({ next }, context) => nextLink(next, context),
      ),
    },
  }),
  route(roster, 'read', {
    method: 'GET',
    path: PATH,
    operationId: 'readAgent',
    summary: 'Read an agent',
    tags: TAGS,
    exposure: 'internal',
    security: readers,
    params: AgentParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
    }),
    replies: { found, unknown_agent: unknownAgent },
  }),
  route(roster, 'update', {
    method: 'PATCH',
    path: PATH,
    operationId: 'updateAgent',
    summary: 'Change what an agent may have',
    description: 'Sessions of an agent that loses a scope end: it logs in again with what is left.',
    tags: TAGS,
    exposure: 'internal',
    security: managers,
    params: AgentParams,
    body: json(AgentChange),
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      scopes: request.body.scopes,
    }),
    replies: {
      found,
      unknown_agent: unknownAgent,
      at_home_elsewhere: elsewhere,
      unknown_scopes: problem(400, 'bad-request', ({ scopes }) => ({
        error: 'invalid_scope',
        detail: `Not scopes of an agent of this tenant: ${scopes.join(' ')}.`,
        errors: [{ pointer: '#/scopes', detail: 'holds unknown scopes' }],
      })),
      beyond_caller: beyondCaller('An agent cannot be given scopes that the caller does not hold'),
    },
  }),
  route(roster, 'remove', {
    method: 'DELETE',
    path: PATH,
    operationId: 'deleteAgent',
    summary: 'Delete an agent with its keys; its sessions and tokens end at once',
    tags: TAGS,
    exposure: 'internal',
    security: managers,
    params: AgentParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
    }),
    replies: {
      removed: empty(204),
      unknown_agent: unknownAgent,
      at_home_elsewhere: elsewhere,
    },
  }),
  route(roster, 'suspend', {
    method: 'POST',
    path: `${PATH}/suspend`,
    operationId: 'suspendAgent',
    summary: 'Suspend an agent; its sessions and tokens end at once',
    description:
      'An agent at home in the tenant is suspended everywhere, a member from elsewhere in this ' +
      'tenant. Repeating it changes nothing.',
    tags: TAGS,
    exposure: 'internal',
    security: managers,
    params: AgentParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
    }),
    replies: { found, unknown_agent: unknownAgent },
  }),
  route(roster, 'activate', {
    method: 'POST',
    path: `${PATH}/activate`,
    operationId: 'activateAgent',
    summary: 'Lift a suspension',
    description: 'Sessions that it ended stay ended. Repeating it changes nothing.',
    tags: TAGS,
    exposure: 'internal',
    security: managers,
    params: AgentParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
    }),
    replies: {
      found,
      unknown_agent: unknownAgent,
      suspended_at_home: problem(409, 'conflict', {
        detail: 'The agent is suspended by its home tenant.',
      }),
    },
  }),
  route(roster, 'addKey', {
    method: 'POST',
    path: `${PATH}/keys`,
    operationId: 'addAgentKey',
    summary: 'Add a key to an agent',
    description:
      'For the agent itself, with any direct token of its own, or with agents:manage and every scope ' +
      'that the agent was given besides those that every agent has.',
    tags: TAGS,
    exposure: 'internal',
    security: anybody,
    idempotent: true,
    params: AgentParams,
    body: json(NewKey),
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
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
      bound_token: boundToken,
      at_home_elsewhere: elsewhere,
      invalid_registration: startRefusals.invalid_registration,
      invalid_ownership_proof: startRefusals.invalid_ownership_proof,
      fingerprint_known: startRefusals.fingerprint_known,
      too_many_keys: problem(409, 'conflict', ({ most }) => ({
        detail: `The agent has ${most} keys that are not revoked, which is the most it may have.`,
      })),
      beyond_caller: beyondCaller('The agent was given scopes that the caller does not hold'),
      ...idempotencyRefusals,
    },
  }),
  route(roster, 'deprecateKey', {
    method: 'POST',
    path: `${PATH}/keys/{key_id}/deprecate`,
    operationId: 'deprecateAgentKey',
    summary: 'Retire a key: no new logins with it',
    description:
      'A challenge issued before may still be verified. Repeating it changes nothing. For the agent ' +
      'itself or with agents:manage.',
    tags: TAGS,
    exposure: 'internal',
    security: anybody,
    params: KeyParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      keyId: request.params.key_id,
    }),
    replies: { changed, ...keyRefusals },
  }),
  route(roster, 'revokeKey', {
    method: 'POST',
    path: `${PATH}/keys/{key_id}/revoke`,
    operationId: 'revokeAgentKey',
    summary: 'Revoke a key: what logins with it led to ends at once',
    description:
      'Final; repeating it changes nothing. An agent cannot revoke its own last active key. For the ' +
      'agent itself or with agents:manage.',
    tags: TAGS,
    exposure: 'internal',
    security: anybody,
    params: KeyParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      keyId: request.params.key_id,
    }),
    replies: {
      changed,
      ...keyRefusals,
      last_active_key: problem(409, 'conflict', {
        detail: "This is the agent's last active key. Add another one first.",
      }),
    },
  }),
  route(roster, 'revokeAnchor', {
    method: 'POST',
    path: `${PATH}/anchors/{anchor}/revoke`,
    operationId: 'revokeAgentAnchor',
    summary: 'Revoke an anchor: the agent is no longer known by that DID',
    description:
      'Final; repeating it changes nothing. Keys and sessions stay: the agent logs in by its id or by a ' +
      'key. The DID is not free for others. An agent cannot revoke its own last active anchor. For ' +
      'the agent itself or with agents:manage.',
    tags: TAGS,
    exposure: 'internal',
    security: anybody,
    params: AnchorParams,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      value: request.params.anchor,
    }),
    replies: {
      anchor_revoked: reply(200, Anchor, ({ anchor }) => anchorJson(anchor)),
      unknown_agent: unknownAgent,
      unknown_anchor: problem(404, 'not-found', { detail: 'The agent has no such anchor.' }),
      may_not_manage: mayNotManage,
      bound_token: boundToken,
      at_home_elsewhere: elsewhere,
      last_active_anchor: problem(409, 'conflict', {
        detail: "This is the agent's last active anchor, by which it is known. Add a key first.",
      }),
    },
  }),
]
