/** RateLimit, RateLimit-Policy and the 429 problem. draft-ietf-httpapi-ratelimit-headers. */
import type {
  Policies,
  PolicyName,
  WindowState,
} from '../../actors/operations/rate-limits/protocol.js'
import type { HeaderPair } from '../http-exchange.js'
import type { Problem } from '../response/problems.js'

/** `"default";q=600;w=60` for each window of the policies. */
export function policyHeader(names: readonly PolicyName[], policies: Policies): HeaderPair {
  const items = names.flatMap((name) =>
    policies[name].map(({ name, limit, windowSecs }) => `"${name}";q=${limit};w=${windowSecs}`),
  )
  return ['ratelimit-policy', items.join(', ')]
}

/** `"default";r=599;t=42` for each window. */
export function stateHeader(windows: readonly WindowState[]): HeaderPair {
  const items = windows.map(
    ({ name, remaining, resetSecs }) => `"${name}";r=${remaining};t=${resetSecs}`,
  )
  return ['ratelimit', items.join(', ')]
}

export function rateLimited(violated: readonly string[], retryAfterSecs: number): Problem {
  return {
    name: 'rate-limited',
    detail: `The quota ${violated.join(', ')} is used up.`,
    retryAfterSecs,
    members: { 'violated-policies': violated },
  }
}
