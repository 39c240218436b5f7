/** Pages for passwords, invitations, email verification and sign-in by mail. */
import type {
  ChangeShown,
  ForgotShown,
  InvitationShown,
  NewPasswordShown,
  PasswordSet,
  VerificationShown,
} from '../../../actors/identity/sign-in/recovery/protocol.js'
import type {
  FlowPage,
  ExpiredLink,
  LinkPage,
  MailShown,
  OtherBrowser,
} from '../../../actors/identity/sign-in/protocol.js'
import type { PageTenant } from '../../../actors/domain/tenants/branding.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { captchaParts } from './captcha.js'
import { failurePage } from '../platform/error.js'
import { chooseLanguage } from '../platform/language.js'
import { type Frame, renderPage } from '../platform/render.js'

/** Where the user continues afterwards. */
const ACCOUNT = { path: '/auth/account', key: 'passkey.new.back' } as const

type Locked = { readonly tag: 'locked'; readonly retryAfterSecs: number }
type Fault = { readonly key: MessageKey; readonly field: string | null }

/** The title of each template. */
const TITLES = {
  'mail-sent': 'mail.title',
  forgot: 'forgot.title',
  link: 'link.title',
  'password-reset': 'password.title',
  'password-done': 'password.done.title',
  'password-change': 'password.change.title',
  invitation: 'invitation.title',
  'email-confirm': 'email.title',
} as const satisfies Readonly<Record<string, MessageKey>>
type Template = keyof typeof TITLES

const FAULTS: Readonly<Record<string, Fault>> = {
  weak_password: { key: 'invite.weak', field: 'password' },
  common_password: { key: 'password.common', field: 'password' },
  breached_password: { key: 'password.breached', field: 'password' },
}

const FORGOT_FAULTS: Readonly<Record<string, Fault>> = {
  invalid_email: { key: 'login.email.invalid', field: 'email' },
  captcha: { key: 'captcha.wanted', field: null },
}

export function mailSentPage(
  shown: MailShown & ({ readonly tag: 'page' | 'wrong' } | Locked),
  context: ReplyContext,
): PageAnswer {
  const fault = shown.tag === 'wrong' ? ({ key: 'mail.wrong', field: 'code' } as const) : null
  return ofFlow('mail-sent', shown, fault, context, { offers: shown.offers })
}

/** After requesting a reset: the same text as for sign-in by mail, without a code. */
export function resetSentPage(shown: FlowPage & { tag: 'requested' }, context: ReplyContext) {
  return ofFlow('mail-sent', shown, null, context, { offers: null })
}

export function forgotPage(
  shown: ForgotShown & ({ readonly tag: 'page' | 'invalid_email' | 'captcha' } | Locked),
  context: ReplyContext,
): PageAnswer {
  const fault = FORGOT_FAULTS[shown.tag] ?? null
  const { shown: captcha, sources: widget, scripted } = captchaParts(shown.captcha)
  const content = { email: shown.email, captcha }
  return { ...ofFlow('forgot', shown, fault, context, content), widget, scripted }
}

export function linkPage({ tenant, flow }: LinkPage, context: ReplyContext): PageAnswer {
  return ofTenant('link', tenant, null, context, { flow })
}

export function otherBrowserPage({ tenant }: OtherBrowser, context: ReplyContext): PageAnswer {
  return notice('link.browser.title', 'link.browser', tenant, context)
}

export function expiredLinkPage({ tenant }: ExpiredLink, context: ReplyContext): PageAnswer {
  const path = `/auth/login?tenant_id=${tenant?.id}`
  const link = tenant === null ? null : ({ path, key: 'login.submit' } as const)
  return notice('link.gone.title', 'link.gone', tenant, context, link)
}

/** Too many mails were requested. */
export function lockedPage(
  { retryAfterSecs }: { readonly retryAfterSecs: number },
  { browser, requestId }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const html = failurePage({ status: 429, key: 'error.429', acceptLanguage, requestId })
  return { html, headers: { 'retry-after': String(retryAfterSecs) } }
}

export function resetPage(
  shown: NewPasswordShown & { readonly tag: string },
  context: ReplyContext,
): PageAnswer {
  const fault = FAULTS[shown.tag] ?? null
  const { tenant, email } = shown
  return ofTenant('password-reset', tenant, fault, context, { email })
}

export function passwordDonePage({ tenant }: PasswordSet, context: ReplyContext): PageAnswer {
  const content = { tenantId: tenant.id }
  return ofTenant('password-done', tenant, null, context, content)
}

export function changePage(
  shown: ChangeShown & ({ readonly tag: string } | Locked),
  context: ReplyContext,
): PageAnswer {
  const wrong = { key: 'password.current.wrong', field: 'current' } as const
  const fault = shown.tag === 'wrong' ? wrong : (FAULTS[shown.tag] ?? null)
  const refusal = 'retryAfterSecs' in shown ? shown : fault
  const { tenant, email } = shown
  return ofTenant('password-change', tenant, refusal, context, { email })
}

export function invitationPage(
  shown: InvitationShown & { readonly tag: string },
  context: ReplyContext,
): PageAnswer {
  const { tenant, email, displayName, isKnown, expiresAt } = shown
  const { time } = chooseLanguage(null, context.browser.languages, tenant.locale)
  return ofTenant('invitation', tenant, FAULTS[shown.tag] ?? null, context, {
    email,
    displayName,
    isKnown,
    until: time(expiresAt),
  })
}

export function verificationPage(shown: VerificationShown, context: ReplyContext): PageAnswer {
  const { tenant, email } = shown
  return ofTenant('email-confirm', tenant, null, context, { email })
}

export function verifiedPage({ tenant }: VerificationShown, context: ReplyContext): PageAnswer {
  return notice('email.done.title', 'email.done', tenant, context, ACCOUNT)
}

/** This is not the browser that requested the mail, or it is no longer signed in to the account. */
export function verifyElsewherePage({ tenant }: OtherBrowser, context: ReplyContext): PageAnswer {
  return notice('email.elsewhere.title', 'email.elsewhere', tenant, context, ACCOUNT)
}

export function verificationSentPage(
  { tenant }: { readonly tenant: PageTenant },
  context: ReplyContext,
): PageAnswer {
  return notice('mail.title', 'email.sent', tenant, context, ACCOUNT)
}

type Content = Readonly<Record<string, unknown>>

function ofFlow(
  template: Template,
  shown: FlowPage & ({ readonly tag: string } | Locked),
  fault: Fault | null,
  context: ReplyContext,
  content: Content,
): PageAnswer {
  const { tenant, uiLocales, flow, formTargets } = shown
  const refusal = 'retryAfterSecs' in shown ? shown : fault
  const frame = { branding: tenant, uiLocales }
  return { ...rendered(template, frame, refusal, context, { ...content, flow }), formTargets }
}

function ofTenant(
  template: Template,
  tenant: PageTenant,
  refusal: Fault | Locked | null,
  context: ReplyContext,
  content: Content,
): PageAnswer {
  return rendered(template, { branding: tenant }, refusal, context, content)
}

function rendered(
  template: Template,
  frame: Pick<Frame, 'branding' | 'uiLocales'>,
  refusal: Fault | Locked | null,
  { browser, path }: ReplyContext,
  content: Content,
): PageAnswer {
  const lockedSecs = refusal !== null && 'retryAfterSecs' in refusal ? refusal.retryAfterSecs : null
  const fault = refusal === null || 'retryAfterSecs' in refusal ? null : refusal
  const locked =
    lockedSecs === null
      ? {}
      : {
          error: { key: 'login.locked', field: null } as const,
          retryAfterSecs: lockedSecs,
        }
  const html = renderPage(
    template,
    {
      ...frame,
      titleKey: TITLES[template],
      acceptLanguage: browser.languages,
      ...(fault === null ? {} : { error: fault }),
      ...locked,
    },
    { ...content, csrf: browser.csrfToken, action: path, invalid: fault?.field ?? false },
  )
  return lockedSecs === null ? { html } : { html, headers: { 'retry-after': String(lockedSecs) } }
}

function notice(
  titleKey: MessageKey,
  key: MessageKey,
  branding: PageTenant | null,
  { browser }: ReplyContext,
  link: { readonly path: string; readonly key: MessageKey } | null = null,
): PageAnswer {
  const frame = { titleKey, branding, acceptLanguage: browser.languages }
  return { html: renderPage('notice', frame, { key, link }) }
}
