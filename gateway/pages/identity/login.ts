/** Sign-in pages: sign-in, second factor, enrolment, recovery codes, signed out. */
import type {
  Enrolled,
  EnrolmentShown,
  FactorShown,
  FlowPage,
  FlowUnknown,
  LoginShown,
  PasskeySignals,
  SignedOut,
} from '../../../actors/identity/sign-in/protocol.js'
import type { TotpShown } from '../../../actors/identity/sign-in/account/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { captchaParts } from './captcha.js'
import { failurePage } from '../platform/error.js'
import { chooseLanguage, type Language } from '../platform/language.js'
import { pictureOf } from '../commerce/qr.js'
import { type Frame, renderPage } from '../platform/render.js'
import { browserName } from '../platform/user-agent.js'

/** The error of the submitted form; undefined on the first view. */
type FormFault =
  | { readonly tag: 'wrong' }
  | { readonly tag: 'invalid_email' }
  | { readonly tag: 'captcha' }
  | { readonly tag: 'locked'; readonly retryAfterSecs: number }

type Faulty = { readonly tag: 'page' } | FormFault

export function loginPage(
  shown: LoginShown & Faulty & { readonly signals?: PasskeySignals | undefined },
  context: ReplyContext,
  fault?: MessageKey,
): PageAnswer {
  const { shown: shownCaptcha, sources: widget, ...own } = captchaParts(shown.captcha)
  const answer = flowAnswer('login', 'login.title', shown, context, {
    wrong: fault ?? LOGIN_FAULTS[shown.tag] ?? 'login.wrong',
    field: fault === undefined && shown.tag !== 'captcha' ? 'email' : null,
    content: {
      email: shown.email,
      again: shown.again,
      offers: shown.offers,
      signUp: !shown.again && shown.offers.reset && (shown.signUp ?? shown.offers.signUp),
      passkeys: shown.offers.passkey,
      signals: shown.signals,
      captcha: shownCaptcha,
      upstreams: shown.upstreams,
      reason: shown.reason,
    },
    scripted: shown.offers.passkey,
  })
  return { ...answer, widget, scripted: answer.scripted === true || own.scripted === true }
}

const LOGIN_FAULTS: Readonly<Record<string, MessageKey>> = {
  invalid_email: 'login.email.invalid',
  captcha: 'captcha.wanted',
}

export function factorPage(
  shown: FactorShown & Faulty,
  context: ReplyContext,
  fault?: MessageKey,
): PageAnswer {
  return flowAnswer('mfa', 'mfa.title', shown, context, {
    wrong: fault ?? 'mfa.wrong',
    field: fault === undefined && shown.methods.code !== null ? 'code' : null,
    content: { methods: shown.methods, passkeys: shown.passkeys },
    scripted: shown.passkeys,
  })
}

export function enrolmentPage(
  shown: EnrolmentShown & Faulty,
  context: ReplyContext,
  fault?: MessageKey,
): PageAnswer {
  const { say } = languageOf(shown, context)
  const { secret, otpauthUri, methods } = shown
  const picture = pictureOf(otpauthUri, say('enroll.picture'))
  return flowAnswer('enroll', 'enroll.title', shown, context, {
    wrong: fault ?? 'enroll.wrong',
    field: fault === undefined ? 'code' : null,
    content: { secret, otpauthUri, picture, methods, device: deviceOf(context) },
    scripted: methods.passkey,
  })
}

/** The same QR code on the account page, for an app in addition to a passkey. */
export function newTotpPage(
  { tag, tenant, secret, otpauthUri }: TotpShown & { readonly tag: 'page' | 'wrong' },
  { browser }: ReplyContext,
): PageAnswer {
  const { say } = chooseLanguage(undefined, browser.languages, tenant.locale)
  const isWrong = tag === 'wrong'
  const error = isWrong ? ({ key: 'enroll.wrong', field: 'code' } as const) : undefined
  const acceptLanguage = browser.languages
  const frame: Frame = { titleKey: 'totp.new.title', branding: tenant, acceptLanguage, error }
  const picture = pictureOf(otpauthUri, say('enroll.picture'))
  const content = { secret, otpauthUri, picture, csrf: browser.csrfToken, flow: null }
  return { html: renderPage('totp-new', frame, { ...content, invalid: isWrong }) }
}

/** The ten recovery codes, shown once, with the new session. */
export function codesPage(shown: Omit<Enrolled, 'tag'>, context: ReplyContext): PageAnswer {
  const { recoveryCodes: codes, location, token: session, formTargets } = shown
  const html = renderPage('codes', frameOf('codes.title', shown, context), { codes, location })
  return { html, session, formTargets }
}

export function signedOutPage({ tenant }: SignedOut, { browser }: ReplyContext): PageAnswer {
  const acceptLanguage = browser.languages
  const frame = { titleKey: 'logout.title', branding: tenant, acceptLanguage } as const
  const tenantId = tenant?.id ?? null
  return { html: renderPage('logout', frame, { tenantId }), session: null }
}

/** A flow that is unknown or has expired. */
export function unknownFlowPage(
  { tenant: branding, uiLocales }: FlowUnknown,
  { requestId, browser }: ReplyContext,
): PageAnswer {
  const path = branding === null ? '/auth/login' : `/auth/login?tenant_id=${branding.id}`
  const link = { path, key: 'error.again' } as const
  const about = { status: 400, key: 'error.flow', requestId, branding, uiLocales, link } as const
  return { html: failurePage({ ...about, acceptLanguage: browser.languages }) }
}

export function unknownTenantPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(404, 'error.404', context)
}

/** The visitor may have typed the slug on the start page. */
export function unknownWorkspacePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(404, 'console.signin.unknown', context)
}

const BUSY_RETRY_SECS = '2'

export function busyPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return { ...failure(503, 'error.503', context), headers: { 'retry-after': BUSY_RETRY_SECS } }
}

function failure(status: number, key: MessageKey, context: ReplyContext): PageAnswer {
  const { requestId, browser } = context
  const acceptLanguage = browser.languages
  return { html: failurePage({ status, key, acceptLanguage, requestId }) }
}

type Parts = {
  readonly wrong: MessageKey
  /** The field with the error. */
  readonly field: string | null
  readonly content: Readonly<Record<string, unknown>>
  readonly scripted: boolean
}

function flowAnswer(
  template: string,
  titleKey: MessageKey,
  shown: FlowPage & Faulty,
  context: ReplyContext,
  { wrong, field, content, scripted }: Parts,
): PageAnswer {
  const frame = { ...frameOf(titleKey, shown, context), scripted }
  const shared = { ...content, flow: shown.flow, csrf: context.browser.csrfToken }
  const { formTargets } = shown
  if (shown.tag === 'page') {
    return {
      html: renderPage(template, frame, { ...shared, invalid: false }),
      formTargets,
      scripted,
    }
  }
  if (shown.tag !== 'locked') {
    const html = renderPage(
      template,
      { ...frame, error: { key: wrong, field } },
      { ...shared, invalid: field !== null },
    )
    return { html, formTargets, scripted }
  }
  const html = renderPage(
    template,
    {
      ...frame,
      error: { key: 'login.locked', field: null },
      retryAfterSecs: shown.retryAfterSecs,
    },
    { ...shared, invalid: false },
  )
  const headers = { 'retry-after': String(shown.retryAfterSecs) }
  return { html, formTargets, headers, scripted }
}

function frameOf(titleKey: MessageKey, shown: FlowPage, { browser }: ReplyContext): Frame {
  const { tenant, uiLocales } = shown
  return { titleKey, branding: tenant, uiLocales, acceptLanguage: browser.languages }
}

function languageOf({ uiLocales, tenant }: FlowPage, { browser }: ReplyContext): Language {
  return chooseLanguage(uiLocales, browser.languages, tenant.locale)
}

/** The default name of a passkey created in this browser. */
export function deviceOf({ browser }: ReplyContext): string {
  return browserName(browser.userAgent).slice(0, 60)
}
