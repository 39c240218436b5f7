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
  return ofFlow('mail-sent', 'mail.title', shown, fault, context, { offers: shown.offers })
}

/** After requesting a reset: the same text as for sign-in by mail, without a code. */
export function resetSentPage(shown: FlowPage & { tag: 'requested' }, context: ReplyContext) {
  return ofFlow('mail-sent', 'mail.title', shown, null, context, { offers: null })
}

export function forgotPage(
  shown: ForgotShown & ({ readonly tag: 'page' | 'invalid_email' | 'captcha' } | Locked),
  context: ReplyContext,
): PageAnswer {
  const fault = FORGOT_FAULTS[shown.tag] ?? null
  const { shown: captcha, sources: widget, scripted } = captchaParts(shown.captcha)
  const content = { email: shown.email, captcha }
  return { ...ofFlow('forgot', 'forgot.title', shown, fault, context, content), widget, scripted }
}

export function linkPage({ tenant, flow }: LinkPage, context: ReplyContext): PageAnswer {
  return ofTenant('link', 'link.title', tenant, null, context, { flow })
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
  return ofTenant('password-reset', 'password.title', tenant, fault, context, { email })
}

export function passwordDonePage({ tenant }: PasswordSet, context: ReplyContext): PageAnswer {
  const content = { tenantId: tenant.id }
  return ofTenant('password-done', 'password.done.title', tenant, null, context, content)
}

export function changePage(
  shown: ChangeShown & ({ readonly tag: string } | Locked),
  context: ReplyContext,
): PageAnswer {
  const wrong = { key: 'password.current.wrong', field: 'current' } as const
  const fault = shown.tag === 'wrong' ? wrong : (FAULTS[shown.tag] ?? null)
  const { tenant, email } = shown
  const locked = 'retryAfterSecs' in shown ? shown.retryAfterSecs : null
  const title = 'password.change.title'
  return ofTenant('password-change', title, tenant, fault, context, { email }, locked)
}

export function invitationPage(
  shown: InvitationShown & { readonly tag: string },
  context: ReplyContext,
): PageAnswer {
  const { tenant, email, displayName, isKnown, expiresAt } = shown
  const { time } = chooseLanguage(null, context.browser.languages, tenant.locale)
  return ofTenant('invitation', 'invitation.title', tenant, FAULTS[shown.tag] ?? null, context, {
    email,
    displayName,
    isKnown,
    until: time(expiresAt),
  })
}

export function verificationPage(shown: VerificationShown, context: ReplyContext): PageAnswer {
  const { tenant, email } = shown
  return ofTenant('email-confirm', 'email.title', tenant, null, context, { email })
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
  template: string,
  titleKey: MessageKey,
  shown: FlowPage & ({ readonly tag: string } | Locked),
  fault: Fault | null,
  context: ReplyContext,
  content: Content,
): PageAnswer {
  const { tenant, uiLocales, flow, formTargets } = shown
  const locked = 'retryAfterSecs' in shown ? shown.retryAfterSecs : null
  const frame = { titleKey, branding: tenant, uiLocales }
  return { ...rendered(template, frame, fault, locked, context, { ...content, flow }), formTargets }
}

function ofTenant(
  template: string,
  titleKey: MessageKey,
  tenant: PageTenant,
  fault: Fault | null,
  context: ReplyContext,
  content: Content,
  lockedSecs: number | null = null,
): PageAnswer {
  return rendered(template, { titleKey, branding: tenant }, fault, lockedSecs, context, content)
}

function rendered(
  template: string,
  frame: Pick<Frame, 'titleKey' | 'branding' | 'uiLocales'>,
  fault: Fault | null,
  lockedSecs: number | null,
  { browser, path }: ReplyContext,
  content: Content,
): PageAnswer {
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
