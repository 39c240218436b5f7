/** The pages of the device grant: code entry, consent and result. */
import type {
  CodeAsked,
  CodeUnknown,
  DeviceAsked,
  DeviceDecided,
  GuessesSpent,
  NothingToGrant,
} from '../../../actors/oauth/tokens/device-and-ciba/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { type Frame, renderPage } from '../platform/render.js'

export const DEVICE_PAGE = '/oauth/device/verify'

/** The code entry page, with the error of the last code. */
export function deviceCodePage(
  shown: CodeAsked | CodeUnknown | GuessesSpent,
  { browser: { csrfToken: csrf, languages } }: ReplyContext,
): PageAnswer {
  const frame: Frame = {
    titleKey: 'device.title',
    branding: null,
    uiLocales: shown.uiLocales,
    acceptLanguage: languages,
  }
  const content = { action: DEVICE_PAGE, csrf, typed: '', invalid: false }
  switch (shown.tag) {
    case 'code_asked':
      return { html: renderPage('device-code', frame, content) }
    case 'code_unknown': {
      const error = { key: 'device.unknown', field: 'user_code' } as const
      const { typed } = shown
      const html = renderPage(
        'device-code',
        { ...frame, error },
        { ...content, typed, invalid: true },
      )
      return { html }
    }
    case 'guesses_spent': {
      const error = { key: 'device.spent', field: null } as const
      const { retryAfterSecs } = shown
      const html = renderPage('device-code', { ...frame, error, retryAfterSecs }, content)
      return { html, headers: { 'retry-after': String(retryAfterSecs) } }
    }
  }
}

/** The consent page, with the code to compare. */
export function deviceConfirmPage(
  page: DeviceAsked | NothingToGrant,
  { browser: { csrfToken: csrf, languages } }: ReplyContext,
): PageAnswer {
  const { tenant: branding, uiLocales } = page
  const frame: Frame = {
    titleKey: 'device.confirm.title',
    branding,
    uiLocales,
    acceptLanguage: languages,
    ...(page.tag === 'asked' ? {} : { error: { key: 'device.nothing', field: null } }),
  }
  return { html: renderPage('device-confirm', frame, { ...page, action: DEVICE_PAGE, csrf }) }
}

export function deviceDecidedPage(
  decided: DeviceDecided,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const { approved, tenant: branding, uiLocales } = decided
  const key = approved ? 'device.approved' : 'device.denied'
  const frame = {
    titleKey: `${key}.title`,
    branding,
    uiLocales,
    acceptLanguage: languages,
  } as const
  return { html: renderPage('device-decided', frame, { ...decided, key }) }
}
