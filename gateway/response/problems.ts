/** The catalogue of problem types, and problem documents (RFC 9457, docs/reference/errors.md). */
import { OAUTH_ERRORS } from '../../actors/domain/oauth-reasons.js'
import type { MessageKey } from '../pages/catalogue/en.js'

export type ProblemType = {
  readonly status: number
  readonly title: string
  /** The meaning and what a client should do, for GET /errors/{name}. */
  readonly meaning: string
}

export const PROBLEM_TYPES = {
  'bad-request': {
    status: 400,
    title: 'Bad request',
    meaning:
      'The request is malformed, lacks a required member or has an invalid value. ' +
      'The member "errors" locates each fault by JSON pointer, if the server knows it. ' +
      'Correct the request before you send it again.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    meaning:
      'Credentials are missing or invalid. The WWW-Authenticate header names the scheme and the ' +
      'metadata of the authorization server.',
  },
  'token-expired': {
    status: 401,
    title: 'Token expired',
    meaning: 'The access token has expired. Obtain a new one and repeat the request.',
  },
  'token-revoked': {
    status: 401,
    title: 'Token revoked',
    meaning: 'The access token was revoked before it expired. Authenticate again.',
  },
  'delegation-expired': {
    status: 401,
    title: 'Delegation expired',
    meaning:
      'The delegation from a user to the agent has expired. A refresh returns no new token: ' +
      'request a new delegation from the user.',
  },
  'payment-required': {
    status: 402,
    title: 'Payment required',
    meaning:
      'The resource must be paid for. The response contains the price and the payment methods.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    meaning:
      'The caller is authenticated and not permitted: tenant, role or kind of token do not allow it.',
  },
  'insufficient-scope': {
    status: 403,
    title: 'Insufficient scope',
    meaning: 'The token lacks a scope of this operation. WWW-Authenticate names the scope.',
  },
  'policy-denied': {
    status: 403,
    title: 'Denied by policy',
    meaning: 'A policy of the tenant or the organization forbids the operation.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    meaning: 'The resource does not exist, or belongs to a tenant that the caller cannot see.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    meaning:
      'The resource exists and does not support this method. The Allow header lists its methods.',
  },
  'not-acceptable': {
    status: 406,
    title: 'Not acceptable',
    meaning: 'The Accept header excludes all media types of this operation.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request timeout',
    meaning: 'The request did not arrive completely in time. Send it again.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    meaning:
      'The request conflicts with the current state, for example a key fingerprint that is already ' +
      'registered, or an idempotency key whose first request is still running.',
  },
  gone: {
    status: 410,
    title: 'Gone',
    meaning: 'The resource existed and is no longer available.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Payload too large',
    meaning: 'The request body exceeds the limit of this operation.',
  },
  'uri-too-long': {
    status: 414,
    title: 'URI too long',
    meaning: 'The request target is longer than 16 KiB.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    meaning: 'This operation does not support the Content-Type or the Content-Encoding.',
  },
  'misdirected-request': {
    status: 421,
    title: 'Misdirected request',
    meaning: 'This service does not serve the Host of the request.',
  },
  'unprocessable-content': {
    status: 422,
    title: 'Unprocessable content',
    meaning:
      'The request is well-formed and cannot be processed, for example an idempotency key that ' +
      'was used before with another body.',
  },
  'too-early': {
    status: 425,
    title: 'Too early',
    meaning:
      'A valid proof arrived before its minimum duration. Wait for Retry-After and send ' +
      'the same proof again.',
  },
  'rate-limited': {
    status: 429,
    title: 'Rate limited',
    meaning:
      'A rate limit is exceeded. Retry-After and RateLimit contain the time to wait, ' +
      '"violated-policies" the names of the limits.',
  },
  'headers-too-large': {
    status: 431,
    title: 'Request header fields too large',
    meaning: 'The header fields exceed the limit of 64 fields or 16 KiB.',
  },
  'server-error': {
    status: 500,
    title: 'Server error',
    meaning:
      'An internal error occurred. Report the x-request-id. Repeat a write only with an ' +
      'idempotency key.',
  },
  'not-implemented': {
    status: 501,
    title: 'Not implemented',
    meaning: 'This deployment does not have the required service configured.',
  },
  'bad-gateway': {
    status: 502,
    title: 'Bad gateway',
    meaning: 'An upstream server returned an invalid response.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service unavailable',
    meaning: 'The service is starting, overloaded, or a dependency is unavailable. Retry later.',
  },
  'gateway-timeout': {
    status: 504,
    title: 'Gateway timeout',
    meaning: 'The request did not finish within its time limit and was cancelled.',
  },
  'version-not-supported': {
    status: 505,
    title: 'HTTP version not supported',
    meaning: 'The request line has no version of HTTP that this connection supports.',
  },
} as const satisfies Record<string, ProblemType>

export type ProblemName = keyof typeof PROBLEM_TYPES

/** One fault in a request: a JSON pointer (RFC 6901) as URI fragment, or a named part. */
export type PointedError = { readonly pointer: string; readonly detail: string }

export type ProblemDetails = {
  readonly detail?: string | undefined
  /** The snake_case code. Default: the name of the type. */
  readonly error?: string | undefined
  readonly errorDescription?: string | undefined
  readonly errors?: readonly PointedError[] | undefined
  /** Whole seconds, for Retry-After and the member retry_after. */
  readonly retryAfterSecs?: number | undefined
  /** Extension members (RFC 9457 section 3.2). */
  readonly members?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A problem of the catalogue with its details. */
export type Problem = ProblemDetails & {
  readonly name: ProblemName
  /** The text of an error page, in place of the general text of the status. */
  readonly pageWords?: MessageKey | undefined
  /** The check that failed, for the log line alone. */
  readonly reason?: string | undefined
}

export type ProblemContext = {
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
