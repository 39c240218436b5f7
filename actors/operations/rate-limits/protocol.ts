/**
 * Rate limits of the HTTP API. docs/reference/operations.md, Rate limits;
 * draft-ietf-httpapi-ratelimit-headers.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type RateLimitsProtocol = {
  /**
   * Takes one unit from every window of the named policies, or none when one window is exhausted.
   */
  take: Ask<TakeQuota, QuotaTaken | QuotaExceeded | QuotaUnknown>
  /** Adds the counts of one process and returns the totals of all processes. */
  settle: Ask<SettleCounts, CountsSettled>
}

/** One window of a policy: `limit` requests in `windowSecs` seconds. */
export type PolicyWindow = {
  /** Name in the RateLimit and RateLimit-Policy fields. */
  readonly name: string
  readonly limit: number
  readonly windowSecs: number
}

const MINUTE_SECS = 60
const DAY_SECS = 86_400

const perMinute = (name: string, limit: number): readonly [PolicyWindow] => [
  { name, limit, windowSecs: MINUTE_SECS },
]

/**
 * The built-in policies. `default` is counted by each process and settled with the others in the
 * background. Every other policy is counted in the coordination backend with each request.
 */
export const POLICIES = {
  default: perMinute('default', 600),
  registration: [
    { name: 'registration', limit: 10, windowSecs: MINUTE_SECS },
    { name: 'registration-day', limit: 100, windowSecs: DAY_SECS },
  ],
  'agent-auth': perMinute('agent-auth', 60),
  token: perMinute('token', 120),
  authorize: perMinute('authorize', 60),
  device: perMinute('device', 30),
  'check-sso': perMinute('check-sso', 20),
  commerce: perMinute('commerce', 60),
  'card-events': perMinute('card-events', 6_000),
  mcp: perMinute('mcp', 60),
  egress: perMinute('egress', 600),
  'webhook-test': perMinute('webhook-test', 10),
  scim: perMinute('scim', 600),
} as const satisfies Record<string, readonly [PolicyWindow, ...PolicyWindow[]]>

export type PolicyName = keyof typeof POLICIES
export type Policies = Readonly<Record<PolicyName, readonly [PolicyWindow, ...PolicyWindow[]]>>

/** The policies of a deployment. `auth.registration_rate_limit_*` sets the registration limits. */
export function policiesWith(settings: {
  readonly registration_rate_limit_max: number
  readonly registration_rate_limit_window_secs: number
}): Policies {
  const [first, day] = POLICIES.registration
  const limit = settings.registration_rate_limit_max
  const windowSecs = settings.registration_rate_limit_window_secs
  return { ...POLICIES, registration: [{ ...first, limit, windowSecs }, day] }
}

export type Quota = {
  readonly policy: PolicyName
  /** The partition key of the quota. Never a plain secret: hash tokens first. */
  readonly key: string
}
export type TakeQuota = { readonly quotas: readonly Quota[] }

/** Remaining quota of a window. */
export type WindowState = {
  readonly name: string
  readonly limit: number
  readonly windowSecs: number
  readonly remaining: number
  /** Seconds until the window resets, at least 1. */
  readonly resetSecs: number
}
export type QuotaTaken = { readonly tag: 'taken'; readonly windows: readonly WindowState[] }
export type QuotaExceeded = {
  readonly tag: 'exceeded'
  readonly windows: readonly WindowState[]
  /** Names of the exhausted windows. */
  readonly violated: readonly string[]
  readonly retryAfterSecs: number
}
/** The coordination backend is unavailable and the policy requires it. */
export type QuotaUnknown = { readonly tag: 'unknown' }

export type LocalCount = {
  readonly policy: PolicyName
  readonly key: string
  /** Requests since the last settlement. */
  readonly count: number
}
export type SettleCounts = { readonly counts: readonly LocalCount[] }
export type CountsSettled = {
  readonly tag: 'settled'
  /** Totals of all processes in the current window, in request order. Null when unknown. */
  readonly totals: readonly (number | null)[]
}

export const rateLimits = address<RateLimitsProtocol>('rate-limits')
