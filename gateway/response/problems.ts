/**
 * The catalogue of problem types and the one place that writes problem documents.
 * RFC 9457; interface.md, Errors; decisions.md 14 and 23.
 */
import type { MessageKey } from '../pages/catalogue/en.js'

export type ProblemType = {
  readonly status: number
  readonly title: string
  /** What it means and what a client does about it; shown on GET /errors/{name}. */
  readonly meaning: string
}

export const PROBLEM_TYPES = {
  'bad-request': {
    status: 400,
    title: 'Bad request',
    meaning:
      'The request is malformed, lacks a required member or carries a value that is not accepted. ' +
      'The member "errors" names each offending place by JSON pointer where the server knows it. ' +
      'Correct the request before sending it again.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    meaning:
      'Credentials are missing or not valid. The WWW-Authenticate header tells which scheme is ' +
      'expected and where the authorization server is described.',
  },
  'token-expired': {
    status: 401,
    title: 'Token expired',
    meaning: 'The access token was valid and its lifetime is over. Obtain a new one and repeat.',
  },
  'token-revoked': {
    status: 401,
    title: 'Token revoked',
    meaning: 'The access token was withdrawn before its end. Authenticate again.',
  },
  'delegation-expired': {
    status: 401,
    title: 'Delegation expired',
    meaning:
      'The time for which a person let the agent act for them is over. A refresh gives no new token: ' +
      'ask the person again.',
  },
  'payment-required': {
    status: 402,
    title: 'Payment required',
    meaning: 'The resource has a price. The answer states what to pay and how to prove it.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    meaning:
      'The caller is known and may not do this: tenant, role or kind of token do not allow it.',
  },
  'insufficient-scope': {
    status: 403,
    title: 'Insufficient scope',
    meaning: 'The token lacks a scope this operation needs; WWW-Authenticate names it.',
  },
  'policy-denied': {
    status: 403,
    title: 'Denied by policy',
    meaning: 'A policy of the tenant or the organization forbids the operation.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    meaning: 'There is no such resource, or it belongs to a tenant the caller cannot see.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    meaning:
      'The resource exists and does not know this method. The Allow header lists those it knows.',
  },
  'not-acceptable': {
    status: 406,
    title: 'Not acceptable',
    meaning: 'The Accept header excludes every representation this operation has.',
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
      'The request contradicts the present state, for example a key fingerprint that is already ' +
      'registered, or an idempotency key whose first request is still running.',
  },
  gone: {
    status: 410,
    title: 'Gone',
    meaning: 'The resource existed and has ended.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Payload too large',
    meaning: 'The request body is larger than this operation accepts.',
  },
  'uri-too-long': {
    status: 414,
    title: 'URI too long',
    meaning: 'The target of the request is longer than 16 KiB.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    meaning: 'The Content-Type, or the Content-Encoding, is not one this operation reads.',
  },
  'misdirected-request': {
    status: 421,
    title: 'Misdirected request',
    meaning: 'The Host of the request is not served here.',
  },
  'unprocessable-content': {
    status: 422,
    title: 'Unprocessable content',
    meaning:
      'The request is well-formed and cannot be carried out, for example an idempotency key that ' +
      'was used before with another body.',
  },
  'too-early': {
    status: 425,
    title: 'Too early',
    meaning:
      'A valid proof came before its minimum duration had passed. Wait as Retry-After says and send ' +
      'the same proof again.',
  },
  'rate-limited': {
    status: 429,
    title: 'Rate limited',
    meaning:
      'A quota is used up. Retry-After and RateLimit tell when to come back; "violated-policies" ' +
      'names the quotas.',
  },
  'headers-too-large': {
    status: 431,
    title: 'Request header fields too large',
    meaning: 'The request has more header fields, or larger ones, than the server reads.',
  },
  'server-error': {
    status: 500,
    title: 'Server error',
    meaning:
      'Something failed that should not. Report the x-request-id. Repeat a write only with an ' +
      'idempotency key.',
  },
  'not-implemented': {
    status: 501,
    title: 'Not implemented',
    meaning: 'The service that would do this is not configured in this deployment.',
  },
  'bad-gateway': {
    status: 502,
    title: 'Bad gateway',
    meaning: 'A server that this one depends on gave an answer that cannot be used.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service unavailable',
    meaning: 'The service is starting, overloaded or cut off from something it needs. Retry later.',
  },
  'gateway-timeout': {
    status: 504,
    title: 'Gateway timeout',
    meaning: 'The work did not finish within the time limit of a request and was abandoned.',
  },
} as const satisfies Record<string, ProblemType>

export type ProblemName = keyof typeof PROBLEM_TYPES

/** One offending place in a request: RFC 6901 pointer in URI fragment form, or a named part. */
export type PointedError = { readonly pointer: string; readonly detail: string }

export type ProblemDetails = {
  readonly detail?: string | undefined
  /** The snake_case code; default the type's name. */
  readonly error?: string | undefined
  readonly errorDescription?: string | undefined
  readonly errors?: readonly PointedError[] | undefined
  /** Whole seconds; written to Retry-After and to the member retry_after. */
  readonly retryAfterSecs?: number | undefined
  /** Extension members (RFC 9457 section 3.2). */
  readonly members?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A problem about to be answered: what the catalogue says plus what is particular. */
export type Problem = ProblemDetails & {
  readonly name: ProblemName
  /** What a page says of it, where the words of its status say too little. */
  readonly pageWords?: MessageKey | undefined
}

export type ProblemContext = {
  /** Base of problem type URIs, without a trailing slash. */
  readonly errorsBaseUrl: string
  /** The request path. */
  readonly instance: string
  readonly requestId: string
}

/** The code in the body: the snake_case of the type's name (decisions.md 23). */
export function problemCode(name: ProblemName): string {
  return CODES[name]
}

const CODES = Object.fromEntries(
  Object.keys(PROBLEM_TYPES).map((name) => [name, name.replaceAll('-', '_')]),
) as Readonly<Record<ProblemName, string>>

/** Statuses that stay problem documents on OAuth endpoints (decisions.md 23). */
const BEYOND_OAUTH = new Set([413, 414, 415, 421, 429, 431])

/** Whether an OAuth endpoint answers such a refusal in the form of RFC 6749 section 5.2. */
export function hasOauthForm(status: number): boolean {
  return status < 500 && !BEYOND_OAUTH.has(status)
}

/** The RFC 6749 section 5.2 word for what the gateway itself refuses. */
export function oauthCode(name: ProblemName): string {
  return name === 'bad-request' ? 'invalid_request' : problemCode(name)
}

/**
 * A text for people as an `error_description`, which holds printable ASCII without quotes and
 * backslashes (RFC 6749 section 5.2, RFC 6750 section 3).
 */
export function quotable(text: string): string {
  return text.replaceAll(/[^ !#-[\]-~]/g, "'")
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The document of a problem, in the member order of decisions.md 14. */
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

/** What there is to say where nothing particular was said: interface.md names `detail` for all. */
function summary({ meaning }: ProblemType): string {
  return meaning.slice(0, meaning.indexOf('.') + 1)
}

/** Actors say `/name`; on the wire a place in the body is a URI fragment, as RFC 9457 shows it. */
function asFragment({ pointer, detail }: PointedError): PointedError {
  return { pointer: pointer.startsWith('/') ? `#${pointer}` : pointer, detail }
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

export function problemHeaders({
  retryAfterSecs,
  headers = NO_HEADERS,
}: Problem): Readonly<Record<string, string>> {
  return retryAfterSecs === undefined
    ? headers
    : { 'retry-after': String(retryAfterSecs), ...headers }
}
