/** Pages of sign-in by phone, and of the phone number of the account. */
import type {
  OwnPhoneShown,
  PhoneShown,
} from '../../../actors/identity/sign-in/ways/phone/protocol.js'
import type { FlowPage, Locked } from '../../../actors/identity/sign-in/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { type Frame, renderPage } from '../platform/render.js'

type Asking = { readonly tag: 'page' | 'invalid_number' | 'country_refused' } | Locked
type Coding = { readonly tag: 'page' | 'sent' | 'wrong' } | Locked

const FAULTS: Readonly<
  Record<string, { readonly key: MessageKey; readonly field: string | null }>
> = {
  invalid_number: { key: 'phone.number.invalid', field: 'phone_number' },
  country_refused: { key: 'phone.number.country', field: 'phone_number' },
  wrong: { key: 'phone.code.wrong', field: 'code' },
  locked: { key: 'login.locked', field: null },
}

/** The form that asks for the number, in a sign-in. */
export function phonePage(shown: PhoneShown & Asking, context: ReplyContext): PageAnswer {
  return inFlow('phone-number', 'phone.title', shown, context, { typed: shown.typed })
}

export function phoneCodePage(shown: FlowPage & Coding, context: ReplyContext): PageAnswer {
  return inFlow('phone-code', 'phone.code.title', shown, context, { typed: null })
}

/** The form that asks for the number, on the account page. */
export function ownPhonePage(shown: OwnPhoneShown & Asking, context: ReplyContext): PageAnswer {
  return ofAccount('phone-number', 'phone.own.title', shown, context)
}

export function ownPhoneCodePage(shown: OwnPhoneShown & Coding, context: ReplyContext): PageAnswer {
  return ofAccount('phone-code', 'phone.code.title', shown, context)
}

function inFlow(
  template: string,
  titleKey: MessageKey,
  shown: FlowPage & (Asking | Coding),
  context: ReplyContext,
  content: Readonly<Record<string, unknown>>,
): PageAnswer {
  const { flow, tenant, uiLocales, formTargets } = shown
  const frame = { titleKey, branding: tenant, uiLocales }
  return { ...rendered(template, frame, shown, context, { ...content, flow }), formTargets }
}

function ofAccount(
  template: string,
  titleKey: MessageKey,
  shown: OwnPhoneShown & (Asking | Coding),
  context: ReplyContext,
): PageAnswer {
  const frame = { titleKey, branding: shown.tenant }
  return rendered(template, frame, shown, context, { flow: null, typed: shown.typed })
}

function rendered(
  template: string,
  frame: Omit<Frame, 'acceptLanguage'>,
  shown: Asking | Coding,
  { browser }: ReplyContext,
  content: Readonly<Record<string, unknown>>,
): PageAnswer {
  const fault = FAULTS[shown.tag]
  const retryAfterSecs = shown.tag === 'locked' ? shown.retryAfterSecs : undefined
  const html = renderPage(
    template,
    { ...frame, acceptLanguage: browser.languages, error: fault, retryAfterSecs },
    { ...content, csrf: browser.csrfToken, invalid: fault?.field != null },
  )
  return retryAfterSecs === undefined
    ? { html }
    : { html, headers: { 'retry-after': String(retryAfterSecs) } }
}
