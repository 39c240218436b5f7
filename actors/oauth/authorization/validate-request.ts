/**
 * Judges the parameters of an authorization request, in the order in which it matters who may be
 * told what: first everything that is never answered by a redirect, then everything that is.
 * RFC 6749 section 4.1.2.1, RFC 9700 section 4.1; decisions.md 7.3 and 7.6.
 */
import type { AuthorizingClientRow } from '../../../storage/oauth/applications.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import { SCOPES } from '../../domain/scopes.js'
import { readAskedAudience } from '../tokens/issue/audience.js'
import { type OAuthForm, readScope } from '../tokens/form.js'
import { type AuthorizationRequest, readClaims, readDetails, readLevel } from './parameters.js'
import {
  CODE_CHALLENGE_METHODS,
  PROMPTS,
  type RefusedError,
  RESPONSE_MODES,
  RESPONSE_TYPES,
  type ReturnedError,
} from './protocol.js'

/** The part of an application that judging needs. */
export type JudgedClient = Pick<
  AuthorizingClientRow,
  | 'clientType'
  | 'redirectUris'
  | 'grantTypes'
  | 'responseTypes'
  | 'scopes'
  | 'requirePkce'
  | 'dpopBoundAccessTokens'
  | 'requirePushedAuthorizationRequests'
  | 'authorizationDetailsTypes'
>

export type Verdict =
  | { readonly tag: 'valid'; readonly request: AuthorizationRequest }
  | { readonly tag: 'refused'; readonly error: RefusedError; readonly description: string }
  | {
      readonly tag: 'returned'
      readonly error: ReturnedError
      readonly description: string
      readonly redirectUri: string
      readonly state: string | null
    }

export type Case = {
  readonly form: OAuthForm
  readonly client: JudgedClient
  /** The request came to the PAR endpoint. */
  readonly pushed: boolean
  /** The highest level that anybody can reach here. */
  readonly levelMax: AssuranceLevel
}
type Fault<Error> = readonly [error: Error, description: string]
type Check<Error> = (of: Case) => Fault<Error> | undefined

const TEXT_CHARACTERS_MAX = 2048
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const SECONDS = /^\d{1,10}$/

/**
 * Public clients, those that say so, and those with the FAPI 2.0 profile: requests are pushed and tokens
 * bound to a key (FAPI 2.0 Security Profile section 5.3.2.2, PKCE with S256).
 */
function needsPkce(client: JudgedClient): boolean {
  const { clientType, requirePkce, dpopBoundAccessTokens } = client
  const isFapi = dpopBoundAccessTokens && client.requirePushedAuthorizationRequests
  return clientType === 'public' || requirePkce || isFapi
}

/** Redirect URIs are compared as strings: scheme, host, port, path and query, nothing normalised. */
export function isRegistered(redirectUri: string, registered: readonly string[]): boolean {
  return registered.includes(redirectUri)
}

/** Told on a page, or in JSON: in this order. */
export const REFUSED: readonly Check<RefusedError>[] = [
  ({ form }) =>
    form.get('redirect_uri') === null ? ['invalid_request', 'redirect_uri is missing'] : undefined,
  ({ form, client }) =>
    isRegistered(form.get('redirect_uri')!, client.redirectUris)
      ? undefined
      : ['invalid_redirect_uri', 'redirect_uri is not one of this application'],
  ({ form, client }) =>
    form.get('code_challenge') === null && needsPkce(client)
      ? ['pkce_required', 'this application needs a code_challenge (RFC 7636)']
      : undefined,
  ({ form }) => {
    const method = form.get('code_challenge_method')
    if (form.get('code_challenge') === null && method === null) return undefined
    return isOneOf(CODE_CHALLENGE_METHODS, method)
      ? undefined
      : ['invalid_request', 'code_challenge_method must be S256']
  },
]

/** Told to the client by a redirect: in this order. */
export const RETURNED: readonly Check<ReturnedError>[] = [
  ({ form }) =>
    ['state', 'nonce', 'login_hint', 'ui_locales', 'acr_values'].some((name) => isLong(form, name))
      ? ['invalid_request', `a parameter is longer than ${TEXT_CHARACTERS_MAX} characters`]
      : undefined,
  ({ form }) =>
    form.get('request') === null
      ? undefined
      : ['request_not_supported', 'request objects are not supported'],
  ({ form }) =>
    form.get('request_uri') === null
      ? undefined
      : ['request_uri_not_supported', 'request_uri must be one of the PAR endpoint'],
  ({ form }) =>
    form.get('registration') === null
      ? undefined
      : ['registration_not_supported', 'registration is not supported'],
  ({ client, pushed }) =>
    client.requirePushedAuthorizationRequests && !pushed
      ? ['invalid_request', 'this application must push its requests (RFC 9126)']
      : undefined,
  ({ form }) =>
    form.get('response_type') === null
      ? ['invalid_request', 'response_type is missing']
      : undefined,
  ({ form }) =>
    isOneOf(RESPONSE_TYPES, form.get('response_type'))
      ? undefined
      : ['unsupported_response_type', 'response_type must be code'],
  ({ client }) =>
    client.responseTypes.includes('code') && client.grantTypes.includes('authorization_code')
      ? undefined
      : ['unauthorized_client', 'the application does not have this grant'],
  ({ form }) =>
    isOneOf(RESPONSE_MODES, form.get('response_mode') ?? 'query')
      ? undefined
      : ['invalid_request', 'response_mode must be query'],
  ({ form }) => {
    const challenge = form.get('code_challenge')
    const wellFormed =
      challenge === null ? form.get('code_challenge_method') === null : CHALLENGE.test(challenge)
    return wellFormed
      ? undefined
      : ['invalid_request', 'code_challenge must be a SHA-256, base64url']
  },
  ({ form }) => {
    const jkt = form.get('dpop_jkt')
    return jkt === null || CHALLENGE.test(jkt)
      ? undefined
      : ['invalid_request', 'dpop_jkt must be a SHA-256 thumbprint, base64url']
  },
  ({ form }) => {
    const scope = form.get('scope')
    const asked = scope === null ? [] : readScope(scope)
    return asked?.every((one) => (SCOPES as readonly string[]).includes(one))
      ? undefined
      : ['invalid_scope', 'a scope is malformed or not one of the catalogue']
  },
  ({ form }) => {
    const asked = readAskedAudience(form)
    return 'fault' in asked ? ['invalid_target', asked.fault] : undefined
  },
  ({ form, client }) => {
    const details = readDetails(form.get('authorization_details'), client.authorizationDetailsTypes)
    return details !== null && 'fault' in details
      ? ['invalid_authorization_details', details.fault]
      : undefined
  },
  ({ form }) => {
    const prompts = readPrompts(form)
    if (!prompts.every((prompt) => isOneOf(PROMPTS, prompt)))
      return ['invalid_request', `prompt must be of ${PROMPTS.join(', ')}`]
    return prompts.includes('none') && prompts.length > 1
      ? ['invalid_request', 'prompt none stands alone']
      : undefined
  },
  ({ form }) =>
    SECONDS.test(form.get('max_age') ?? '0')
      ? undefined
      : ['invalid_request', 'max_age must be whole seconds'],
  ({ form }) =>
    readClaims(form.get('claims')) === null
      ? ['invalid_request', 'claims must be an object of id_token and userinfo']
      : undefined,
  ({ form, levelMax }) =>
    readClaims(form.get('claims'))?.level === 'foreign' || levelOf(form) > levelMax
      ? ['unmet_authentication_requirements', 'this level of assurance cannot be reached here']
      : undefined,
]

/** The first fault by the two tables, or the request. */
export function judge(of: Case): Verdict {
  for (const check of REFUSED) {
    const fault = check(of)
    if (fault !== undefined) return { tag: 'refused', error: fault[0], description: fault[1] }
  }
  const { form } = of
  const redirectUri = form.get('redirect_uri')!
  const state = isLong(form, 'state') ? null : form.get('state')
  for (const check of RETURNED) {
    const fault = check(of)
    if (fault !== undefined)
      return { tag: 'returned', error: fault[0], description: fault[1], redirectUri, state }
  }
  const request = requestOf(of, redirectUri, state)
  if (isKeepable(request)) return { tag: 'valid', request }
  return {
    tag: 'returned',
    error: 'invalid_request',
    description: 'a parameter holds NUL or half of a surrogate pair',
    redirectUri,
    state: isKeepable(state) ? state : null,
  }
}

/** PostgreSQL keeps neither NUL nor halves of surrogate pairs. */
function isKeepable(value: unknown): boolean {
  const text = JSON.stringify(value).replaceAll('\\\\', '')
  return !/\\u(?:0000|d[89a-f])/.test(text)
}

function requestOf(
  { form, client }: Case,
  redirectUri: string,
  state: string | null,
): AuthorizationRequest {
  const prompts = readPrompts(form)
  const claims = readClaims(form.get('claims'))!
  const audience = readAskedAudience(form) as { readonly asked: readonly string[] }
  const details = readDetails(form.get('authorization_details'), client.authorizationDetailsTypes)
  const scope = form.get('scope')
  const maxAge = form.get('max_age')
  return {
    redirectUri,
    state,
    // Nothing asked for is everything the application may have.
    scopes: scope === null ? client.scopes : readScope(scope)!,
    nonce: form.get('nonce'),
    codeChallenge: form.get('code_challenge'),
    jkt: form.get('dpop_jkt'),
    prompt: {
      none: prompts.includes('none'),
      login: prompts.includes('login'),
      consent: prompts.includes('consent'),
    },
    maxAgeSecs: maxAge === null ? null : Number(maxAge),
    level: levelOf(form),
    audience: audience.asked,
    details: details as Exclude<typeof details, { fault: string }>,
    claims: claims.claims,
    sub: claims.sub,
    idTokenHint: form.get('id_token_hint'),
    loginHint: form.get('login_hint'),
    uiLocales: form.get('ui_locales'),
  }
}

function levelOf(form: OAuthForm) {
  const asked = readLevel(form.get('acr_values'))
  const essential = readClaims(form.get('claims'))?.level
  return typeof essential === 'number' && essential > asked ? essential : asked
}

function readPrompts(form: OAuthForm): readonly string[] {
  return (form.get('prompt') ?? '').split(' ').filter((prompt) => prompt !== '')
}

function isLong(form: OAuthForm, name: string): boolean {
  return (form.get(name)?.length ?? 0) > TEXT_CHARACTERS_MAX
}

function isOneOf(known: readonly string[], value: string | null): boolean {
  return value !== null && known.includes(value)
}
