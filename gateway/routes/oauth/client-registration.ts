/** Clients that register themselves. RFC 7591, RFC 7592; decisions.md 7.3 (register) and 17. */
import { z } from 'zod'
import {
  type MetadataRefused,
  type Registration,
  clientRegistration,
  type TokenRefused,
} from '../../../actors/oauth/client-registration/protocol.js'
import { choice, empty, json, oauthError, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const BODY_BYTES_MAX = 64 * 1024
const TOKEN_SECS_DEFAULT = 86_400
const TOKEN_SECS_MAX = 30 * 86_400
const TOKEN_USES_MAX = 1_000
const PATH = '/oauth/register/{client_id}'

/** Judged by the actor, in the words of RFC 7591; here for the documents. */
const told = (type: 'string' | 'boolean' | 'array' | 'object', description?: string) =>
  z
    .unknown()
    .optional()
    .meta({
      type,
      ...(type === 'array' ? { items: { type: 'string' } } : {}),
      ...(description === undefined ? {} : { description }),
    })

const members = {
  redirect_uris: told('array'),
  client_name: told('string'),
  token_endpoint_auth_method: told('string', 'Default client_secret_basic.'),
  token_endpoint_auth_signing_alg: told('string', 'ES256, EdDSA or Ed25519; not kept.'),
  grant_types: told('array', 'Default authorization_code alone.'),
  response_types: told('array'),
  scope: told('string', 'Separated by spaces. Default openid profile email.'),
  application_type: told('string', 'web or native.'),
  jwks: told('object'),
  jwks_uri: told('string', 'Instead of jwks.'),
  post_logout_redirect_uris: told('array'),
  allowed_origins: told('array', 'Web origins whose pages may call the OAuth endpoints.'),
  logo_uri: told('string'),
  client_uri: told('string'),
  policy_uri: told('string'),
  tos_uri: told('string'),
  contacts: told('array'),
  sector_identifier_uri: told('string'),
  subject_type: told('string', 'pairwise.'),
  id_token_signed_response_alg: told('string', 'ES256 (default) or EdDSA.'),
  dpop_bound_access_tokens: told('boolean'),
  require_pushed_authorization_requests: told('boolean'),
  authorization_details_types: told('array'),
  software_id: told('string'),
  software_version: told('string'),
  tenant: told('string', 'Slug or id; must be the tenant of the initial access token.'),
}
const Metadata = z.looseObject(members).meta({ id: 'ClientMetadata' })
const Replacement = z
  .looseObject({ client_id: told('string', 'As registered.'), ...members })
  .meta({ id: 'ClientReplacement' })

const Information = z
  .looseObject({
    client_id: z.string(),
    client_id_issued_at: z.int(),
    client_secret: z.string().optional().meta({ description: 'Shown once.' }),
    client_secret_expires_at: z.int().optional().meta({ description: '0: never.' }),
    registration_access_token: z.string(),
    registration_client_uri: z.url(),
  })
  .meta({ id: 'ClientInformation' })

const CreateToken = z
  .object({
    expires_in_secs: z.int().min(1).max(TOKEN_SECS_MAX).default(TOKEN_SECS_DEFAULT),
    max_uses: z.int().min(1).max(TOKEN_USES_MAX).default(1),
  })
  .meta({ id: 'CreateRegistrationToken' })

const RegistrationToken = z
  .object({
    id: z.uuid(),
    token: z.string().optional().meta({ description: 'Shown once.' }),
    expires_at: z.iso.datetime(),
    max_uses: z.int(),
  })
  .meta({ id: 'RegistrationToken' })

const describe = ({ description }: { description: string }) => ({ description })
const refused = choice<MetadataRefused, MetadataRefused['error']>(({ error }) => error, {
  invalid_redirect_uri: oauthError(400, 'invalid_redirect_uri', describe),
  invalid_client_metadata: oauthError(400, 'invalid_client_metadata', describe),
})
const token_refused = oauthError<TokenRefused>(401, 'invalid_token', ({ description }) => ({
  description,
  headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
}))

/** RFC 7591 section 3.2.1, RFC 7592 section 3. */
function information(
  { registration: told }: { readonly registration: Registration },
  { baseUrl }: { readonly baseUrl: string },
): z.input<typeof Information> {
  const { clientId, issuedAt, metadata, clientSecret, registrationAccessToken } = told
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
  // An initial or registration access token, which are not access tokens of ours.
  security: { scheme: 'anonymous' },
  errors: 'oauth',
  onceOnly: true,
} as const
const Client = z.object({ client_id: z.string().max(64) })

export const registrationRoutes: readonly Route[] = [
  route(clientRegistration, 'register', {
    ...shared,
    method: 'POST',
    path: '/oauth/register',
    operationId: 'registerClient',
    summary: 'Register an application',
    description:
      'RFC 7591. Needs an initial access token as bearer token unless the deployment says ' +
      'otherwise; the token fixes the tenant and what may be registered for. Grant and response ' +
      'types that there are not here are left out, as the answer says.',
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
  route(clientRegistration, 'read', {
    ...shared,
    method: 'GET',
    path: PATH,
    operationId: 'readRegistration',
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
  route(clientRegistration, 'replace', {
    ...shared,
    method: 'PUT',
    path: PATH,
    operationId: 'replaceRegistration',
    summary: 'Replace a registration',
    description: 'RFC 7592: what is left out returns to its default.',
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
  route(clientRegistration, 'remove', {
    ...shared,
    method: 'DELETE',
    path: PATH,
    operationId: 'deleteRegistration',
    summary: 'Delete a registration with its application',
    description: 'RFC 7592. Its tokens are refused from then on.',
    params: Client,
    message: ({ params, credentials, clientAddress }) => ({
      clientId: params.client_id,
      authorization: credentials.authorization,
      address: clientAddress,
    }),
    replies: { removed: empty(204), token_refused },
  }),
  route(clientRegistration, 'createToken', {
    method: 'POST',
    path: '/api/v1/oauth/registration-tokens',
    operationId: 'createRegistrationToken',
    summary: 'Make an initial access token',
    description:
      'Lets its holder register applications in this tenant, with at most the scopes of whoever ' +
      'made it. Shown once.',
    tags: ['Applications'],
    exposure: 'internal',
    security: { scheme: 'bearer', scopes: ['applications:manage'], direct: 'required' },
    idempotent: true,
    onceOnly: true,
    body: json(CreateToken),
    message: ({ body, principal, clientAddress, idempotency }) => ({
      principal,
      address: clientAddress,
      expiresInSecs: body.expires_in_secs,
      maxUses: body.max_uses,
      idempotency,
    }),
    replies: {
      created: reply(201, RegistrationToken, ({ id, token, expiresAt, maxUses }) => ({
        id,
        ...(token === null ? {} : { token }),
        expires_at: expiresAt.toISOString(),
        max_uses: maxUses,
      })),
      not_a_tenant_token: problem(403, 'policy-denied', {
        detail: 'Applications belong to an environment: use a token of that tenant.',
      }),
      ...idempotencyRefusals,
    },
  }),
]
