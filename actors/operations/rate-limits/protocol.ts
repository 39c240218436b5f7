/** Quotas of the HTTP surface. decisions.md 14; draft-ietf-httpapi-ratelimit-headers. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type ThrottleProtocol = {
  /** Takes one unit of every window of the named policies, or none when one of them is used up. */
  take: Ask<TakeQuota, QuotaTaken | QuotaExceeded | QuotaUnknown>
  /** Adds what a process has counted by itself and answers with what all processes counted. */
  settle: Ask<SettleCounts, CountsSettled>
}

/** One limit of a policy: `limit` requests in `windowSecs` seconds. */
export type PolicyWindow = {
  /** Name on the wire, in RateLimit and RateLimit-Policy. */
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
 * The quotas of decisions.md 14. `default` is counted by each process and settled with the others
 * in the background; every other policy is counted in the coordination backend, request by request.
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

/** The policies of a deployment: `auth.registration_rate_limit_*` sizes that of registrations. */
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
  /** Who shares the quota. Never a secret in clear: hash tokens first. */
  readonly key: string
}
export type TakeQuota = { readonly quotas: readonly Quota[] }

/** What one window has left. */
export type WindowState = {
  readonly name: string
  readonly limit: number
  readonly windowSecs: number
  readonly remaining: number
  /** Seconds until the window starts afresh, at least 1. */
  readonly resetSecs: number
}
export type QuotaTaken = { readonly tag: 'taken'; readonly windows: readonly WindowState[] }
export type QuotaExceeded = {
  readonly tag: 'exceeded'
  readonly windows: readonly WindowState[]
  /** Names of the windows that are used up. */
  readonly violated: readonly string[]
  readonly retryAfterSecs: number
}
/** The coordination backend gives no answer and the policy does not run without it. */
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
  /** The total of all processes in the running window, in the order of the question; null when unknown. */
  readonly totals: readonly (number | null)[]
}

export const throttle = address<ThrottleProtocol>('throttle', [])
