/** The catalogue of problem types, and problem documents (RFC 9457, docs/reference/errors.md). */
import { textsIn } from '../../actors/domain/i18n/languages.js'
import { OAUTH_ERRORS, type VerifiedClient } from '../../actors/domain/oauth-reasons.js'
import type { MessageKey } from '../pages/texts/texts.js'
import type english from './problems/en.json'

/** The texts of GET /errors and GET /errors/{name}. Pages show words between backticks as code. */
export const PROBLEM_TEXTS = textsIn<typeof english>(new URL('./problems/', import.meta.url))

/** The status of each problem type, and whether a client repeats the request. */
const RULES = {
  'bad-request': [400, 'changed'],
  unauthorized: [401, 'token'],
  'token-expired': [401, 'token'],
  'token-revoked': [401, 'token'],
  'delegation-expired': [401, 'token'],
  'payment-required': [402, 'changed'],
  forbidden: [403, 'never'],
  'insufficient-scope': [403, 'token'],
  'policy-denied': [403, 'never'],
  'not-found': [404, 'never'],
  'method-not-allowed': [405, 'changed'],
  'not-acceptable': [406, 'changed'],
  'request-timeout': [408, 'same'],
  conflict: [409, 'changed'],
  gone: [410, 'never'],
  'payload-too-large': [413, 'changed'],
  'uri-too-long': [414, 'changed'],
  'unsupported-media-type': [415, 'changed'],
  'misdirected-request': [421, 'changed'],
  'unprocessable-content': [422, 'changed'],
  'failed-dependency': [424, 'never'],
  'too-early': [425, 'wait'],
  'rate-limited': [429, 'wait'],
  'headers-too-large': [431, 'changed'],
  'server-error': [500, 'backoff'],
  'not-implemented': [501, 'never'],
  'bad-gateway': [502, 'backoff'],
  'service-unavailable': [503, 'wait'],
  'gateway-timeout': [504, 'backoff'],
  'version-not-supported': [505, 'never'],
} as const satisfies Readonly<
  Record<keyof typeof english.types, readonly [status: number, retry: keyof typeof english.retry]>
>

export type ProblemName = keyof typeof RULES

const FINER = {
  'bad-request': [
    'access_denied',
    'authorization_pending',
    'expired_token',
    'invalid_buyer',
    'invalid_grant',
    'invalid_price',
    'invalid_redirect_uri',
    'invalid_request',
    'invalid_scope',
    'invalid_target',
    'redirect_host_not_allowed',
    'slow_down',
  ],
  unauthorized: [
    'insufficient_user_authentication',
    'invalid_dpop_proof',
    'policy_denied',
    'use_dpop_nonce',
  ],
  forbidden: ['billing_feature_disabled', 'billing_suspended'],
  'policy-denied': [
    'budget_exceeded',
    'contract_not_allowed',
    'reauthorization_required',
    'recipient_not_allowed',
    'wallet_frozen',
  ],
  'failed-dependency': ['policy_denied'],
  'not-found': ['wallet_not_provisioned'],
  conflict: [
    'account_shared',
    'checkout_not_open',
    'delegation_required',
    'fixture_user_limit',
    'insufficient_balance',
    'last_owner',
    'payment_method_unavailable',
    'user_not_active',
  ],
  'unprocessable-content': ['domain_not_verified', 'rule_not_pinned'],
  'rate-limited': ['budget_exceeded', 'captcha_degraded_throttled'],
  'service-unavailable': ['share_exhausted'],
} as const satisfies { readonly [Name in ProblemName]?: readonly string[] }

/** The codes that are finer than their problem type. A code that is not listed does not compile. */
export const FINER_CODES: { readonly [Name in ProblemName]?: readonly string[] } = FINER

type SnakeCase<Name> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}_${SnakeCase<Tail>}`
  : Name
/** The codes of answers of a problem type. */
export type CodeOf<Name extends ProblemName> =
  | SnakeCase<Name>
  | (Name extends keyof typeof FINER ? (typeof FINER)[Name][number] : never)
/** The codes of all answers. */
export type ErrorCode = CodeOf<ProblemName> | keyof typeof OAUTH_ERRORS

type ProblemType<Name extends ProblemName = ProblemName> = {
  readonly status: (typeof RULES)[Name][0]
  readonly retry: keyof typeof english.retry
  readonly title: string
  /** Its first sentence is the default `detail`. */
  readonly meaning: string
  readonly remedy: string
}

export const PROBLEM_TYPES = Object.fromEntries(
  (Object.keys(RULES) as ProblemName[]).map((name) => {
    const [status, retry] = RULES[name]
    return [name, { status, retry, ...PROBLEM_TEXTS.en.types[name] }]
  }),
) as { readonly [Name in ProblemName]: ProblemType<Name> }

/** One fault in a request: a JSON pointer (RFC 6901) as URI fragment, or a named part. */
export type PointedError = { readonly pointer: string; readonly detail: string }

export type ProblemDetails<Name extends ProblemName = ProblemName> = {
  readonly detail?: string | undefined
  /** The snake_case code. Default: the name of the type. */
  readonly error?: CodeOf<Name> | undefined
  readonly errorDescription?: string | undefined
  readonly errors?: readonly PointedError[] | undefined
  /** Whole seconds, for Retry-After and the member retry_after. */
  readonly retryAfterSecs?: number | undefined
  /** Extension members (RFC 9457 section 3.2). */
  readonly members?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The client of a valid token, for the log line alone. */
  readonly client?: VerifiedClient | undefined
  /** The check that failed, for the log line alone: one word for a cause, at every endpoint. */
  readonly reason?: string | undefined
}

/** Names that do not say which check failed. */
type Vague = 'unauthorized' | 'forbidden' | 'policy-denied' | 'failed-dependency'

/** A problem of the catalogue with its details. */
export type Problem = ProblemDetails & {
  /** The text of an error page, in place of the general text of the status. */
  readonly pageWords?: MessageKey | undefined
  /** Where its page leads: a path of the service. Default: the start page. */
  readonly pageLink?: { readonly path: string; readonly key: MessageKey } | undefined
  /** What the actor calls the outcome: its reason, otherwise its tag. For the log line. */
  readonly outcome?: string | undefined
} & (
    | { readonly name: Exclude<ProblemName, Vague> }
    | { readonly name: ProblemName; readonly reason: string }
    | { readonly name: ProblemName; readonly error: string }
  )

type ProblemContext = {
  /** Base of problem type URIs, without a trailing slash. */
  readonly errorsBaseUrl: string
  /** The request path. */
  readonly instance: string
  readonly requestId: string
}

/** The `error` member: the name of the type in snake_case. */
export function problemCode(name: ProblemName): string {
  return CODES[name]
}

const CODES = Object.fromEntries(
  Object.keys(PROBLEM_TYPES).map((name) => [name, name.replaceAll('-', '_')]),
) as Readonly<Record<ProblemName, string>>

/** Statuses that are problem documents on OAuth endpoints too (docs/reference/errors.md). */
const ALWAYS_PROBLEM = new Set([413, 414, 415, 421, 429, 431])

/** True if an OAuth endpoint reports the status with the body of RFC 6749 section 5.2. */
export function hasOauthForm(status: number): boolean {
  return status < 500 && !ALWAYS_PROBLEM.has(status)
}

/** The RFC 6749 section 5.2 code of a refusal by the gateway. */
export function oauthCode(name: ProblemName): string {
  return name === 'bad-request' ? 'invalid_request' : problemCode(name)
}

/**
 * The path of the page of an OAuth error, without the base. A code that is also a problem type has the page of the
 * type. A code without a page has the list.
 */
export function oauthErrorPath(error: string): string {
  const name = error.replaceAll('_', '-')
  const isKnown = Object.hasOwn(OAUTH_ERRORS, error) || Object.hasOwn(PROBLEM_TYPES, name)
  return isKnown ? `/errors/${name}` : '/errors'
}

/**
 * Makes a text valid as `error_description`: printable ASCII without quotes and backslashes (RFC 6749 section 5.2,
 * RFC 6750 section 3).
 */
export function quotable(text: string): string {
  return text.replaceAll(/[^ !#-[\]-~]/g, "'")
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The members of a problem document, in the order of docs/reference/errors.md. */
export function problemBody(problem: Problem, context: ProblemContext): Record<string, unknown> {
  const { name, detail, errorDescription, retryAfterSecs, errors, members } = problem
  const type = PROBLEM_TYPES[name]
  const { title, status } = type
  const body: Record<string, unknown> = {
    type: `${context.errorsBaseUrl}/errors/${name}`,
    title,
    status,
    detail: detail ?? summary(type),
    instance: context.instance,
    error: problem.error ?? problemCode(name),
  }
  if (errorDescription !== undefined) body['error_description'] = quotable(errorDescription)
  body['request_id'] = context.requestId
  if (retryAfterSecs !== undefined) body['retry_after'] = retryAfterSecs
  if (errors !== undefined) body['errors'] = errors.map(asFragment)
  return members === undefined ? body : Object.assign(body, members)
}

/** The default `detail`, which all problem documents have. */
function summary({ meaning }: ProblemType): string {
  return meaning.slice(0, meaning.indexOf('.') + 1)
}

/** Turns the JSON pointer of an actor into a URI fragment, as in RFC 9457. */
function asFragment({ pointer, detail }: PointedError): PointedError {
  return { pointer: pointer.startsWith('/') ? `#${pointer}` : pointer, detail }
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

export function problemHeaders(problem: Problem): Readonly<Record<string, string>> {
  const { retryAfterSecs, errorDescription, detail, headers = NO_HEADERS } = problem
  const said = challengeWith(
    headers,
    errorDescription ?? detail ?? PROBLEM_TYPES[problem.name].title,
  )
  return retryAfterSecs === undefined ? said : { 'retry-after': String(retryAfterSecs), ...said }
}

/** The headers with the words of the answer in each challenge that has an error code without them. */
export function challengeWith(
  headers: Readonly<Record<string, string>>,
  description: string | undefined,
): Readonly<Record<string, string>> {
  const challenge = headers['www-authenticate']
  if (challenge === undefined || description === undefined) return headers
  if (!challenge.includes('error="') || challenge.includes('error_description=')) return headers
  const words = `${challenge}, error_description="${quotable(description)}"`
  return { ...headers, 'www-authenticate': words }
}
