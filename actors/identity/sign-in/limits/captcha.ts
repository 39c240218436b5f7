/**
 * Verifies CAPTCHA responses with a provider. The three supported providers share almost one protocol: `siteverify`
 * takes a form with the secret, the response and the client address, and returns JSON with `success`. Requests use the
 * outbound dialer, follow no redirects and are bounded in bytes and time.
 */
import { readBody } from '../../../platform/outbound-http/bounded-body.js'
import type { Resolver } from '../../../platform/outbound-http/dialer.js'
import { type EgressSettings, outbound } from '../../../platform/outbound-http/outbound.js'
import { judgeTarget } from '../../../platform/outbound-http/targets.js'
import { createUpstreams } from '../../../platform/outbound-http/upstreams.js'
import type { CaptchaWidget } from '../protocol.js'
import { parseStrictJson } from '../../../platform/jose/strict-json.js'

const LIMIT_MS = 3_000
const ANSWER_BYTES_MAX = 16 * 1024
const ANSWER_DEPTH_MAX = 8
const RESPONSE_LENGTH_MAX = 4_096
const ORIGINS_MAX = 2

/** Providers elsewhere. `pow` is built in: pow-captcha.ts. */
type CaptchaProvider = 'turnstile' | 'hcaptcha' | 'recaptcha'

const VERIFY_URLS: Readonly<Record<CaptchaProvider, string>> = {
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
  hcaptcha: 'https://api.hcaptcha.com/siteverify',
  recaptcha: 'https://www.google.com/recaptcha/api/siteverify',
}
const SCRIPT_URLS: Readonly<Record<CaptchaProvider, string>> = {
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
  hcaptcha: 'https://js.hcaptcha.com/1/api.js',
  recaptcha: 'https://www.google.com/recaptcha/api.js',
}

/** The widget of a provider, for a page. */
export function providerWidget(challenge: {
  readonly captcha_provider: CaptchaProvider
  readonly captcha_site_key?: string | undefined
  readonly captcha_script_url?: string | undefined
}): CaptchaWidget {
  const { captcha_provider: provider, captcha_site_key: siteKey = null } = challenge
  return { provider, siteKey, script: challenge.captcha_script_url ?? SCRIPT_URLS[provider] }
}

/** Error codes that point to our configuration and not to the user's response. */
const OURS = /secret|sitekey|bad-request|internal-error/

/** `unknown`: the provider is unavailable or returned an invalid answer. */
export type CaptchaVerdict = 'person' | 'refused' | 'unknown'

export interface Captcha {
  /** Never throws. */
  verify(response: string, address: string): Promise<CaptchaVerdict>
  close(): Promise<void>
}

type CaptchaOptions = {
  readonly challenge: {
    readonly captcha_provider: CaptchaProvider
    readonly captcha_secret?: string | undefined
    readonly captcha_verify_url?: string | undefined
  }
  readonly settings: EgressSettings
  /** DNS resolver, replaced in tests. */
  readonly resolve?: Resolver | undefined
}

export function openCaptcha({ challenge, settings, resolve }: CaptchaOptions): Captcha {
  const { captcha_provider: provider, captcha_secret: secret, captcha_verify_url: own } = challenge
  const { dialer, rules } = outbound(settings, {
    connectTimeoutMs: LIMIT_MS,
    resolve,
    isOperators: true,
  })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)
  const target = judgeTarget(own ?? VERIFY_URLS[provider], rules)

  return {
    async verify(response, address) {
      if (response === '' || response.length > RESPONSE_LENGTH_MAX) return 'refused'
      if (target.tag === 'refused') return 'unknown'
      const { origin, pathname, search } = target.url
      try {
        const { statusCode, body } = await upstreams.of(origin).request({
          method: 'POST',
          path: pathname + search,
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'svc' },
          body: new URLSearchParams({
            secret: secret ?? '',
            response,
            remoteip: address,
          }).toString(),
          signal: AbortSignal.timeout(LIMIT_MS),
        })
        const bytes = await readBody(body, ANSWER_BYTES_MAX)
        if (bytes === undefined || statusCode !== 200) return 'unknown'
        return judgeAnswer(parseStrictJson(bytes, ANSWER_DEPTH_MAX))
      } catch {
        return 'unknown'
      }
    },
    close: () => upstreams.destroy(),
  }
}

function judgeAnswer(answer: unknown): CaptchaVerdict {
  if (typeof answer !== 'object' || answer === null) return 'unknown'
  const { success, 'error-codes': codes } = answer as Record<string, unknown>
  if (success === true) return 'person'
  if (success !== false) return 'unknown'
  return Array.isArray(codes) && codes.some((code) => OURS.test(String(code)))
    ? 'unknown'
    : 'refused'
}
