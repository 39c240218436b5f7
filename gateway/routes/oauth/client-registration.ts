/** Dynamic client registration (RFC 7591) and its management (RFC 7592). */
import { z } from 'zod'
import {
  type MetadataRefused,
  type Registration,
  clientRegistration,
  type TokenRefused,
} from '../../../actors/oauth/clients/dynamic/protocol.js'
import { choice, empty, json, oauthError, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { applicationManagers } from './clients.js'

const BODY_BYTES_MAX = 64 * 1024
const TOKEN_SECS_DEFAULT = 86_400
const TOKEN_SECS_MAX = 30 * 86_400
const TOKEN_USES_MAX = 1_000
const TOKEN_SCOPES_MAX = 100
const PATH = '/oauth/register/{client_id}'

/** A member for the documentation only: the actor validates it, with the errors of RFC 7591. */
const member = (type: 'string' | 'boolean' | 'array' | 'object', description?: string) =>
  z
    .unknown()
    .optional()
    .meta({
      type,
      ...(type === 'array' ? { items: { type: 'string' } } : {}),
      ...(description === undefined ? {} : { description }),
    })

const members = {
  redirect_uris: member('array'),
  client_name: member('string'),
  token_endpoint_auth_method: member('string', 'Default: client_secret_basic.'),
  token_endpoint_auth_signing_alg: member('string', 'ES256, EdDSA or Ed25519. Not stored.'),
  grant_types: member('array', 'Default: authorization_code.'),
  response_types: member('array'),
  scope: member('string', 'Separated by spaces. Default: openid profile email.'),
  application_type: member('string', 'web or native.'),
  jwks: member('object'),
  jwks_uri: member('string', 'Instead of jwks.'),
  post_logout_redirect_uris: member('array'),
  backchannel_logout_uri: member('string', 'HTTPS URL that gets logout tokens.'),
  backchannel_logout_session_required: member('boolean'),
  frontchannel_logout_uri: member('string', 'URL at the origin of a redirect URI.'),
  frontchannel_logout_session_required: member('boolean'),
  allowed_origins: member('array', 'Web origins whose pages may call the OAuth endpoints.'),
  logo_uri: member('string'),
  client_uri: member('string'),
  policy_uri: member('string'),
  tos_uri: member('string'),
  contacts: member('array'),
  sector_identifier_uri: member('string'),
  subject_type: member('string', 'pairwise.'),
  authorization_signed_response_alg: member('string', 'ES256, EdDSA or RS256 (default).'),
  userinfo_signed_response_alg: member('string', 'ES256, EdDSA or RS256. Default: JSON.'),
  introspection_signed_response_alg: member('string', 'ES256, EdDSA or RS256 (default).'),
  require_signed_request_object: member('boolean'),
  request_object_signing_alg: member(
    'string',
    'ES256 or EdDSA. Default: any algorithm of its keys.',
  ),
  id_token_signed_response_alg: member('string', 'ES256 (default), EdDSA or RS256.'),
  dpop_bound_access_tokens: member('boolean'),
  rotate_refresh_tokens: member('boolean', 'Default: true.'),
  require_pushed_authorization_requests: member('boolean'),
  authorization_details_types: member('array'),
  software_id: member('string'),
  software_version: member('string'),
  tenant: member('string', 'Slug or id; must be the tenant of the initial access token.'),
}
const Metadata = z.looseObject(members).meta({ id: 'ClientMetadata' })
const Replacement = z
  .looseObject({ client_id: member('string', 'As registered.'), ...members })
  .meta({ id: 'ClientReplacement' })

const Information = z
  .looseObject({
    client_id: z.string(),
    client_id_issued_at: z.int(),
    client_secret: z.string().optional().meta({ description: 'Returned once.' }),
    client_secret_expires_at: z.int().optional().meta({ description: '0: never.' }),
    registration_access_token: z.string(),
    registration_client_uri: z.url(),
  })
  .meta({ id: 'ClientInformation' })

const CreateToken = z
  .object({
    expires_in_secs: z.int().min(1).max(TOKEN_SECS_MAX).default(TOKEN_SECS_DEFAULT),
    max_uses: z.int().min(1).max(TOKEN_USES_MAX).default(1),
    scopes: z
      .array(z.string().min(1).max(128))
      .min(1)
      .max(TOKEN_SCOPES_MAX)
      .optional()
      .meta({
        description:
          'What its clients may have at most. Scopes that you lack are left out. Default: the scopes of users, ' +
          'of credentials and of the API resources of the tenant.',
      }),
  })
  .meta({ id: 'CreateRegistrationToken' })

const RegistrationToken = z
  .object({
    id: z.uuid(),
    token: z.string().optional().meta({ description: 'Returned once.' }),
    expires_at: z.iso.datetime(),
    max_uses: z.int(),
    scopes: z.array(z.string()).optional(),
  })
  .meta({ id: 'RegistrationToken' })

const describe = ({ description }: { description: string }) => ({ description })
const refused = choice<MetadataRefused, MetadataRefused['error']>(({ error }) => error, {
  invalid_redirect_uri: oauthError(400, 'invalid_redirect_uri', describe),
  invalid_client_metadata: oauthError(400, 'invalid_client_metadata', describe),
  share_exhausted: oauthError(503, 'share_exhausted', (outcome) => ({
    ...describe(outcome),
    headers: { 'retry-after': '1' },
  })),
})
// A challenge without a token before has no error code (RFC 6750 section 3.1).
const token_refused = oauthError<TokenRefused>(
  401,
  'invalid_token',
  ({ description, isMissing }) => ({
    description,
    logReason: isMissing ? 'token_missing' : 'token_invalid',
    headers: {
      'www-authenticate': isMissing
        ? 'Bearer realm="registration"'
        : 'Bearer error="invalid_token"',
    },
  }),
)

/** RFC 7591 section 3.2.1, RFC 7592 section 3. */
function information(
  { registration }: { readonly registration: Registration },
  { baseUrl }: { readonly baseUrl: string },
): z.input<typeof Information> {
  const { clientId, issuedAt, metadata, clientSecret, registrationAccessToken } = registration
  return {
    client_id: clientId,
    client_id_issued_at: Math.floor(issuedAt.getTime() / 1000),
    ...(clientSecret === null ? {} : { client_secret: clientSecret, client_secret_expires_at: 0 }),
    registration_access_token: registrationAccessToken,
    registration_client_uri: `${baseUrl}/oauth/register/${clientId}`,
    ...metadata,
  }
}
const found = reply(200, Information, information)

const shared = {
  tags: ['OAuth'],
  exposure: 'public',
  // Initial and registration access tokens are verified by the actor, not by the gateway.
  security: { scheme: 'anonymous' },
  errors: 'oauth',
  // Its tokens are in headers that the page itself sets, so any page may read the answer.
  cors: 'public',
  onceOnly: true,
} as const
const Client = z.object({ client_id: z.string().max(64) })

export const registrationRoutes: readonly Route[] = [
  route(clientRegistration, 'registerClient', {
    ...shared,
    method: 'POST',
    path: '/oauth/register',
    summary: 'Register an application',
    description:
      'RFC 7591. Needs an initial access token as bearer token unless the deployment is configured ' +
      'otherwise. The token determines the tenant and the scopes that can be registered. Unsupported ' +
      'grant and response types, and scopes that the client may not have, are left out of the ' +
      'registration, as the response shows.',
    capabilities: ['oauth.dynamic_client_registration'],
    throttle: [{ policy: 'registration', by: 'address' }],
    body: json(Metadata, { maxBytes: BODY_BYTES_MAX }),
    message: ({ body, credentials, host, clientAddress }) => ({
      metadata: body,
      authorization: credentials.authorization,
      host,
      address: clientAddress,
    }),
    replies: { registered: reply(201, Information, information), refused, token_refused },
  }),
  route(clientRegistration, 'readRegistration', {
    ...shared,
    method: 'GET',
    path: PATH,
    summary: 'Read a registration',
    description: 'RFC 7592, with the registration access token.',
    params: Client,
    message: ({ params, credentials, clientAddress }) => ({
      clientId: params.client_id,
      authorization: credentials.authorization,
      address: clientAddress,
    }),
    replies: { found, token_refused },
  }),
  route(clientRegistration, 'replaceRegistration', {
    ...shared,
    method: 'PUT',
    path: PATH,
    summary: 'Replace a registration',
    description: 'RFC 7592: absent members get their defaults.',
    params: Client,
    body: json(Replacement, { maxBytes: BODY_BYTES_MAX }),
    message: ({ params, body, credentials, clientAddress }) => ({
      clientId: params.client_id,
      metadata: body,
      authorization: credentials.authorization,
      address: clientAddress,
    }),
    replies: { found, refused, token_refused },
  }),
  route(clientRegistration, 'deleteRegistration', {
    ...shared,
    method: 'DELETE',
    path: PATH,
    summary: 'Delete a registration with its application',
    description: 'RFC 7592. The tokens of the application become invalid.',
    params: Client,
    message: ({ params, credentials, clientAddress }) => ({
      clientId: params.client_id,
      authorization: credentials.authorization,
      address: clientAddress,
    }),
    replies: { removed: empty(204), token_refused },
  }),
  route(clientRegistration, 'createRegistrationToken', {
    method: 'POST',
    path: '/api/v1/oauth/registration-tokens',
    summary: 'Create an initial access token',
    description:
      'Permits the registration of applications in this tenant, with the scopes in `scopes` as long as its creator ' +
      'has them. Returned once.',
    tags: ['Applications'],
    exposure: 'internal',
    security: applicationManagers,
    idempotent: true,
    onceOnly: true,
    body: json(CreateToken),
    message: ({ body, principal, clientAddress, idempotency }) => ({
      principal,
      address: clientAddress,
      expiresInSecs: body.expires_in_secs,
      maxUses: body.max_uses,
      scopes: body.scopes ?? null,
      idempotency,
    }),
    replies: {
      created: reply(201, RegistrationToken, ({ id, token, expiresAt, maxUses, scopes }) => ({
        id,
        ...(token === null ? {} : { token }),
        expires_at: expiresAt.toISOString(),
        max_uses: maxUses,
        ...(scopes === null ? {} : { scopes: [...scopes] }),
      })),
      no_scope_left: problem(400, 'bad-request', {
        error: 'invalid_scope',
        detail: 'All scopes are unknown, or you lack them.',
        errors: [{ pointer: '#/scopes', detail: 'All scopes are unknown, or you lack them.' }],
      }),
      ...idempotencyRefusals,
    },
  }),
]
