/** The pages of an authorization request: the question to the person, and what went wrong. */
import type {
  ConsentAsked,
  Refused,
  SessionEnded,
} from '../../../actors/oauth/authorization/protocol.js'
import type { ReplyContext } from '../../response/replies.js'
import { renderPage } from '../platform/render.js'

/** decisions.md 20, consent: who asks, what for in words, two buttons. */
export function consentPage(
  asked: ConsentAsked,
  action: string,
  { browser: { csrfToken, languages } }: ReplyContext,
): string {
  const { tenant: branding, uiLocales } = asked
  return renderPage(
    'consent',
    { titleKey: 'consent.title', branding, uiLocales, acceptLanguage: languages },
    { ...asked, action, csrfToken },
  )
}

/** What cannot be told to the client, told to the person and to whoever helps them. */
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

export function signedOutPage(
  { tenant, uiLocales }: SessionEnded,
  { browser: { languages } }: ReplyContext,
): string {
  return renderPage(
    'signed-out',
    { titleKey: 'signedout.title', branding: tenant, uiLocales, acceptLanguage: languages },
    {},
  )
}
