/**
 * Rate limit on requested mail, counted in the coordination backend per typed address, whether or not it has an
 * account, and per network address. The response is the same in both cases.
 */
import { quotaAddress } from '../../../domain/quota-address.js'
import type { LockoutCounts } from './lockout.js'

/** Settings of [email]. */
export type MailQuotaSettings = {
  readonly requests_per_name_max: number
  readonly requests_per_address_max: number
  readonly requests_window_secs: number
}

type MailQuotaVerdict =
  | { readonly tag: 'open' }
  | { readonly tag: 'locked'; readonly retryAfterSecs: number }

export interface MailQuota {
  /**
   * @param own another name that counts when strangers have used up the first. Null: none.
   * @throws CoordinationUnavailable when it cannot be counted.
   */
  ask(name: string, address: string, own?: () => Promise<string | null>): Promise<MailQuotaVerdict>
}

export function mailQuota(counts: LockoutCounts, settings: MailQuotaSettings): MailQuota {
  const windowSecs = settings.requests_window_secs
  const ofName = { limit: settings.requests_per_name_max, windowSecs }
  const ofAddress = { limit: settings.requests_per_address_max, windowSecs }
  return {
    async ask(name, address, ownOf) {
      const here = await counts.take(`mail:address:${quotaAddress(address)}`, ofAddress)
      if (!here.allowed) return { tag: 'locked', retryAfterSecs: here.resetSecs }
      let taken = await counts.take(`mail:name:${name}`, ofName)
      const own = taken.allowed ? null : await ownOf?.()
      if (own != null) taken = await counts.take(`mail:name:${own}`, ofName)
      if (!taken.allowed) return { tag: 'locked', retryAfterSecs: taken.resetSecs }
      return { tag: 'open' }
    },
  }
}
