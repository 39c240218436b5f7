/** Problem types and error codes of the public interface (decisions.md sections 14 and 23). */

/** The kebab-case names under `{errors_base_url}/errors/`, each with its status and title. */
export const PROBLEM_TYPES = {
  'bad-request': { status: 400, title: 'Bad request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  'token-expired': { status: 401, title: 'Token expired' },
  'token-revoked': { status: 401, title: 'Token revoked' },
  'payment-required': { status: 402, title: 'Payment required' },
  forbidden: { status: 403, title: 'Forbidden' },
  'insufficient-scope': { status: 403, title: 'Insufficient scope' },
  'policy-denied': { status: 403, title: 'Denied by policy' },
  'not-found': { status: 404, title: 'Not found' },
  'method-not-allowed': { status: 405, title: 'Method not allowed' },
  'not-acceptable': { status: 406, title: 'Not acceptable' },
  'request-timeout': { status: 408, title: 'Request timeout' },
  conflict: { status: 409, title: 'Conflict' },
  gone: { status: 410, title: 'Gone' },
  'payload-too-large': { status: 413, title: 'Payload too large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported media type' },
  'misdirected-request': { status: 421, title: 'Misdirected request' },
  'unprocessable-content': { status: 422, title: 'Unprocessable content' },
  'too-early': { status: 425, title: 'Too early' },
  'rate-limited': { status: 429, title: 'Rate limited' },
  'server-error': { status: 500, title: 'Server error' },
  'not-implemented': { status: 501, title: 'Not implemented' },
  'bad-gateway': { status: 502, title: 'Bad gateway' },
  'service-unavailable': { status: 503, title: 'Service unavailable' },
  'gateway-timeout': { status: 504, title: 'Gateway timeout' },
} as const

export type ProblemType = keyof typeof PROBLEM_TYPES

/** Error codes that are not the snake_case of a problem type. */
export const ERROR_CODES = [
  'invalid_grant',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'invalid_request',
  'invalid_redirect_uri',
  'invalid_client',
  'invalid_client_metadata',
  'invalid_token',
  'invalid_dpop_proof',
  'use_dpop_nonce',
  'pkce_required',
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'consent_required',
  'unauthorized_client',
  'captcha_degraded_throttled',
  'fixture_user_limit',
  'delegation_expired',
  'wallet_frozen',
  'wallet_not_provisioned',
  'budget_exceeded',
  'recipient_not_allowed',
  'contract_not_allowed',
  'billing_feature_disabled',
  'billing_suspended',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number] | SnakeCase<ProblemType>

type SnakeCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}_${SnakeCase<Tail>}`
  : Name

/** The `error` member that goes with a problem type unless a table names another. */
export function errorCodeOf(type: ProblemType): ErrorCode {
  return type.replaceAll('-', '_') as ErrorCode
}
