/** What to do about each problem type, and whether to repeat the request, for GET /errors/{name}. */
import type { ProblemName } from '../response/problems.js'

export type Advice = {
  readonly remedy: string
  readonly retry: keyof typeof RETRY_RULES
}

/** Whether a client repeats a request. */
export const RETRY_RULES = {
  changed: 'Do not repeat the same request: it fails again. Send a corrected one.',
  token: 'Repeat the request once, with another token.',
  never: 'Do not repeat the request.',
  same: 'Repeat the same request. Repeat a write only with its idempotency-key.',
  wait: 'Wait for the seconds in Retry-After, then repeat the same request.',
  backoff:
    'Wait for Retry-After if there is one, otherwise a second that doubles each time. Repeat a write only with its ' +
    'idempotency-key.',
} as const

/** The texts of a language. Words of the protocol stand between backticks. Pages show them as code. */
export type ProblemTexts = {
  readonly words: {
    /** Precedes the error code. `{status}` is the HTTP status. */
    readonly status: string
    readonly cause: string
    readonly remedy: string
    readonly retry: string
    readonly all: string
    readonly intro: string
  }
  readonly retry: Readonly<Record<keyof typeof RETRY_RULES, string>>
  readonly types: Readonly<
    Record<ProblemName, readonly [title: string, meaning: string, remedy: string]>
  >
}

export const PROBLEM_ADVICE: Readonly<Record<ProblemName, Advice>> = {
  'bad-request': {
    remedy:
      'Read "errors" and "detail", and compare the request with its operation in /openapi.json.',
    retry: 'changed',
  },
  unauthorized: {
    remedy:
      'Send an access token of this service in the Authorization header. /auth.md says how to get one.',
    retry: 'token',
  },
  'token-expired': { remedy: 'Use the refresh token, or log in again.', retry: 'token' },
  'token-revoked': {
    remedy: 'Log in again, or ask the user for a new delegation. Drop the old token.',
    retry: 'token',
  },
  'delegation-expired': { remedy: 'Start a new delegation and ask the user.', retry: 'token' },
  'payment-required': {
    remedy:
      'Pay by one of the ways in the response, then repeat the request with the proof of payment.',
    retry: 'changed',
  },
  forbidden: {
    remedy:
      'Use a token of the right tenant, or ask an administrator for the role. "detail" names the reason.',
    retry: 'never',
  },
  'insufficient-scope': {
    remedy: 'Get a token with the scope that WWW-Authenticate names.',
    retry: 'token',
  },
  'policy-denied': {
    remedy: 'Ask an administrator of the tenant to change the policy.',
    retry: 'never',
  },
  'not-found': {
    remedy: 'Check the path and the id, and that the token belongs to the tenant of the object.',
    retry: 'never',
  },
  'method-not-allowed': { remedy: 'Use one of the methods in the Allow header.', retry: 'changed' },
  'not-acceptable': {
    remedy: 'Send Accept: application/json, or no Accept header.',
    retry: 'changed',
  },
  'request-timeout': {
    remedy: 'Check the connection, and send the body without pauses.',
    retry: 'same',
  },
  conflict: {
    remedy: 'Read the object again and decide on its current state. "detail" names the conflict.',
    retry: 'changed',
  },
  gone: { remedy: 'Start again: request a new link, code or object.', retry: 'never' },
  'payload-too-large': {
    remedy: 'Send a smaller body. /openapi.json has the limits of the operation.',
    retry: 'changed',
  },
  'uri-too-long': {
    remedy: 'Send long values in the body instead of the query.',
    retry: 'changed',
  },
  'unsupported-media-type': {
    remedy:
      'Send the Content-Type that the operation names in /openapi.json, without Content-Encoding.',
    retry: 'changed',
  },
  'misdirected-request': {
    remedy:
      'Use the host of the issuer, or of a tenant. Operators: add the host to server.allowed_hosts.',
    retry: 'changed',
  },
  'unprocessable-content': {
    remedy: 'Use a new idempotency-key for a new request, or correct what "detail" names.',
    retry: 'changed',
  },
  'too-early': { remedy: 'Keep the proof and send it after the minimum duration.', retry: 'wait' },
  'rate-limited': {
    remedy: 'Send fewer requests. The RateLimit header says how many are left.',
    retry: 'wait',
  },
  'headers-too-large': { remedy: 'Send fewer or shorter header fields.', retry: 'changed' },
  'server-error': {
    remedy: 'Report the request id to the operator of this service.',
    retry: 'backoff',
  },
  'not-implemented': {
    remedy:
      'Ask the operator to configure the service. /api/v1/capabilities lists what is available.',
    retry: 'never',
  },
  'bad-gateway': { remedy: 'Check the upstream server, or try again later.', retry: 'backoff' },
  'service-unavailable': {
    remedy: 'Wait. /health/ready says when the service is ready.',
    retry: 'wait',
  },
  'gateway-timeout': {
    remedy: 'Try again. If it happens again, ask for less at once.',
    retry: 'backoff',
  },
  'version-not-supported': {
    remedy: 'Send HTTP/1.1, or agree on HTTP/2 when the TLS connection is opened (ALPN).',
    retry: 'never',
  },
}
