/** The consent, error and sign-out pages of the authorization endpoint. */
import type {
  AccountsShown,
  AnsweredBefore,
  ConsentAsked,
  Posted,
  Refused,
  SessionEnded,
} from '../../../actors/oauth/tokens/authorization/protocol.js'
import type { ReplyContext } from '../../response/replies.js'
import { monogramOf, renderPage } from '../platform/render.js'

/** Asks which account to continue with: a button for each, and one to sign in with another. */
export function accountsPage(
  { tenant, uiLocales, clientName, accounts }: AccountsShown,
  action: string,
  { browser: { csrfToken, languages } }: ReplyContext,
): string {
  const shown = accounts.map((one) => {
    const name = one.name || one.email
    const { letter, className } = monogramOf({ name, id: one.email || name, color: null })
    return { ...one, name, letter, className }
  })
  return renderPage(
    'accounts',
    { titleKey: 'accounts.title', branding: tenant, uiLocales, acceptLanguage: languages },
    { accounts: shown, clientName, action, csrf: csrfToken },
  )
}

/** Asks for consent: shows the application, the scopes in words and two buttons. */
export function consentPage(
  consent: ConsentAsked,
  action: string,
  { browser: { csrfToken, languages } }: ReplyContext,
): string {
  const { tenant: branding, uiLocales, scopes, resourceScopes, newScopes, firstSeenAt } = consent
  const shownScopes = scopes.map((name) => {
    const own = resourceScopes.find((one) => one.name === name)
    const text = own === undefined ? null : own.description || name
    return { name, text, kind: own?.kind ?? null, isNew: newScopes.includes(name) }
  })
  const { name, id } =
    consent.documented === null
      ? { name: consent.clientName, id: consent.clientName }
      : { name: consent.documented.host, id: consent.documented.host }
  const { letter: appLetter, className: appHue } = monogramOf({ name, id, color: null })
  return renderPage(
    'consent',
    { titleKey: 'consent.title', branding, uiLocales, acceptLanguage: languages },
    {
      ...consent,
      appLetter,
      appHue,
      shownScopes,
      firstSeen: firstSeenAt?.toISOString() ?? null,
      action,
      csrfToken,
    },
  )
}

/** Shows an error that must not be redirected to the client, with details for support. */
export function refusedPage(
  { error, description, uiLocales, back }: Refused,
  { browser: { languages }, requestId }: ReplyContext,
): string {
  return renderPage(
    'refused',
    { titleKey: 'error.title', branding: null, uiLocales, acceptLanguage: languages },
    { key: 'authorize.refused', error, description, requestId, back },
  )
}

/** Posts the response to the application. The button is for browsers without scripts. */
export function postedPage(
  { tenant, uiLocales, clientName, action, fields }: Posted,
  { browser: { languages } }: ReplyContext,
): string {
  return renderPage(
    'onward',
    { titleKey: 'sso.back.title', branding: tenant, uiLocales, acceptLanguage: languages },
    { post: { action, fields: Object.entries(fields) }, name: clientName },
  )
}

/** Tells a browser that sends a decision again that the application has its answer. */
export function answeredBeforePage(
  { decided, clientName, tenant, uiLocales, back }: AnsweredBefore,
  { browser: { languages } }: ReplyContext,
): string {
  const key = decided === 'approved' ? 'authorize.done' : 'device.denied'
  return renderPage(
    'answered-before',
    { titleKey: `${key}.title`, branding: tenant, uiLocales, acceptLanguage: languages },
    { key, decided, name: clientName, back },
  )
}

export function signedOutPage(
  { tenant, uiLocales, frames, location }: SessionEnded,
  { browser: { languages } }: ReplyContext,
): string {
  const onward = location ?? undefined
  return renderPage(
    'signed-out',
    { titleKey: 'signedout.title', branding: tenant, uiLocales, acceptLanguage: languages, onward },
    { frames },
  )
}
