/**
 * Limits on requested text messages, against SMS pumping: per network address, per number (a gap, a window and a day,
 * over all tenants), and per tenant and day. Counted in the coordination backend. The first limits apply whether or
 * not the number has an account, so that the response reveals nothing.
 */
import { quotaAddress } from '../../../../domain/quota-address.js'
import type { AttemptCounts } from '../../../../platform/attempts.js'
import type { SmsSettings } from './settings.js'

const DAY_SECS = 86_400

type TextQuotaVerdict =
  | { readonly tag: 'open' }
  | { readonly tag: 'locked'; readonly retryAfterSecs: number }

export interface TextQuota {
  /**
   * Counts one request for a code. `accountId`: the signed-in user who requests it, if there is one.
   * @throws CoordinationUnavailable when it cannot be counted.
   */
  ask(phoneNumber: string, address: string, accountId?: string): Promise<TextQuotaVerdict>
  /**
   * Counts `messages` (0 or 1) of a tenant. False: the tenant may send no more today.
   * @throws CoordinationUnavailable when they cannot be counted.
   */
  takeOfTenant(
    tenantId: string,
    environment: 'sandbox' | 'production',
    messages: 0 | 1,
  ): Promise<boolean>
}

export function textQuota(counts: AttemptCounts, settings: SmsSettings): TextQuota {
  const windowSecs = settings.requests_window_secs
  const ofAddress = { limit: settings.requests_per_address_max, windowSecs }
  const gapSecs = settings.per_number_gap_secs
  const ofDay = { limit: settings.per_number_per_day_max, windowSecs: DAY_SECS }
  const ofNumber = [
    ...(gapSecs === 0 ? [] : [{ name: 'gap', limit: 1, windowSecs: gapSecs }]),
    { name: 'window', limit: settings.requests_per_number_max, windowSecs },
    { name: 'day', ...ofDay },
  ]
  const limits = {
    sandbox: Math.min(settings.per_sandbox_per_day_max, settings.per_tenant_per_day_max),
    production: settings.per_tenant_per_day_max,
  }
  return {
    async ask(phoneNumber, address, accountId) {
      if (accountId !== undefined) {
        const own = await counts.take(`sms:account:${accountId}`, ofDay)
        if (!own.allowed) return { tag: 'locked', retryAfterSecs: own.resetSecs }
      }
      const here = await counts.take(`sms:address:${quotaAddress(address)}`, ofAddress)
      if (!here.allowed) return { tag: 'locked', retryAfterSecs: here.resetSecs }
      for (const { name, ...window } of ofNumber) {
        const taken = await counts.take(`sms:${name}:${phoneNumber}`, window)
        if (!taken.allowed) return { tag: 'locked', retryAfterSecs: taken.resetSecs }
      }
      return { tag: 'open' }
    },
    async takeOfTenant(tenantId, environment, messages) {
      const window = { limit: limits[environment], windowSecs: DAY_SECS }
      return (await counts.take(`sms:tenant:${tenantId}`, window, messages)).allowed
    },
  }
}
