/** Pages of sign-up. */
import type {
  SignUpClosed,
  SignUpLinkShown,
  SignUpShown,
} from '../../../actors/identity/sign-in/recovery/protocol.js'
import type { ExpiredLink, FlowPage, Locked } from '../../../actors/identity/sign-in/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { type Frame, renderPage } from '../platform/render.js'
import { captchaParts } from './captcha.js'

type Faults = Readonly<Record<string, { readonly key: MessageKey; readonly field: string | null }>>

const FAULTS: Faults = {
  invalid_email: { key: 'login.email.invalid', field: 'email' },
  captcha: { key: 'captcha.wanted', field: null },
  locked: { key: 'login.locked', field: null },
}
const PASSWORD_FAULTS: Faults = {
  weak_password: { key: 'invite.weak', field: 'password' },
  common_password: { key: 'password.common', field: 'password' },
  breached_password: { key: 'password.breached', field: 'password' },
}

/** The form for the address. */
export function signUpPage(
  shown: SignUpShown & ({ readonly tag: 'page' | 'invalid_email' | 'captcha' } | Locked),
  { browser }: ReplyContext,
): PageAnswer {
  const { tenant, uiLocales, flow, formTargets, email } = shown
  const { shown: captcha, sources: widget, scripted } = captchaParts(shown.captcha)
  const error = FAULTS[shown.tag]
  const waitSecs = shown.tag === 'locked' ? shown.retryAfterSecs : undefined
  const frame: Frame = {
    titleKey: 'register.title',
    branding: tenant,
    uiLocales,
    acceptLanguage: browser.languages,
    error,
    retryAfterSecs: waitSecs,
  }
  const invalid = error?.field !== undefined && error.field !== null
  const html = renderPage('register', frame, {
    email,
    flow,
    captcha,
    csrf: browser.csrfToken,
    invalid,
  })
  const headers = waitSecs === undefined ? undefined : { 'retry-after': String(waitSecs) }
  return { html, formTargets, widget, scripted, headers }
}

/** After the form: the same for every address. */
export function signUpSentPage(
  { tenant, uiLocales, flow, email }: FlowPage & { readonly email: string },
  { browser }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const frame = { titleKey: 'mail.title', branding: tenant, uiLocales, acceptLanguage } as const
  return { html: renderPage('register-sent', frame, { email, flow }) }
}

/** The page behind the link. */
export function signUpLinkPage(
  shown: SignUpLinkShown & { readonly tag: string },
  { browser, path }: ReplyContext,
): PageAnswer {
  const { tenant, email, displayName, isKnown, flow } = shown
  const error = PASSWORD_FAULTS[shown.tag]
  const acceptLanguage = browser.languages
  const titleKey = 'register.confirm.title'
  const frame: Frame = { titleKey, branding: tenant, acceptLanguage, error }
  const html = renderPage('register-link', frame, {
    email,
    displayName,
    isKnown,
    flow,
    csrf: browser.csrfToken,
    action: path,
    invalid: error?.field ?? false,
  })
  return { html }
}

export function signUpClosedPage(
  { tenant, uiLocales }: SignUpClosed,
  { browser }: ReplyContext,
): PageAnswer {
  const acceptLanguage = browser.languages
  const titleKey = 'register.off.title'
  const frame = { titleKey, branding: tenant, uiLocales, acceptLanguage } as const
  const link = { path: `/auth/login?tenant_id=${tenant.id}`, key: 'login.submit' }
  return { html: renderPage('notice', frame, { key: 'register.off', tenant: tenant.name, link }) }
}

export function signUpGonePage({ tenant }: ExpiredLink, { browser }: ReplyContext): PageAnswer {
  const acceptLanguage = browser.languages
  const frame = { titleKey: 'register.gone.title', branding: tenant, acceptLanguage } as const
  const path = `/auth/register?tenant_id=${tenant?.id}`
  const link = tenant === null ? null : { path, key: 'register.start' }
  return { html: renderPage('notice', frame, { key: 'register.gone', link }) }
}
