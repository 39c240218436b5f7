/**
 * Counts requests in the coordination backend, so that all processes share the rate limits.
 *
 * When the backend is unavailable, `registration` is refused, because unlimited registrations are
 * the risk that the limit exists for. Every other policy is then counted by this process alone, so
 * that a lost cache does not stop sign-ins. After a failure the backend is not called for a moment,
 * so that not every request pays its timeout. A refusal is also kept in memory for a moment, so
 * that a flood from one address costs the backend next to nothing.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import { LocalCounts } from './local-counts.js'
import { recentRefusals } from './recent-refusals.js'
import {
  type LocalCount,
  POLICIES,
  type Policies,
  type PolicyName,
  type PolicyWindow,
  type Quota,
  rateLimits,
  type RateLimitsProtocol,
  type WindowState,
} from './protocol.js'

/** Policies that are refused while the coordination backend is unavailable. */
const FAIL_CLOSED: ReadonlySet<PolicyName> = new Set<PolicyName>(['registration'])

/** After a failure the backend is not called for this time. */
const BACKEND_REST_MS = 1_000
/** Settling only adds counts. The limit is enforced where requests are admitted. */
const NO_LIMIT = 1_000_000_000
const SETTLE_AT_ONCE_MAX = 16

/**
 * The part of the coordination port that this actor uses (storage/platform/coordination/port.ts).
 */
export interface SharedCounts {
  take(
    key: string,
    window: { readonly limit: number; readonly windowSecs: number },
    cost?: number,
  ): Promise<{
    readonly allowed: boolean
    readonly used: number
    readonly remaining: number
    readonly resetSecs: number
  }>
}

type RateLimitsNeeds = {
  readonly coordination: SharedCounts
  readonly clock: Clock
  readonly log: Logger
  /** Default: `POLICIES`. */
  readonly policies?: Policies | undefined
}

type WindowQuota = {
  readonly policy: PolicyName
  readonly window: PolicyWindow
  readonly key: string
}
type WindowTaken = {
  readonly state: WindowState
  readonly allowed: boolean
  readonly quota: WindowQuota
}

export const rateLimitsActor = defineActor<RateLimitsProtocol, RateLimitsNeeds>({
  address: rateLimits,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: { settle: () => 'settle' },
  create: ({ coordination, clock, log, policies = POLICIES }) => {
    const local = new LocalCounts(clock)
    const refusals = recentRefusals(clock)
    let restUntilMs = 0

    /** @returns undefined when the backend is unavailable. */
    async function shared({ window, key }: WindowQuota, cost: number, limit = window.limit) {
      if (clock.monotonicMs() < restUntilMs) return undefined
      try {
        const { windowSecs } = window
        return await coordination.take(`${window.name}:${key}`, { limit, windowSecs }, cost)
      } catch (error) {
        if (clock.monotonicMs() >= restUntilMs) {
          log.warn({ err: error }, 'rate limits: coordination backend unavailable')
        }
        restUntilMs = clock.monotonicMs() + BACKEND_REST_MS
        return undefined
      }
    }

    const windowsOf = ({ policy, key }: Quota): WindowQuota[] =>
      policies[policy].map((window) => ({ policy, window, key }))

    async function take(quota: WindowQuota): Promise<WindowTaken | undefined> {
      const { window, policy } = quota
      const answer =
        (await shared(quota, 1)) ??
        (FAIL_CLOSED.has(policy) ? undefined : local.take(`${window.name}:${quota.key}`, window))
      if (answer === undefined) return undefined
      const { allowed, remaining, resetSecs } = answer
      const { name, limit, windowSecs } = window
      return { allowed, quota, state: { name, limit, windowSecs, remaining, resetSecs } }
    }

    return {
      async take({ quotas }) {
        const remembered = refusals.of(quotas)
        if (remembered !== undefined) return remembered
        const results = await Promise.all(quotas.flatMap(windowsOf).map(take))
        const known = results.filter((taken) => taken !== undefined)
        const windows = known.map(({ state }) => state)
        const refused = known.filter(({ allowed }) => !allowed)
        if (known.length === results.length && refused.length === 0)
          return { tag: 'taken', windows }
        // All or none: units taken from the other windows are returned.
        const returned = known.filter(({ allowed }) => allowed)
        await Promise.all(returned.map(({ quota }) => shared(quota, -1)))
        if (known.length < results.length) return { tag: 'unknown' }
        return refusals.remember(quotas, {
          tag: 'exceeded',
          windows,
          violated: refused.map(({ state }) => state.name),
          retryAfterSecs: Math.max(...refused.map(({ state }) => state.resetSecs)),
        })
      },

      async settle({ counts }) {
        const totals: (number | null)[] = []
        for (let start = 0; start < counts.length; start += SETTLE_AT_ONCE_MAX) {
          const batch = counts.slice(start, start + SETTLE_AT_ONCE_MAX)
          const answers = await Promise.all(batch.map(add))
          totals.push(...answers)
        }
        return { tag: 'settled', totals }
      },
    }

    async function add({ policy, key, count }: LocalCount): Promise<number | null> {
      const window = policies[policy][0]
      const answer = await shared({ policy, window, key }, count, NO_LIMIT)
      return answer?.used ?? null
    }
  },
})
