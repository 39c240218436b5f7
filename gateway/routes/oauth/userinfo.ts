/** The PAR and UserInfo endpoints. */
import { z } from 'zod'
import {
  authorization,
  type PushRefused,
  type SignedUserinfo,
  type TokenMisplaced,
  type UserinfoRefused,
} from '../../../actors/oauth/tokens/authorization/protocol.js'
import type { Unauthenticated } from '../../../actors/oauth/tokens/protocol.js'
import {
  challengeHints,
  missingToken,
  refusedToken,
  scopeChallenge,
} from '../../request/authenticate.js'
import type { CodeOf, ErrorCode } from '../../response/problems.js'
import { WRONG_TENANT_HOST } from '../../request/tenant-hosts.js'
import {
  choice,
  formFields,
  oauthError,
  problem,
  type ReplyRule,
  type Route,
  reply,
  route,
} from '../../route.js'
import { AuthorizationParameters } from './authorize.js'
import { ClientFields, countedByClient, oauthRefused, proofRefused, tokenRequest } from './oauth.js'

const PushForm = z
  .object({
    ...AuthorizationParameters.partial().shape,
    ...ClientFields,
    request: z.string().max(16_384).optional().meta({
      description: 'A signed request object (RFC 9101). The other parameters then stand in it.',
    }),
  })
  .omit({ request_uri: true })
  .meta({ id: 'PushedAuthorizationRequest' })

const PushedResponse = z
  .object({ request_uri: z.string(), expires_in: z.int().min(1) })
  .meta({ id: 'PushedAuthorizationResponse' })

const UserinfoForm = z.object({ access_token: z.string().max(16_384).optional() })

const UserinfoResponse = z
  .looseObject({
    sub: z.string(),
    tenant_id: z.uuid(),
    name: z.string().optional(),
    given_name: z.string().optional(),
    family_name: z.string().optional(),
    preferred_username: z.string().optional(),
    picture: z.url().optional(),
    locale: z.string().optional().meta({ description: 'Language tag (BCP 47)' }),
    zoneinfo: z.string().optional().meta({ description: 'Time zone of the IANA database' }),
    updated_at: z.int().optional(),
    email: z.string().optional(),
    email_verified: z.boolean().optional(),
    phone_number: z.string().optional().meta({ description: 'E.164' }),
    phone_number_verified: z.boolean().optional(),
    address: z
      .object({
        formatted: z.string().optional(),
        street_address: z.string().optional(),
        locality: z.string().optional(),
        region: z.string().optional(),
        postal_code: z.string().optional(),
        country: z.string().optional(),
      })
      .optional()
      .meta({ description: 'OpenID Connect Core section 5.1.1' }),
    organization_id: z.uuid().optional(),
    organizations: z.array(z.object({ id: z.uuid(), name: z.string() })).optional(),
  })
  .meta({ id: 'Userinfo' })

const describe = ({ description }: { description: string }) => ({ description })
const bad = (code: PushRefused['error']) => oauthError<PushRefused>(400, code, describe)

const pushRefused = choice<PushRefused, PushRefused['error']>(({ error }) => error, {
  invalid_request: bad('invalid_request'),
  invalid_request_uri: bad('invalid_request_uri'),
  invalid_request_object: bad('invalid_request_object'),
  invalid_client: bad('invalid_client'),
  invalid_redirect_uri: bad('invalid_redirect_uri'),
  pkce_required: bad('pkce_required'),
  unsupported_response_type: bad('unsupported_response_type'),
  invalid_scope: bad('invalid_scope'),
  invalid_target: bad('invalid_target'),
  invalid_authorization_details: bad('invalid_authorization_details'),
  access_denied: bad('access_denied'),
  login_required: bad('login_required'),
  consent_required: bad('consent_required'),
  unmet_authentication_requirements: bad('unmet_authentication_requirements'),
  request_not_supported: bad('request_not_supported'),
  request_uri_not_supported: bad('request_uri_not_supported'),
  registration_not_supported: bad('registration_not_supported'),
  rate_limited: oauthError<PushRefused>(429, 'rate_limited', describe),
  // 403, as at the token endpoint.
  unauthorized_client: oauthError(403, 'unauthorized_client', describe),
})

const NEEDED = ['openid']

/** The challenge with its error code (RFC 6750 section 3). */
const challenged =
  <Code extends ErrorCode>(error: Code) =>
  (outcome: { description: string }) => ({
    error,
    detail: outcome.description,
    errorDescription: outcome.description,
    headers: { 'www-authenticate': `Bearer error="${error}"` },
  })
const unauthenticated = (outcome: Unauthenticated, { baseUrl }: { baseUrl: string }) =>
  refusedToken(outcome, challengeHints(baseUrl, NEEDED))
const unauthorized = (error: CodeOf<'unauthorized'>) =>
  problem<Unauthenticated, 'unauthorized'>(401, 'unauthorized', (outcome, context) => ({
    ...unauthenticated(outcome, context),
    error,
  }))
/** For a client with `userinfo_signed_response_alg`. */
const signedUserinfo: ReplyRule<SignedUserinfo> = {
  docs: [{ status: 200, contentType: 'application/jwt', schema: null }],
  render: ({ jwt }) => ({ form: 'body', status: 200, contentType: 'application/jwt', body: jwt }),
}
const userinfoReplies = {
  userinfo: reply(200, UserinfoResponse, ({ claims }: { claims: object }) => {
    return claims as z.input<typeof UserinfoResponse>
  }),
  userinfo_signed: signedUserinfo,
  // RFC 6750 section 3.1: a request without credentials gets a challenge without an error.
  no_token: problem(401, 'unauthorized', (_outcome: { tag: 'no_token' }, { baseUrl }) => ({
    reason: 'token_missing',
    ...missingToken(challengeHints(baseUrl, NEEDED)),
  })),
  misplaced: problem(403, WRONG_TENANT_HOST.name, ({ client }: TokenMisplaced) => ({
    reason: WRONG_TENANT_HOST.reason,
    detail: WRONG_TENANT_HOST.detail,
    client,
  })),
  userinfo_refused: choice<UserinfoRefused, UserinfoRefused['error']>(({ error }) => error, {
    invalid_request: problem(400, 'bad-request', challenged('invalid_request')),
    insufficient_scope: problem(403, 'insufficient-scope', (outcome, { baseUrl }) => ({
      ...challenged('insufficient_scope')(outcome),
      client: outcome.client,
      headers: scopeChallenge(baseUrl, NEEDED),
    })),
  }),
  refused: choice<Unauthenticated, Unauthenticated['error']>(({ error }) => error, {
    unauthorized: unauthorized('unauthorized'),
    policy_denied: unauthorized('policy_denied'),
    invalid_dpop_proof: unauthorized('invalid_dpop_proof'),
    use_dpop_nonce: unauthorized('use_dpop_nonce'),
    token_expired: problem(401, 'token-expired', unauthenticated),
    token_revoked: problem(401, 'token-revoked', unauthenticated),
    delegation_expired: problem(401, 'delegation-expired', unauthenticated),
  }),
}

export const userinfoRoutes: readonly Route[] = [
  route(authorization, 'pushAuthorizationRequest', {
    method: 'POST',
    path: '/oauth/par',
    summary: 'Push an authorization request',
    description:
      'RFC 9126. The request_uri in the response is valid for 90 seconds. The authorization endpoint ' +
      'then needs only client_id and request_uri. A DPoP header binds the code to its key.',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    errors: 'oauth',
    cors: 'application-origins',
    capabilities: ['oauth.par'],
    throttle: countedByClient('token'),
    body: formFields(PushForm),
    message: tokenRequest,
    replies: {
      pushed: reply(201, PushedResponse, ({ requestUri, expiresInSecs }) => ({
        request_uri: requestUri,
        expires_in: expiresInSecs,
      })),
      push_refused: pushRefused,
      proof_refused: proofRefused,
      oauth_refused: oauthRefused,
    },
  }),
  route(authorization, 'getUserinfo', {
    method: 'GET',
    path: '/userinfo',
    summary: 'Read the claims of the user',
    description:
      'For user access tokens with the scope openid, for this service or the audience of their client. The scope profile gives name, given_name, ' +
      'family_name, preferred_username, picture, locale, zoneinfo and updated_at; email gives email and ' +
      'email_verified; phone gives phone_number and phone_number_verified; address gives address; org:read gives organization_id and ' +
      'organizations. A claim without a value is absent.',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    cors: 'application-origins',
    message: ({ credentials, host }) => ({ form: [], host, ...credentials }),
    replies: userinfoReplies,
  }),
  route(authorization, 'getUserinfo', {
    method: 'POST',
    path: '/userinfo',
    operationId: 'postUserinfo',
    summary: 'Read the claims of the user, with the token in the header or a form',
    tags: ['OAuth'],
    exposure: 'public',
    security: { scheme: 'client' },
    cors: 'application-origins',
    body: formFields(UserinfoForm),
    message: ({ body, credentials, host }) => ({ form: body, host, ...credentials }),
    replies: userinfoReplies,
  }),
]
