/** The documents that agents publish as clients of other services, and the profile behind them. */
import { z } from 'zod'
import {
  type AgentDocumentName,
  agentDocuments,
  type SignatureDirectory,
} from '../../../actors/agents/agents/documents/protocol.js'
import { strongTag } from '../../response/shared-body.js'
import { callerOf } from '../../request/caller.js'
import { bytes, json, problem, type Route, reply, route } from '../../route.js'
import { invalidMember } from '../operations/invalid-member.js'

const MAX_AGE_SECS = 60
/** How long a removed key still verifies. */
const DIRECTORY_SECS = 300
const TAGS = ['Agents']

const AgentParams = z.object({ agent_id: z.string().max(64) })
const unknownAgent = problem(404, 'not-found', { detail: 'There is no such agent.' })

const Skill = z
  .object({
    id: z.string().min(1).max(120),
    name: z.string().min(1).max(120),
    description: z.string().max(1000),
    tags: z.array(z.string().min(1).max(60)).max(20).default([]),
  })
  .meta({ id: 'AgentSkill', description: 'A skill of an A2A agent card.' })

const AgentProfile = z
  .object({
    agent_id: z.uuid(),
    client_id: z.string().meta({ description: 'The URL of the metadata document of the agent.' }),
    redirect_uris: z.array(z.string()),
    client_uri: z.string().nullable(),
    skills: z.array(Skill),
  })
  .meta({ id: 'AgentProfile' })

const ChangeAgentProfile = z
  .object({
    redirect_uris: z.array(z.string().max(2048)).max(50).nullable().optional().meta({
      description: 'Where the agent receives authorization codes of other services.',
    }),
    client_uri: z
      .string()
      .max(2048)
      .nullable()
      .optional()
      .meta({ description: 'A page about the agent. HTTPS.' }),
    skills: z.array(Skill).max(50).nullable().optional(),
  })
  .meta({
    id: 'ChangeAgentProfile',
    description: 'Absent members stay unchanged. null removes a member.',
  })

function document(
  name: AgentDocumentName,
  operationId: string,
  summary: string,
  description: string,
): Route {
  return route(agentDocuments, 'agentDocument', {
    method: 'GET',
    path: `/agents/{agent_id}/${name}.json`,
    operationId,
    summary,
    description,
    tags: TAGS,
    exposure: 'public',
    security: { scheme: 'anonymous' },
    cors: 'public',
    ...(name === 'client' ? { capabilities: ['agents.client_metadata'] } : {}),
    params: AgentParams,
    message: ({ params }) => ({ agentId: params.agent_id, name }),
    replies: {
      published: bytes<{ body: Uint8Array }>(
        200,
        'application/json',
        ({ body }) => ({ body, etag: strongTag(body), maxAgeSecs: MAX_AGE_SECS }),
        z.record(z.string(), z.unknown()),
      ),
      unknown_agent: unknownAgent,
    },
  })
}

export const agentDocumentRoutes: readonly Route[] = [
  document(
    'client',
    'getAgentClientMetadata',
    'Client metadata document of an agent',
    'The URL of this document is the client_id of the agent at every authorization server that ' +
      'supports Client ID Metadata Documents. The agent authenticates there with private_key_jwt and ' +
      'the key that it registered here. Suspended and deleted agents have no documents.',
  ),
  document(
    'jwks',
    'getAgentKeySet',
    'Active public keys of an agent',
    'A JWK Set (RFC 7517). Deprecated and revoked keys are not listed. The key with which the service signs ' +
      'requests of the agent (http_signature) is listed from its first signature on.',
  ),
  document(
    'agent-card',
    'getAgentCard',
    'A2A card of an agent',
    'What the agent publishes about itself for other agents (Agent2Agent protocol).',
  ),
  route(agentDocuments, 'signatureDirectory', {
    method: 'GET',
    path: '/.well-known/http-message-signatures-directory',
    summary: 'Keys with which agents sign requests',
    description:
      'A JWK Set with the keys of the agents that signed first most recently, up to 20, or of one agent. Each ' +
      'key signs the answer (RFC 9421, tag http-message-signatures-directory), ' +
      'once a minute. The key set of an agent, which its signatures name, has its key too.',
    tags: TAGS,
    exposure: 'public',
    security: { scheme: 'anonymous' },
    cors: 'public',
    capabilities: ['vault.http_signature'],
    query: z.object({ agent_id: z.string().max(64).optional() }),
    message: ({ query }) => ({ agentId: query.agent_id ?? null }),
    replies: {
      directory: bytes<SignatureDirectory>(
        200,
        'application/http-message-signatures-directory+json',
        ({ body, headers }) => ({ body, headers, maxAgeSecs: DIRECTORY_SECS }),
        z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
      ),
      unknown_agent: unknownAgent,
    },
  }),
  route(agentDocuments, 'changeAgentProfile', {
    method: 'PATCH',
    path: '/api/v1/agents/me/profile',
    summary: 'Change what the documents of the calling agent say',
    description:
      'For the agent itself, with a direct token. The client metadata document has at most 5120 bytes.',
    tags: TAGS,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      subjects: ['agent'],
      direct: 'required',
    },
    body: json(ChangeAgentProfile),
    message: (request) => ({ caller: callerOf(request), change: request.body }),
    replies: {
      found: reply(200, AgentProfile, ({ agentId, clientId, profile }) => ({
        agent_id: agentId,
        client_id: clientId,
        redirect_uris: [...(profile.redirect_uris ?? [])],
        client_uri: profile.client_uri ?? null,
        skills: (profile.skills ?? []).map((skill) => ({ ...skill, tags: [...skill.tags] })),
      })),
      invalid: invalidMember,
      unknown_agent: unknownAgent,
    },
  }),
]
