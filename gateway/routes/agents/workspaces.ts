/** Workspace bootstrap. */
import { z } from 'zod'
import { agents } from '../../../actors/agents/agents/protocol.js'
import { OWNERSHIP_DESCRIPTION } from '../../../actors/domain/signed-strings.js'
import { FRAMEWORKS, workspaces } from '../../../actors/agents/workspaces/protocol.js'
import { ChosenName } from '../../../actors/domain/entities/names.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import {
  Agent,
  agentJson,
  completion,
  completionRefusals,
  RegistrationStart,
  registrationOf,
  selectorOf,
  startRefusals,
  startReplies,
} from './agent-shapes.js'

const TAGS = ['Workspace bootstrap']

const Metadata = z
  .object({
    issuer: z.url(),
    control_plane_tenant_id: z.uuid(),
    tenant_id: z.uuid(),
    key_ownership_proof: z.object({
      suite: z.string(),
      fields: z.array(z.string()),
      separator: z.string(),
      signature_encoding: z.string(),
    }),
    key_algorithms_supported: z.array(z.string()),
    anchor_types_supported: z.array(z.string()),
    frameworks_supported: z.array(z.string()),
  })
  .meta({ id: 'WorkspaceBootstrapMetadata' })

const metadata = route(workspaces, 'readWorkspaceBootstrap', {
  method: 'GET',
  path: '/api/v1/agents/workspace/bootstrap',
  summary: 'Read what the key ownership proof must sign',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cache: 'public, max-age=300',
  capabilities: ['agents.workspace_bootstrap'],
  message: () => ({}),
  replies: {
    metadata: reply(200, Metadata, ({ issuer, controlPlaneTenantId, anchorTypes }) => ({
      issuer,
      control_plane_tenant_id: controlPlaneTenantId,
      tenant_id: controlPlaneTenantId,
      key_ownership_proof: { ...OWNERSHIP_DESCRIPTION, fields: [...OWNERSHIP_DESCRIPTION.fields] },
      key_algorithms_supported: ['ed25519', 'es256'],
      anchor_types_supported: [...anchorTypes],
      frameworks_supported: [...FRAMEWORKS],
    })),
  },
})

const start = route(agents, 'startAgentRegistration', {
  method: 'POST',
  path: '/api/v1/agents/workspace/bootstrap/pow',
  operationId: 'startWorkspaceBootstrap',
  summary: 'Start the bootstrap of a workspace',
  description:
    'Like the start of an agent registration, in the control-plane tenant. The ownership proof signs ' +
    'the issuer and the tenant UUID of the bootstrap metadata.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [{ policy: 'registration', by: 'address' }],
  body: json(RegistrationStart),
  message: ({ body, host, registeringNetwork }) => ({
    kind: 'workspace' as const,
    registration: registrationOf(body),
    tenant: selectorOf(body, host),
    network: registeringNetwork,
  }),
  documented: ['not-implemented'],
  replies: { ...startReplies, ...startRefusals },
})

const CompleteRequest = z
  .object({
    ...completion,
    organization_name: ChosenName,
    redirect_uris: z.array(z.string().max(2048)).max(20).default([]),
    issue_operator_invite: z.boolean().default(false),
    framework: z.string().max(40).default('generic'),
  })
  .meta({ id: 'WorkspaceBootstrapComplete' })

const Workspace = z
  .object({
    agent: Agent,
    organization_id: z.uuid(),
    organization_name: z.string(),
    organization_slug: z.string(),
    tenant_id: z.uuid(),
    tenant_name: z.string(),
    tenant_slug: z.string(),
    environment: z.enum(['sandbox', 'production']),
    application_id: z.uuid(),
    client_id: z.string(),
    client_secret: z.string().optional(),
    audience: z.string(),
    redirect_uris: z.array(z.string()),
    token_endpoint_auth_method: z.string(),
    fixture_end_user: z.object({
      id: z.uuid(),
      email: z.string(),
      password: z.string(),
      status: z.string(),
      created_at: z.iso.datetime(),
    }),
    control_plane_access_token: z.string(),
    control_plane_expires_in: z.int(),
    tenant_access_token: z.string(),
    tenant_expires_in: z.int(),
    start_snippet: z.string(),
    env_block: z.string(),
    operator_invite: z.object({ url: z.url(), expires_at: z.iso.datetime() }).optional(),
    issuer: z.url(),
    discovery_url: z.url(),
  })
  .meta({ id: 'Workspace' })

const complete = route(workspaces, 'completeWorkspaceBootstrap', {
  method: 'POST',
  path: '/api/v1/agents/workspace/bootstrap/pow/complete',
  summary: 'Complete the bootstrap of a workspace',
  description:
    'Creates an agent, organization, sandbox tenant, OAuth application and fixture user in one ' +
    'step. The response contains their credentials, which are shown only once.',
  tags: TAGS,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  onceOnly: true,
  body: json(CompleteRequest),
  message: ({ body, registeringNetwork }) => ({
    challengeId: body.challenge_id,
    nonce: body.nonce,
    challengeToken: body.challenge_token,
    network: registeringNetwork,
    organizationName: body.organization_name,
    redirectUris: body.redirect_uris,
    issueOperatorInvite: body.issue_operator_invite,
    framework: body.framework,
  }),
  documented: ['not-implemented'],
  replies: {
    provisioned: reply(201, Workspace, (workspace) => ({
      agent: agentJson(workspace.agent),
      organization_id: workspace.organization.id,
      organization_name: workspace.organization.name,
      organization_slug: workspace.organization.slug,
      tenant_id: workspace.tenant.id,
      tenant_name: workspace.tenant.name,
      tenant_slug: workspace.tenant.slug,
      environment: workspace.tenant.environment,
      application_id: workspace.application.id,
      client_id: workspace.application.clientId,
      ...(workspace.application.clientSecret === null
        ? {}
        : { client_secret: workspace.application.clientSecret }),
      audience: workspace.application.audience,
      redirect_uris: [...workspace.application.redirectUris],
      token_endpoint_auth_method: workspace.application.tokenEndpointAuthMethod,
      fixture_end_user: {
        id: workspace.fixtureUser.id,
        email: workspace.fixtureUser.email,
        password: workspace.fixtureUser.password,
        status: workspace.fixtureUser.status,
        created_at: workspace.fixtureUser.createdAt.toISOString(),
      },
      control_plane_access_token: workspace.controlPlaneAccessToken,
      control_plane_expires_in: workspace.controlPlaneExpiresInSeconds,
      tenant_access_token: workspace.tenantAccessToken,
      tenant_expires_in: workspace.tenantExpiresInSeconds,
      start_snippet: workspace.startSnippet,
      env_block: workspace.envBlock,
      ...(workspace.operatorInvite === null
        ? {}
        : {
            operator_invite: {
              url: workspace.operatorInvite.url,
              expires_at: workspace.operatorInvite.expiresAt.toISOString(),
            },
          }),
      issuer: workspace.issuer,
      discovery_url: workspace.discoveryUrl,
    })),
    invalid_redirect_uri: problem(400, 'bad-request', ({ index, detail }) => ({
      detail: `A redirect URI ${detail}.`,
      errors: [{ pointer: `#/redirect_uris/${index}`, detail }],
    })),
    busy: problem(503, 'service-unavailable', {
      detail: 'The password workers are busy. The challenge is not spent: send the request again.',
      retryAfterSecs: 2,
    }),
    ...completionRefusals,
  },
})

export const workspaceRoutes: readonly Route[] = [metadata, start, complete]
