/** Pages before and after an identity provider, and the page of a failed federated sign-in. */
import type {
  ConfirmStart,
  Linked,
  FederatedLoginFailed,
  FederatedLoginSignedIn,
  ToUpstream,
} from '../../../actors/identity/sign-in/ways/federated/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { failurePage } from '../platform/error.js'
import { renderPage } from '../platform/render.js'

/**
 * An intermediate page before the provider: browsers apply the `form-action` policy of the form's page to every
 * redirect, and that policy does not list providers.
 */
export function awayPage({ url, name, tenant }: ToUpstream, { browser }: ReplyContext): PageAnswer {
  const frame = {
    titleKey: 'sso.away.title',
    branding: tenant,
    acceptLanguage: browser.languages,
    onward: url,
  } as const
  return { html: renderPage('onward', frame, { lead: 'sso.away', name }) }
}

/** Confirmation before the provider: another site may have linked here. */
export function confirmStartPage(shown: ConfirmStart, { browser }: ReplyContext): PageAnswer {
  const { tenant, flow, provider, loginHint, leaves } = shown
  const { languages: acceptLanguage, csrfToken: csrf } = browser
  const frame = { titleKey: 'sso.confirm.title', branding: tenant, acceptLanguage } as const
  const content = { csrf, flow, provider, loginHint, leaves }
  return { html: renderPage('sso-confirm', frame, content) }
}

/** Signed in or linked. An intermediate page, because the provider's form policy may not list us. */
export function backPage(
  { location, tenant, ...outcome }: FederatedLoginSignedIn | Linked,
  { browser }: ReplyContext,
): PageAnswer {
  const frame = {
    titleKey: 'sso.back.title',
    branding: tenant,
    acceptLanguage: browser.languages,
    onward: location,
  } as const
  const html = renderPage('onward', frame, { lead: 'sso.back', name: '' })
  return outcome.tag === 'signed_in' ? { html, session: outcome.token } : { html }
}

const WORDS: Readonly<Partial<Record<FederatedLoginFailed['fault'], MessageKey>>> = {
  unknown_flow: 'error.flow',
  unknown_tenant: 'error.404',
}

/** A provider that was unavailable may be available again soon. */
const AWAY_RETRY_SECS = '5'

export function federatedLoginFailedPage(status: number) {
  return ({ fault, location, tenant }: FederatedLoginFailed, context: ReplyContext): PageAnswer => {
    const { browser, requestId } = context
    const key = WORDS[fault] ?? (`sso.${fault}` as MessageKey)
    const link = { path: location ?? '/auth/login', key: 'error.again' } as const
    const acceptLanguage = browser.languages
    const branding = tenant
    const html = failurePage({ status, key, acceptLanguage, requestId, branding, link })
    return status === 503 ? { html, headers: { 'retry-after': AWAY_RETRY_SECS } } : { html }
  }
}

export function lastWayInPage(_outcome: unknown, { browser, requestId }: ReplyContext): PageAnswer {
  const link = { path: '/auth/account', key: 'common.continue' } as const
  const acceptLanguage = browser.languages
  const key = 'sso.last_way_in'
  return { html: failurePage({ status: 409, key, acceptLanguage, requestId, link }) }
}
