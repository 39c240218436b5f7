/** The applications (OAuth clients) of a tenant. */
import { z } from 'zod'
import {
  type ApplicationDraft,
  type ApplicationInvalid,
  applications,
  REQUEST_OBJECT_ALGORITHMS,
} from '../../../actors/oauth/clients/registered/protocol.js'
import { SIGNING_ALGORITHMS } from '../../../actors/oauth/signing-keys/protocol.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { camelMembers } from '../../../actors/domain/entities/entity.js'
import { ChangedName, ChosenName } from '../../../actors/domain/entities/names.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { choice, empty, json, problem, type Route, reply, route } from '../../route.js'

const LIST_MAX = 50
const uri = z.string().max(2048)
const authMethod = z.enum([
  'none',
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'spiffe_jwt',
])
const jwks = z.object({ keys: z.array(z.record(z.string(), z.unknown())) })
const algorithm = z.enum(SIGNING_ALGORITHMS)
const objectAlgorithm = z.enum(REQUEST_OBJECT_ALGORITHMS)

const ApplicationRecord = z
  .object({
    id: z.uuid(),
    client_id: z.string(),
    client_secret: z.string().optional().meta({ description: 'Returned once, at creation.' }),
    tenant_id: z.uuid(),
    name: z.string(),
    status: z.enum(['active', 'disabled']),
    client_type: z.enum(['public', 'confidential']),
    token_endpoint_auth_method: authMethod,
    audience: z.string(),
    redirect_uris: z.array(z.string()),
    post_logout_redirect_uris: z.array(z.string()),
    backchannel_logout_uri: z.string().optional(),
    backchannel_logout_session_required: z.boolean(),
    frontchannel_logout_uri: z.string().optional(),
    frontchannel_logout_session_required: z.boolean(),
    allowed_origins: z.array(z.string()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    scopes: z.array(z.string()),
    default_scopes: z.array(z.string()).optional(),
    jwks: jwks.optional(),
    jwks_uri: z.string().optional(),
    dpop_bound_access_tokens: z.boolean(),
    rotate_refresh_tokens: z.boolean(),
    require_pushed_authorization_requests: z.boolean(),
    id_token_signed_response_alg: algorithm,
    authorization_signed_response_alg: algorithm.optional(),
    userinfo_signed_response_alg: algorithm.optional(),
    introspection_signed_response_alg: algorithm.optional(),
    require_signed_request_object: z.boolean(),
    request_object_signing_alg: objectAlgorithm.optional(),
    logo_uri: z.string().optional(),
    require_pkce: z.boolean(),
    loopback_any_port: z.boolean(),
    authorization_details_types: z.array(z.string()),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Application' })
const record = presenter(ApplicationRecord)

const CreateApplication = z
  .object({
    name: ChosenName,
    redirect_uris: z.array(uri).max(LIST_MAX).default([]),
    client_type: z.enum(['public', 'confidential']).optional(),
    token_endpoint_auth_method: authMethod.optional(),
    audience: uri.optional().meta({
      description:
        'The `aud` of its tokens: an absolute URI without fragment, of no other application of the deployment. The ' +
        'host of an https URL is a verified domain of the tenant or below one, a loopback host, or in a sandbox a ' +
        'name below .test, .example or .localhost. Default: `urn:svc:application:<id>`.',
    }),
    post_logout_redirect_uris: z.array(uri).max(LIST_MAX).optional(),
    backchannel_logout_uri: uri.optional().meta({
      description:
        'HTTPS URL that gets a logout token when a session ends (OpenID Connect Back-Channel Logout 1.0).',
    }),
    backchannel_logout_session_required: z
      .boolean()
      .optional()
      .meta({ description: 'Logout tokens must have `sid`. They always have it.' }),
    frontchannel_logout_uri: uri.optional().meta({
      description:
        'URL at the origin of a redirect URI, which a hidden frame loads when the user signs out (OpenID Connect ' +
        'Front-Channel Logout 1.0).',
    }),
    frontchannel_logout_session_required: z
      .boolean()
      .optional()
      .meta({ description: 'The URL must get `iss` and `sid`. It always does.' }),
    allowed_origins: z.array(uri).max(LIST_MAX).optional(),
    grant_types: z.array(z.string().max(128)).max(LIST_MAX).optional(),
    response_types: z.array(z.string().max(128)).max(LIST_MAX).optional(),
    scopes: z.array(z.string().max(128)).max(LIST_MAX).optional(),
    default_scopes: z
      .array(z.string().max(128))
      .max(LIST_MAX)
      .optional()
      .meta({
        description:
          'The scopes of `client_credentials` without `scope`, all from `scopes`. Default: all scopes ' +
          'except `…:manage`, `vault:…` and user scopes (openid, profile, email, phone, address, offline_access).',
      }),
    jwks: jwks.optional(),
    jwks_uri: uri.optional().meta({ description: 'Instead of jwks.' }),
    dpop_bound_access_tokens: z.boolean().optional(),
    rotate_refresh_tokens: z
      .boolean()
      .optional()
      .meta({
        description:
          'Default true. `false` only for a confidential application with `dpop_bound_access_tokens`: a refresh returns ' +
          'the same refresh token.',
      }),
    require_pushed_authorization_requests: z.boolean().optional(),
    id_token_signed_response_alg: algorithm.optional(),
    authorization_signed_response_alg: algorithm.optional().meta({
      description:
        'The signature of authorization responses as a JWT (response_mode jwt). Default: RS256.',
    }),
    userinfo_signed_response_alg: algorithm
      .optional()
      .meta({ description: 'Userinfo is a JWT with this signature. Default: JSON.' }),
    introspection_signed_response_alg: algorithm.optional().meta({
      description: 'The signature of introspection responses as a JWT (RFC 9701). Default: RS256.',
    }),
    require_signed_request_object: z.boolean().optional().meta({
      description:
        'Takes only authorization requests that are pushed as signed request objects (RFC 9101).',
    }),
    request_object_signing_alg: objectAlgorithm.optional().meta({
      description: 'Default: any algorithm of its keys.',
    }),
    logo_uri: uri.optional(),
    require_pkce: z.boolean().optional(),
    loopback_any_port: z.boolean().optional().meta({
      description:
        'The port of http redirect URIs of localhost, 127.0.0.1 and [::1] is free (RFC 8252 section 7.3).',
    }),
    authorization_details_types: z.array(z.string().min(1).max(128)).max(LIST_MAX).optional(),
  })
  .meta({ id: 'CreateApplication' })

export const ReplaceApplication = CreateApplication.extend({
  name: ChangedName,
  status: z.enum(['active', 'disabled']).optional(),
}).meta({ id: 'ReplaceApplication' })

const RotateSecret = z
  .object({
    overlap_secs: z
      .int()
      .min(0)
      .max(86_400)
      .default(0)
      .meta({ description: 'How long the previous secrets stay valid.' }),
  })
  .meta({ id: 'RotateSecret' })

const RotatedSecret = z
  .object({
    client_id: z.string(),
    client_secret: z.string().meta({ description: 'Returned once.' }),
    rotated_at: z.iso.datetime(),
  })
  .meta({ id: 'RotatedSecret' })

const ApplicationPath = z.object({ application_id: z.string().max(64) })

const tags = ['Applications'] as const
/** Reads the applications of a tenant, and what belongs to them. */
export const applicationReaders = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['applications:read', 'applications:manage'],
} as const
/** Changes them. */
export const applicationManagers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['applications:manage'],
  direct: 'required',
} as const

const invalid = choice(({ error }: ApplicationInvalid) => error, {
  bad_request: problem(400, 'bad-request', invalidDetails),
  invalid_redirect_uri: problem(400, 'bad-request', invalidDetails),
  invalid_scope: problem(400, 'bad-request', invalidDetails),
})
const beyondCaller = problem(
  403,
  'insufficient-scope',
  ({ scopes }: { scopes: readonly string[] }, { baseUrl }) => ({
    detail: `You lack scopes of the application: ${scopes.join(' ')}.`,
    headers: scopeChallenge(baseUrl, scopes),
  }),
)
const audienceTaken = problem(409, 'conflict', {
  detail:
    'The audience belongs to another application, to an API resource of another tenant, or to this service.',
})
const domainNotVerified = problem(
  422,
  'unprocessable-content',
  ({ host }: { readonly host: string }) => ({
    error: 'domain_not_verified',
    detail: `${host} is not a verified domain of this tenant: add and verify the domain first.`,
    errors: [
      { pointer: '#/audience', detail: 'Its host is not a verified domain of this tenant.' },
    ],
  }),
)
const unknown = problem(404, 'not-found', { detail: 'The application does not exist.' })

export const applicationRoutes: readonly Route[] = [
  route(applications, 'listApplications', {
    method: 'GET',
    path: '/api/v1/applications',
    summary: 'List the applications of the tenant, newest first',
    tags,
    exposure: 'public',
    security: applicationReaders,
    query: PageQuery,
    message: ({ query, principal }) => ({ principal, ...readPage(query) }),
    replies: {
      listed: pageReply(ApplicationRecord, (listed) => listed.applications.map(record)),
    },
  }),
  route(applications, 'createApplication', {
    method: 'POST',
    path: '/api/v1/applications',
    summary: 'Create an application',
    description:
      'Needs a direct agent token of the tenant, or the token of an administrator in the console. The ' +
      'client_secret is returned once.',
    tags,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'operator',
      scopes: ['applications:manage'],
      subjects: ['agent'],
      console: 'accepted',
      direct: 'required',
    },
    idempotent: true,
    onceOnly: true,
    body: json(CreateApplication),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      draft: draftOf(request.body),
    }),
    replies: {
      created: reply(
        201,
        ApplicationRecord,
        ({ application, clientSecret }) => ({
          ...record(application),
          ...(clientSecret === null ? {} : { client_secret: clientSecret }),
        }),
        ({ application }) => ({ location: `/api/v1/applications/${application.id}` }),
      ),
      invalid,
      forbidden: beyondCaller,
      audience_taken: audienceTaken,
      domain_not_verified: domainNotVerified,
      ...idempotencyRefusals,
    },
  }),
  route(applications, 'getApplication', {
    method: 'GET',
    path: '/api/v1/applications/{application_id}',
    summary: 'Read an application',
    tags,
    exposure: 'public',
    security: applicationReaders,
    params: ApplicationPath,
    message: ({ params, principal }) => ({
      principal,
      applicationId: params.application_id,
    }),
    replies: {
      found: reply(200, ApplicationRecord, ({ application }) => record(application)),
      unknown,
    },
  }),
  route(applications, 'replaceApplication', {
    method: 'PUT',
    path: '/api/v1/applications/{application_id}',
    summary: 'Replace an application',
    description:
      'A full replacement: absent members get their defaults. The response contains a client_secret ' +
      'if the application now needs one and had none before.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    onceOnly: true,
    params: ApplicationPath,
    body: json(ReplaceApplication),
    message: (request) => ({
      caller: callerOf(request),
      applicationId: request.params.application_id,
      draft: draftOf(request.body),
      status: request.body.status,
    }),
    replies: {
      replaced: reply(200, ApplicationRecord, ({ application, clientSecret }) => ({
        ...record(application),
        ...(clientSecret === null ? {} : { client_secret: clientSecret }),
      })),
      invalid,
      forbidden: beyondCaller,
      audience_taken: audienceTaken,
      domain_not_verified: domainNotVerified,
      unknown,
    },
  }),
  route(applications, 'deleteApplication', {
    method: 'DELETE',
    path: '/api/v1/applications/{application_id}',
    summary: 'Delete an application',
    description: 'The tokens of the application become invalid.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    params: ApplicationPath,
    message: (request) => ({
      caller: callerOf(request),
      applicationId: request.params.application_id,
    }),
    replies: { removed: empty(204), unknown },
  }),
  route(applications, 'rotateApplicationSecret', {
    method: 'POST',
    path: '/api/v1/applications/{application_id}/rotate-secret',
    summary: 'Rotate the client secret of an application',
    description:
      'The previous secrets expire immediately, or after overlap_secs, so that instances of the ' +
      'application can be updated one by one.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    onceOnly: true,
    params: ApplicationPath,
    body: json(RotateSecret, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      applicationId: request.params.application_id,
      overlapSecs: request.body.overlap_secs,
    }),
    replies: {
      rotated: reply(200, RotatedSecret, ({ clientId, clientSecret, rotatedAt }) => ({
        client_id: clientId,
        client_secret: clientSecret,
        rotated_at: rotatedAt.toISOString(),
      })),
      no_secret: problem(409, 'conflict', {
        detail: 'This application authenticates without a secret.',
      }),
      forbidden: beyondCaller,
      unknown,
    },
  }),
]

/** The draft of an application, from a body. */
export const draftOf = (body: z.output<typeof CreateApplication>): ApplicationDraft =>
  camelMembers(body)

function invalidDetails({
  error,
  pointer,
  detail,
}: {
  error: ApplicationInvalid['error']
  pointer: string
  detail: string
}) {
  return { error, detail, errors: [{ pointer: `#${pointer}`, detail }] }
}
