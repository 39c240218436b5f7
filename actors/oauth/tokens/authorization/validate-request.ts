/**
 * Validates the parameters of an authorization request with two ordered lists of checks. Errors of the
 * first list are shown to the user, because the redirect URI is not verified yet or the client would
 * be open to code injection. Errors of the second list are redirected to the client (RFC 6749 section
 * 4.1.2.1, RFC 9700 section 4.1).
 */
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { isRegisteredRedirect } from '../../../domain/redirect-uri.js'
import { CREDENTIAL_SCOPES } from '../../../domain/credentials/catalogue.js'
import { mayAskPersonFor, SCOPES } from '../../../domain/scopes.js'
import { defaultResourceScopes, foreignScopes, type NamedResources } from '../issue/api-resource.js'
import { readRequestedAudience } from '../issue/audience.js'
import { type OAuthForm, readScope } from '../form.js'
import { isOfHost } from './locations.js'
import { type AuthorizationRequest, readClaims, readDetails, readLevel } from './parameters.js'
import {
  CODE_CHALLENGE_METHODS,
  PROMPTS,
  type RefusedError,
  RESPONSE_MODES,
  RESPONSE_TYPES,
  type ResponseMode,
  type ReturnedError,
} from './protocol.js'

/** The application members that the checks read. */
export type ValidatedClient = Pick<
  AuthorizingClientRow,
  | 'clientType'
  | 'redirectUris'
  | 'metadataUrl'
  | 'grantTypes'
  | 'responseTypes'
  | 'scopes'
  | 'requirePkce'
  | 'loopbackAnyPort'
  | 'dpopBoundAccessTokens'
  | 'requirePushedAuthorizationRequests'
  | 'requireSignedRequestObject'
  | 'authorizationDetailsTypes'
>

type Validation =
  | { readonly tag: 'valid'; readonly request: AuthorizationRequest }
  | { readonly tag: 'refused'; readonly error: RefusedError; readonly description: string }
  | ({
      readonly tag: 'returned'
      readonly error: ReturnedError
      readonly description: string
    } & Pick<AuthorizationRequest, 'redirectUri' | 'state' | 'responseMode' | 'uiLocales'>)

type RequestToValidate = {
  readonly form: OAuthForm
  readonly client: ValidatedClient
  /** The metadata document that identifies the client. Absent for a registered one. */
  readonly documentSha256?: string | undefined
  /** True at the PAR endpoint. */
  readonly pushed: boolean
  /** The highest assurance level that a sign-in can reach. */
  readonly levelMax: AssuranceLevel
  /** The API resources of the request, from `targetOf`. Absent without any. */
  readonly target?: NamedResources | undefined
}
type Fault<Error> = readonly [error: Error, description: string]
type Check<Error> = (request: RequestToValidate) => Fault<Error> | undefined

const TEXT_CHARACTERS_MAX = 2048
/** Libraries keep an encrypted session in `state`. */
export const STATE_CHARACTERS_MAX = 8192
/** The longest target of a request, so that every state of a GET comes back. */
const RETURNED_STATE_CHARACTERS_MAX = 16_384
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const NO_TARGET: NamedResources = { resources: [] }
const SECONDS = /^\d{1,10}$/
const KNOWN_SCOPES: ReadonlySet<string> = new Set([...SCOPES, ...CREDENTIAL_SCOPES])

/** True if the redirect URI is one of the application. */
export function isRegistered(
  redirectUri: string,
  { redirectUris, loopbackAnyPort }: Pick<ValidatedClient, 'redirectUris' | 'loopbackAnyPort'>,
): boolean {
  return isRegisteredRedirect(redirectUri, redirectUris, { anyLoopbackPort: loopbackAnyPort })
}

/** Errors that are shown to the user, in this order. */
export const PAGE_CHECKS: readonly Check<RefusedError>[] = [
  hasRedirectUri,
  hasRegisteredRedirectUri,
  hasRequiredPkce,
  hasS256Method,
]

/** Errors that are redirected to the client, in this order. */
export const REDIRECT_CHECKS: readonly Check<ReturnedError>[] = [
  hasBoundedParameters,
  hasNoRequestObject,
  hasNoForeignRequestUri,
  hasNoRegistration,
  isPushedIfRequired,
  hasResponseType,
  hasSupportedResponseType,
  hasAuthorizedClient,
  hasResponseMode,
  hasValidCodeChallenge,
  hasValidDpopThumbprint,
  hasKnownScopes,
  hasValidAudience,
  hasValidAuthorizationDetails,
  hasValidPrompt,
  hasValidMaxAge,
  hasValidClaims,
  hasReachableLevel,
]

/** Returns the fault of the first failed check, or the request. */
export function validateRequest(request: RequestToValidate): Validation {
  for (const check of PAGE_CHECKS) {
    const fault = check(request)
    if (fault !== undefined) return { tag: 'refused', error: fault[0], description: fault[1] }
  }
  const { form } = request
  const redirectUri = form.get('redirect_uri')!
  const state = returnedState(form)
  const way = { redirectUri, responseMode: responseModeOf(form), uiLocales: form.get('ui_locales') }
  for (const check of REDIRECT_CHECKS) {
    const fault = check(request)
    if (fault !== undefined)
      return { tag: 'returned', error: fault[0], description: fault[1], state, ...way }
  }
  const read = readRequest(request, redirectUri, state)
  if (isStorable(read)) return { tag: 'valid', request: read }
  return {
    tag: 'returned',
    error: 'invalid_request',
    description: 'a parameter contains NUL or half of a surrogate pair',
    state: isStorable(state) ? state : null,
    ...way,
  }
}

/** Every error returns the state, also one that no request may have, as long as it fits into a redirect. */
function returnedState(form: OAuthForm): string | null {
  const state = form.get('state')
  return state !== null && state.length > RETURNED_STATE_CHARACTERS_MAX ? null : state
}

function hasRedirectUri({ form }: RequestToValidate): Fault<RefusedError> | undefined {
  return form.get('redirect_uri') === null
    ? ['invalid_request', 'redirect_uri is missing']
    : undefined
}

function hasRegisteredRedirectUri({
  form,
  client,
  pushed,
}: RequestToValidate): Fault<RefusedError> | undefined {
  if (isRegistered(form.get('redirect_uri')!, client)) return undefined
  // FAPI 2.0 clients know the errors of RFC 9126 section 2.3 only.
  const isFapi = pushed && client.requirePushedAuthorizationRequests
  return [
    isFapi ? 'invalid_request' : 'invalid_redirect_uri',
    'redirect_uri is not registered for the application',
  ]
}

function hasRequiredPkce({
  form,
  client,
  pushed,
}: RequestToValidate): Fault<RefusedError> | undefined {
  if (form.get('code_challenge') !== null || !needsPkce(client)) return undefined
  return [
    pushed && client.clientType !== 'public' ? 'invalid_request' : 'pkce_required',
    'this application needs a code_challenge (RFC 7636)',
  ]
}

function hasS256Method({ form }: RequestToValidate): Fault<RefusedError> | undefined {
  const method = form.get('code_challenge_method')
  if (form.get('code_challenge') === null && method === null) return undefined
  return isOneOf(CODE_CHALLENGE_METHODS, method)
    ? undefined
    : ['invalid_request', 'code_challenge_method must be S256']
}

function hasBoundedParameters({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const bounded = ['state', 'nonce', 'login_hint', 'ui_locales', 'acr_values', 'issuer_state']
  return bounded.some((name) => isLong(form, name))
    ? [
        'invalid_request',
        `a parameter is longer than ${TEXT_CHARACTERS_MAX} characters, or state than ${STATE_CHARACTERS_MAX}`,
      ]
    : undefined
}

function hasNoRequestObject({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return form.get('request') === null
    ? undefined
    : ['request_not_supported', 'request objects are not supported']
}

function hasNoForeignRequestUri({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return form.get('request_uri') === null
    ? undefined
    : ['request_uri_not_supported', 'request_uri must come from the PAR endpoint']
}

function hasNoRegistration({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return form.get('registration') === null
    ? undefined
    : ['registration_not_supported', 'the registration parameter is not supported']
}

function isPushedIfRequired({
  client,
  pushed,
}: RequestToValidate): Fault<ReturnedError> | undefined {
  // Only the PAR endpoint takes request objects.
  const mustPush = client.requirePushedAuthorizationRequests || client.requireSignedRequestObject
  return mustPush && !pushed
    ? ['invalid_request', 'this application must push its requests (RFC 9126)']
    : undefined
}

function hasResponseType({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return form.get('response_type') === null
    ? ['invalid_request', 'response_type is missing']
    : undefined
}

function hasSupportedResponseType({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return isOneOf(RESPONSE_TYPES, form.get('response_type'))
    ? undefined
    : ['unsupported_response_type', 'response_type must be code']
}

function hasAuthorizedClient({ client }: RequestToValidate): Fault<ReturnedError> | undefined {
  return client.responseTypes.includes('code') && client.grantTypes.includes('authorization_code')
    ? undefined
    : ['unauthorized_client', 'the application does not have this grant']
}

function hasResponseMode({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const mode = form.get('response_mode')
  if (mode !== null && !isOneOf(RESPONSE_MODES, mode))
    return ['invalid_request', `response_mode must be one of ${RESPONSE_MODES.join(', ')}`]
  return mode?.startsWith('form_post') === true && responseModeOf(form) === undefined
    ? ['invalid_request', `response_mode ${mode} needs an http or https redirect_uri`]
    : undefined
}

/** Undefined: `query`. A browser posts no form to a private scheme. */
function responseModeOf(form: OAuthForm): ResponseMode | undefined {
  const mode = RESPONSE_MODES.find((one) => one === form.get('response_mode'))
  if (mode === undefined || mode === 'query') return undefined
  if (mode.startsWith('form_post') && !isOfHost(form.get('redirect_uri')!)) return undefined
  return mode
}

function hasValidCodeChallenge({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const challenge = form.get('code_challenge')
  const isValid =
    challenge === null ? form.get('code_challenge_method') === null : CHALLENGE.test(challenge)
  return isValid
    ? undefined
    : ['invalid_request', 'code_challenge must be a SHA-256 hash in base64url']
}

function hasValidDpopThumbprint({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const jkt = form.get('dpop_jkt')
  return jkt === null || CHALLENGE.test(jkt)
    ? undefined
    : ['invalid_request', 'dpop_jkt must be a SHA-256 thumbprint in base64url']
}

function hasKnownScopes({
  form,
  client,
  target = NO_TARGET,
}: RequestToValidate): Fault<ReturnedError> | undefined {
  const scope = form.get('scope')
  const requested = scope === null ? [] : readScope(scope)
  // The scopes of an unknown resource are unknown too, so the resource is reported.
  if (requested !== null && 'fault' in target) return ['invalid_target', target.fault]
  if (requested !== null && 'resources' in target && target.resources.length > 0)
    return foreignScopes(requested, target.resources).length === 0
      ? undefined
      : ['invalid_scope', 'a scope does not belong to the resource']
  if (!requested?.every((one) => KNOWN_SCOPES.has(one)))
    return ['invalid_scope', 'a scope is malformed or unknown']
  return requested.every((one) => mayAskPersonFor(one, client.scopes))
    ? undefined
    : ['invalid_scope', 'a scope is only for operators of the deployment']
}

function hasValidAudience({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const audience = readRequestedAudience(form)
  return 'fault' in audience ? ['invalid_target', audience.fault] : undefined
}

function hasValidAuthorizationDetails({
  form,
  client,
}: RequestToValidate): Fault<ReturnedError> | undefined {
  const details = readDetails(form.get('authorization_details'), client)
  return details !== null && 'fault' in details
    ? ['invalid_authorization_details', details.fault]
    : undefined
}

function hasValidPrompt({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  const prompts = readPrompts(form)
  if (!prompts.every((prompt) => isOneOf(PROMPTS, prompt)))
    return ['invalid_request', `prompt must be one of ${PROMPTS.join(', ')}`]
  return prompts.includes('none') && prompts.length > 1
    ? ['invalid_request', 'prompt none excludes other values']
    : undefined
}

function hasValidMaxAge({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return SECONDS.test(form.get('max_age') ?? '0')
    ? undefined
    : ['invalid_request', 'max_age must be a number of whole seconds']
}

function hasValidClaims({ form }: RequestToValidate): Fault<ReturnedError> | undefined {
  return readClaims(form.get('claims')) === null
    ? ['invalid_request', 'claims must be a JSON object with id_token or userinfo']
    : undefined
}

function hasReachableLevel({
  form,
  levelMax,
}: RequestToValidate): Fault<ReturnedError> | undefined {
  return readClaims(form.get('claims'))?.level === 'foreign' || levelOf(form) > levelMax
    ? ['unmet_authentication_requirements', 'the requested assurance level is not available']
    : undefined
}

/**
 * PKCE is required for public clients, for clients that require it, and for clients with the FAPI 2.0
 * profile: pushed requests and DPoP-bound tokens (FAPI 2.0 Security Profile section 5.3.2.2).
 */
function needsPkce(client: ValidatedClient): boolean {
  const { clientType, requirePkce, dpopBoundAccessTokens } = client
  const isFapi = dpopBoundAccessTokens && client.requirePushedAuthorizationRequests
  return clientType === 'public' || requirePkce || isFapi
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair. */
function isStorable(value: unknown): boolean {
  const text = JSON.stringify(value).replaceAll('\\\\', '')
  return !/\\u(?:0000|d[89a-f])/.test(text)
}

function readRequest(
  { form, client, documentSha256, target = NO_TARGET }: RequestToValidate,
  redirectUri: string,
  state: string | null,
): AuthorizationRequest {
  const prompts = readPrompts(form)
  const claims = readClaims(form.get('claims'))!
  const audience = readRequestedAudience(form) as { readonly requested: readonly string[] }
  const details = readDetails(form.get('authorization_details'), client)
  const scope = form.get('scope')
  const maxAge = form.get('max_age')
  return {
    redirectUri,
    state,
    scopes: scope === null ? defaultScopes(client, target) : readScope(scope)!,
    nonce: form.get('nonce'),
    codeChallenge: form.get('code_challenge'),
    jkt: form.get('dpop_jkt'),
    prompt: {
      none: prompts.includes('none'),
      login: prompts.includes('login'),
      consent: prompts.includes('consent'),
      selectAccount: prompts.includes('select_account'),
    },
    maxAgeSecs: maxAge === null ? null : Number(maxAge),
    level: levelOf(form),
    audience: audience.requested,
    details: details as Exclude<typeof details, { fault: string }>,
    claims: claims.claims,
    sub: claims.sub,
    idTokenHint: form.get('id_token_hint'),
    loginHint: form.get('login_hint'),
    uiLocales: form.get('ui_locales'),
    responseMode: responseModeOf(form),
    ...(documentSha256 === undefined ? {} : { documentSha256 }),
    issuerState: form.get('issuer_state'),
  }
}

/** Without the parameter: all scopes of the application, at an API resource the scopes that it knows. */
function defaultScopes({ scopes }: ValidatedClient, target: NamedResources): readonly string[] {
  const isOfResources = 'resources' in target && target.resources.length > 0
  return isOfResources ? defaultResourceScopes(scopes, target.resources) : scopes
}

function levelOf(form: OAuthForm) {
  const requested = readLevel(form.get('acr_values'))
  const essential = readClaims(form.get('claims'))?.level
  return typeof essential === 'number' && essential > requested ? essential : requested
}

function readPrompts(form: OAuthForm): readonly string[] {
  return (form.get('prompt') ?? '').split(' ').filter((prompt) => prompt !== '')
}

function isLong(form: OAuthForm, name: string): boolean {
  const most = name === 'state' ? STATE_CHARACTERS_MAX : TEXT_CHARACTERS_MAX
  return (form.get(name)?.length ?? 0) > most
}

function isOneOf(known: readonly string[], value: string | null): boolean {
  return value !== null && known.includes(value)
}
