/** CAPTCHA on a page: the widget, its CSP sources, and pages for an unavailable CAPTCHA. */
import { z } from 'zod'
import type { CaptchaWidget } from '../../../actors/identity/sign-in/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { CAPTCHA_SCRIPT } from '../platform/script.js'

const RESPONSE_LENGTH_MAX = 4_096
const answer = z.string().max(RESPONSE_LENGTH_MAX).default('')

/** The form fields that the providers' scripts fill in. */
export const CAPTCHA_FIELDS = {
  'cf-turnstile-response': answer,
  'h-captcha-response': answer,
  'g-recaptcha-response': answer,
  /** The answer of the built-in proof of work. */
  'captcha-response': answer,
}

type Answered = { readonly [Field in keyof typeof CAPTCHA_FIELDS]: string }

/** hCaptcha fills in two of them. */
export const captchaIn = (body: Answered): string =>
  body['captcha-response'] ||
  body['cf-turnstile-response'] ||
  body['h-captcha-response'] ||
  body['g-recaptcha-response']

const CLASSES = { turnstile: 'cf-turnstile', hcaptcha: 'h-captcha', recaptcha: 'g-recaptcha' }
/** CSP sources of the widgets in addition to their script, as documented by the providers. */
const SOURCES: Readonly<Record<keyof typeof CLASSES, readonly string[]>> = {
  turnstile: [],
  hcaptcha: ['https://hcaptcha.com', 'https://*.hcaptcha.com'],
  recaptcha: ['https://www.gstatic.com'],
}

type CaptchaShown = {
  readonly className: string
  readonly siteKey: string
  readonly script: string
  /** Subresource Integrity, for our own script. */
  readonly integrity?: string | undefined
}

/** The widget for the template and its CSP sources; empty when no widget can be shown. */
export function captchaParts(widget: CaptchaWidget | null): {
  readonly shown: CaptchaShown | null
  readonly sources: readonly string[]
  /** The page runs a script of ours. */
  readonly scripted?: boolean | undefined
} {
  if (widget === null) return { shown: null, sources: [] }
  if (widget.provider === 'pow') {
    const { path: script, integrity } = CAPTCHA_SCRIPT
    const shown = { className: 'captcha-pow', siteKey: widget.challenge, script, integrity }
    return { shown, sources: [], scripted: true }
  }
  if (widget.siteKey === null) return { shown: null, sources: [] }
  const { provider, siteKey, script } = widget
  return {
    shown: { className: CLASSES[provider], siteKey, script },
    sources: [new URL(script).origin, ...SOURCES[provider]],
  }
}

export function captchaUnavailablePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  const { browser, requestId } = context
  const acceptLanguage = browser.languages
  const html = failurePage({ status: 503, key: 'error.captcha', acceptLanguage, requestId })
  return { html, headers: { 'retry-after': '30' } }
}

/** 429 captcha_degraded_throttled. */
export function captchaThrottledPage(
  { retryAfterSecs }: { readonly retryAfterSecs: number },
  { browser, requestId }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const code = 'captcha_degraded_throttled'
  const html = failurePage({ status: 429, key: 'error.captcha', acceptLanguage, requestId, code })
  return { html, headers: { 'retry-after': String(retryAfterSecs) } }
}
