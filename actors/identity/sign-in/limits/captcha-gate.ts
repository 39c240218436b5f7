/**
 * Decides when a sign-in needs a CAPTCHA and what happens while the provider is unavailable. `fail-closed` refuses
 * every such sign-in. `fail-degraded` admits as many as an allowance shared by all processes. There is no fail-open
 * mode (docs/reference/identity.md).
 */
import { quotaAddress } from '../../../domain/quota-address.js'
import type { LockoutCounts } from './lockout.js'
import type { CaptchaAway, CaptchaWanted, CaptchaWidget } from '../protocol.js'
import type { Captcha } from './captcha.js'

type CaptchaGateSettings = {
  readonly fail_mode: 'fail-degraded' | 'fail-closed'
  readonly captcha_after_failures: number
  readonly captcha_after_address_failures: number
  readonly captcha_degraded_per_minute: number
}

type GateVerdict =
  | { readonly tag: 'open' }
  /** Show the widget. */
  | CaptchaWanted
  | CaptchaAway

export interface CaptchaGate {
  /** The widget to render; null when CAPTCHA is disabled. */
  widget(): CaptchaWidget | null
  /** True if the failures of this name, or of this address, require a CAPTCHA. */
  isDue(failuresOfName: number, address: string): Promise<boolean>
  /** Counts one failed sign-in from an address. */
  failed(address: string): Promise<void>
  /** Judges the CAPTCHA response of a submitted form. */
  judge(response: string, address: string): Promise<GateVerdict>
}

const ADDRESS_WINDOW_SECS = 900
const MINUTE_SECS = 60

/** Used when the deployment has no CAPTCHA. */
export const NO_CAPTCHA: CaptchaGate = {
  widget: () => null,
  isDue: () => Promise.resolve(false),
  failed: () => Promise.resolve(),
  judge: () => Promise.resolve({ tag: 'open' }),
}

export function captchaGate(
  captcha: Pick<Captcha, 'verify'>,
  widget: () => CaptchaWidget,
  counts: LockoutCounts,
  settings: CaptchaGateSettings,
): CaptchaGate {
  const ofAddress = {
    limit: settings.captcha_after_address_failures,
    windowSecs: ADDRESS_WINDOW_SECS,
  }
  const degraded = { limit: settings.captcha_degraded_per_minute, windowSecs: MINUTE_SECS }

  return {
    widget,
    async isDue(failuresOfName, address) {
      if (failuresOfName >= settings.captcha_after_failures) return true
      const seen = await counts.take(`captcha:address:${quotaAddress(address)}`, ofAddress, 0)
      return seen.used >= ofAddress.limit
    },
    async failed(address) {
      await counts.take(`captcha:address:${quotaAddress(address)}`, ofAddress)
    },
    async judge(response, address) {
      const verdict = await captcha.verify(response, address)
      if (verdict === 'person') return { tag: 'open' }
      if (verdict === 'refused') return { tag: 'captcha' }
      if (settings.fail_mode === 'fail-closed') return { tag: 'captcha_unavailable' }
      const taken = await counts.take('captcha:degraded', degraded)
      if (taken.allowed) return { tag: 'open' }
      return { tag: 'captcha_throttled', retryAfterSecs: taken.resetSecs }
    },
  }
}
