/** Pages of guests: the address that keeps the account, and its code. */
import type { AddressShown } from '../../../actors/identity/sign-in/ways/guest/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { failurePage } from '../platform/error.js'
import { renderPage } from '../platform/render.js'

type Asked = AddressShown &
  (
    | { readonly tag: 'page' | 'sent' | 'invalid_email' | 'wrong' | 'taken' }
    | { readonly tag: 'locked'; readonly retryAfterSecs: number }
  )

const FAULTS: Readonly<
  Record<string, { readonly key: MessageKey; readonly field: string | null }>
> = {
  invalid_email: { key: 'login.email.invalid', field: 'email' },
  wrong: { key: 'mail.wrong', field: 'code' },
  taken: { key: 'guest.taken', field: null },
  locked: { key: 'login.locked', field: null },
}

export function guestAddressPage(shown: Asked, context: ReplyContext): PageAnswer {
  return rendered('guest-address', 'guest.title', shown, context)
}

export function guestCodePage(shown: Asked, context: ReplyContext): PageAnswer {
  return rendered('guest-code', 'phone.code.title', shown, context)
}

export function guestsThrottledPage(
  { retryAfterSecs }: { readonly retryAfterSecs: number },
  { browser, requestId }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const html = failurePage({ status: 429, key: 'error.429', acceptLanguage, requestId })
  return { html, headers: { 'retry-after': String(retryAfterSecs) } }
}

function rendered(
  template: string,
  titleKey: MessageKey,
  shown: Asked,
  { browser }: ReplyContext,
): PageAnswer {
  const fault = FAULTS[shown.tag]
  const retryAfterSecs = shown.tag === 'locked' ? shown.retryAfterSecs : undefined
  const html = renderPage(
    template,
    {
      titleKey,
      branding: shown.tenant,
      acceptLanguage: browser.languages,
      error: fault,
      retryAfterSecs,
    },
    {
      email: shown.email,
      csrf: browser.csrfToken,
      invalid: fault?.field != null,
      taken: shown.tag === 'taken',
    },
  )
  return retryAfterSecs === undefined
    ? { html }
    : { html, headers: { 'retry-after': String(retryAfterSecs) } }
}
