/** The token, introspection and revocation endpoints. */
import { z } from 'zod'
import {
  INTROSPECTION_SCOPE,
  introspectionBody,
  type Issued,
  type OAuthRefused,
  PROOF_ALGORITHMS,
  type ProofRefused,
  type SignedIntrospection,
  type TokenRequest,
  tokens,
  type Unauthenticated,
} from '../../../actors/oauth/tokens/protocol.js'
import { quoted } from '../../../runtime/kernel/text/json-text.js'
import type { PolicyName } from '../../../actors/operations/rate-limits/protocol.js'
import { DelegationIntent } from '../../../actors/domain/agents/delegation-intent.js'
import { GRANT_TYPES } from '../../../actors/domain/oauth/grant-types.js'
import { challengeHints, reasonOfToken, scopeChallenge } from '../../request/authenticate.js'
import {
  type AnyRouteRequest,
  bytes,
  choice,
  empty,
  type FormFields,
  formFields,
  oauthError,
  problem,
  type Route,
  reply,
  route,
  written,
} from '../../route.js'
import { AcceptHeader, prefers } from './discovery.js'

const INTROSPECTION_JWT = 'application/token-introspection+jwt'

export const ClientFields = {
  client_id: z.string().max(2048).optional().meta({
    description: 'The id of an application or agent, or the URL of a client metadata document.',
  }),
  client_secret: z.string().max(1024).optional(),
  client_assertion_type: z.string().max(255).optional(),
  client_assertion: z.string().max(16_384).optional(),
}

const TokenForm = z
  .object({
    grant_type: z.enum(GRANT_TYPES),
    scope: z.string().max(4096).optional(),
    audience: z.string().max(2048).optional(),
    resource: z.string().max(2048).optional().meta({ description: 'May repeat (RFC 8707).' }),
    authorization_details: z.string().max(8192).optional().meta({
      description: 'The granted details that this token is for (RFC 9396 section 6).',
    }),
    code: z.string().max(1024).optional(),
    redirect_uri: z.string().max(2048).optional(),
    code_verifier: z.string().max(128).optional(),
    refresh_token: z.string().max(1024).optional(),
    device_code: z.string().max(1024).optional(),
    auth_req_id: z.string().max(1024).optional(),
    'pre-authorized_code': z.string().max(1024).optional(),
    tx_code: z.string().max(64).optional().meta({
      description: 'The transaction code of a credential offer (OpenID4VCI section 6.1).',
    }),
    assertion: z.string().max(32_768).optional().meta({
      description:
        'jwt-bearer: a token of a trusted issuer, for a workload or a person (RFC 7523).',
    }),
    subject_token: z.string().max(16_384).optional(),
    subject_token_type: z.string().max(255).optional(),
    actor_token: z.string().max(16_384).optional(),
    actor_token_type: z.string().max(255).optional(),
    requested_token_type: z.string().max(255).optional(),
    may_act: z
      .string()
      .max(64)
      .optional()
      .meta({ description: 'Token exchange: the agent that may act next.' }),
    ...ClientFields,
  })
  .meta({ id: 'TokenRequest' })

const TokenResponse = z
  .object({
    access_token: z.string(),
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: z.int().min(1),
    scope: z.string(),
    refresh_token: z.string().optional(),
    id_token: z.string().optional(),
    authorization_details: z.array(z.record(z.string(), z.unknown())).optional(),
    issued_token_type: z.string().optional(),
  })
  .meta({ id: 'TokenResponse' })

const SecretResponse = z
  .object({
    access_token: z.string().meta({
      description:
        'The secret of a vault credential, the access token of its upstream, or an identity assertion (ID-JAG).',
    }),
    issued_token_type: z.string(),
    token_type: z.enum(['N_A', 'Bearer']),
    expires_in: z.int().min(1).optional(),
    scope: z.string().optional(),
  })
  .meta({ id: 'VaultTokenResponse' })

/** `issued_token_type` tells which of the two it is. */
const TokenAnswer = z.union([TokenResponse, SecretResponse])

const IntrospectionForm = z
  .object({
    token: z.string().max(16_384),
    token_type_hint: z.string().max(255).optional(),
    ...ClientFields,
  })
  .meta({ id: 'IntrospectionRequest' })

const RevocationForm = z
  .object({
    token: z.string().max(16_384),
    token_type_hint: z.string().max(255).optional(),
    ...ClientFields,
  })
  .meta({ id: 'RevocationRequest' })

const IntrospectionResponse = z
  .object({
    active: z.boolean(),
    scope: z.string().optional(),
    client_id: z.string().optional(),
    token_type: z.enum(['Bearer', 'DPoP', 'refresh_token']).optional(),
    exp: z.int().optional(),
    iat: z.int().optional(),
    nbf: z.int().optional(),
    sub: z.string().optional(),
    aud: z.union([z.string(), z.array(z.string())]).optional(),
    iss: z.string().optional(),
    jti: z.string().optional(),
    tenant_id: z.uuid().optional(),
    subject_type: z.enum(['human', 'agent', 'service']).optional(),
    organization_id: z.uuid().optional(),
    organization_bound: z.literal(true).optional(),
    grant_id: z.uuid().optional(),
    sid: z.string().optional(),
    amr: z.array(z.string()).optional(),
    auth_time: z.int().optional(),
    act: z.record(z.string(), z.unknown()).optional(),
    acr: z.string().optional(),
    aal: z.int().optional(),
    delegation_id: z.uuid().optional(),
    delegation: DelegationIntent.optional(),
    cnf: z.object({ jkt: z.string() }).optional(),
    may_act: z.object({ sub: z.string() }).optional(),
    authorization_details: z.array(z.record(z.string(), z.unknown())).optional(),
  })
  .meta({ id: 'IntrospectionResponse' })

/** The error is in the header and in the body (401), since clients read either. */
function proofHeaders({ error, dpopNonce }: Pick<ProofRefused, 'error' | 'dpopNonce'>) {
  return {
    'www-authenticate': `DPoP error="${error}", algs="${PROOF_ALGORITHMS.join(' ')}"`,
    ...(dpopNonce === undefined ? {} : { 'dpop-nonce': dpopNonce }),
  }
}

/** `Retry-Interval`: the current poll interval. */
const describePoll = ({ description, retryIntervalSecs }: OAuthRefused) => ({
  description,
  ...(retryIntervalSecs === undefined
    ? {}
    : { headers: { 'retry-interval': String(retryIntervalSecs) } }),
})
/** `Retry-After` (RFC 9110 section 10.2.3). */
const describeOutage = ({ description, retryAfterSecs }: OAuthRefused) => ({
  description,
  ...(retryAfterSecs === undefined ? {} : { headers: { 'retry-after': String(retryAfterSecs) } }),
})
const describe = ({ description }: { description: string }) => ({ description })
const describeProof = (refused: ProofRefused) => ({
  description: refused.description,
  headers: proofHeaders(refused),
})

export const proofRefused = choice<ProofRefused, ProofRefused['error']>(({ error }) => error, {
  invalid_dpop_proof: oauthError(401, 'invalid_dpop_proof', describeProof),
  use_dpop_nonce: oauthError(401, 'use_dpop_nonce', describeProof),
})

export const oauthRefused = choice<OAuthRefused, OAuthRefused['error']>(({ error }) => error, {
  invalid_request: oauthError(400, 'invalid_request', describe),
  invalid_grant: oauthError(400, 'invalid_grant', describe),
  unsupported_grant_type: oauthError(400, 'unsupported_grant_type', describe),
  invalid_scope: oauthError(400, 'invalid_scope', describe),
  invalid_target: oauthError(400, 'invalid_target', describe),
  invalid_authorization_details: oauthError(400, 'invalid_authorization_details', describe),
  invalid_client: oauthError(401, 'invalid_client', describe),
  authorization_pending: oauthError(400, 'authorization_pending', describePoll),
  slow_down: oauthError(400, 'slow_down', describePoll),
  access_denied: oauthError(400, 'access_denied', describe),
  insufficient_user_authentication: oauthError(400, 'insufficient_user_authentication', describe),
  expired_token: oauthError(400, 'expired_token', describe),
  unauthorized_client: oauthError(403, 'unauthorized_client', describe),
  consent_required: oauthError(403, 'consent_required', describe),
  policy_denied: oauthError(403, 'policy_denied', describe),
  rate_limited: problem(429, 'rate-limited', ({ description, retryAfterSecs, violated }) => ({
    detail: description,
    retryAfterSecs,
    ...(violated === undefined ? {} : { members: { 'violated-policies': violated } }),
  })),
  server_error: oauthError(502, 'server_error', describe),
  temporarily_unavailable: oauthError(503, 'temporarily_unavailable', describeOutage),
  insufficient_scope: oauthError(
    403,
    'insufficient_scope',
    ({ description, scopes = [] }: OAuthRefused, { baseUrl }) => ({
      description,
      headers: scopeChallenge(baseUrl, scopes),
    }),
  ),
})

const describeBearer = (refused: Unauthenticated, { baseUrl }: { baseUrl: string }) => ({
  description: refused.description,
  logReason: reasonOfToken(refused),
  headers: {
    'www-authenticate': `Bearer error="invalid_token", ${challengeHints(baseUrl, [INTROSPECTION_SCOPE])}`,
  },
})
const describeBearerProof = ({ error, description, dpopNonce }: Unauthenticated) => ({
  description,
  headers: proofHeaders({ error: error as ProofRefused['error'], dpopNonce }),
})

/** Refuses an access token as credential for introspection (RFC 7662 section 2.3, RFC 6750 section 3). */
const bearerRefused = choice<Unauthenticated, Unauthenticated['error']>(({ error }) => error, {
  unauthorized: oauthError(401, 'invalid_token', describeBearer),
  policy_denied: oauthError(403, 'access_denied', describeBearer),
  token_expired: oauthError(401, 'token_expired', describeBearer),
  token_revoked: oauthError(401, 'token_revoked', describeBearer),
  delegation_expired: oauthError(401, 'delegation_expired', describeBearer),
  invalid_dpop_proof: oauthError(401, 'invalid_dpop_proof', describeBearerProof),
  use_dpop_nonce: oauthError(401, 'use_dpop_nonce', describeBearerProof),
})

/** Serialises by hand for speed. Tokens contain only base64url characters and dots: no escapes. */
function tokenResponse(issued: Issued): string {
  const { accessToken, tokenType, expiresInSecs, scopes, refreshToken, idToken } = issued
  const { authorizationDetails, issuedTokenType } = issued
  let text =
    `{"access_token":"${accessToken}","token_type":"${tokenType}"` +
    `,"expires_in":${expiresInSecs},"scope":${quoted(scopes.join(' '))}`
  if (refreshToken !== null) text += `,"refresh_token":"${refreshToken}"`
  if (idToken !== null) text += `,"id_token":"${idToken}"`
  if (authorizationDetails !== null)
    text += `,"authorization_details":${JSON.stringify(authorizationDetails)}`
  if (issuedTokenType !== undefined) text += `,"issued_token_type":${quoted(issuedTokenType)}`
  return `${text}}`
}

/** Counts by address before client authentication, and by client after it. */
export const countedByClient = (policy: PolicyName) =>
  [
    { policy: 'default', by: 'address' },
    { policy, by: 'client' },
  ] as const

/** A request with client authentication, which the actor verifies. */
export const tokenRequest = ({
  body,
  credentials,
  clientAddress,
}: Pick<AnyRouteRequest, 'credentials' | 'clientAddress'> & {
  readonly body: FormFields
}): TokenRequest => ({ form: body, ...credentials, address: clientAddress })

export const oauthRoutes: readonly Route[] = [
  route(tokens, 'issueToken', {
    method: 'POST',
    path: '/oauth/token',
    summary: 'Issue an access token',
    description:
      'Clients authenticate with client_secret_basic, client_secret_post or private_key_jwt. An agent ' +
      'refreshes with its agent id as client_id. A DPoP header binds the token to its key.',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    errors: 'oauth',
    onceOnly: true,
    cors: 'application-origins',
    capabilities: [
      'oauth.client_credentials',
      'oauth.refresh_token',
      'oauth.token_exchange',
      'vault.export',
      'vault.managed_oauth',
    ],
    throttle: countedByClient('token'),
    body: formFields(TokenForm),
    message: tokenRequest,
    replies: {
      secret_issued: reply(200, TokenAnswer, (issued) => ({
        access_token: issued.accessToken,
        issued_token_type: issued.issuedTokenType,
        token_type: issued.tokenType,
        ...(issued.expiresInSecs === null ? {} : { expires_in: issued.expiresInSecs }),
        ...(issued.scope === null ? {} : { scope: issued.scope }),
      })),
      issued: written(200, TokenAnswer, tokenResponse),
      proof_refused: proofRefused,
      oauth_refused: oauthRefused,
    },
  }),
  route(tokens, 'introspectToken', {
    method: 'POST',
    path: '/oauth/introspect',
    summary: 'Introspect a token',
    description:
      'For confidential clients of the tenant, agents with private_key_jwt, and access tokens with ' +
      'the scope tokens:introspect. Tokens of other tenants are inactive. With ' +
      'Accept: application/token-introspection+jwt the response is a signed JWT (RFC 9701).',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    errors: 'oauth',
    headers: AcceptHeader,
    body: formFields(IntrospectionForm),
    message: (request) => ({
      ...tokenRequest(request),
      signed: prefers(request.headers.accept, INTROSPECTION_JWT),
    }),
    replies: {
      introspected: reply(200, IntrospectionResponse, ({ answer }) => introspectionBody(answer)),
      introspected_signed: bytes<SignedIntrospection>(
        200,
        INTROSPECTION_JWT,
        ({ jwt }) => ({ body: jwt }),
        z.string(),
      ),
      proof_refused: proofRefused,
      oauth_refused: oauthRefused,
      refused: bearerRefused,
    },
  }),
  route(tokens, 'revokeToken', {
    method: 'POST',
    path: '/oauth/revoke',
    summary: 'Revoke a token',
    description:
      'Revoking a refresh token revokes every token of its grant. Revoking an access token affects ' +
      'that token only. Unknown tokens get the same response (RFC 7009).',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    errors: 'oauth',
    cors: 'application-origins',
    throttle: countedByClient('token'),
    body: formFields(RevocationForm),
    message: tokenRequest,
    replies: {
      revoked: empty(200),
      oauth_refused: oauthRefused,
    },
  }),
]
