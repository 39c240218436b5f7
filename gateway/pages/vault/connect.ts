/** The pages on which a person connects an account. */
import {
  CONNECT_PAGE,
  type ConnectFailed,
  type ConnectOutcome,
  type ConnectQuestion,
  type ConnectRefused,
} from '../../../actors/vault/vault/connections/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { renderPage } from '../platform/render.js'

export function connectPage(
  { tenant, target, ...asked }: ConnectQuestion,
  { browser: { languages, csrfToken } }: ReplyContext,
): PageAnswer {
  const frame = { titleKey: 'connect.title', branding: tenant, acceptLanguage: languages } as const
  const action = `${CONNECT_PAGE}/${asked.code}`
  const html = renderPage('connect', frame, { ...asked, action, csrfToken })
  return { html, formTargets: [target] }
}

export function connectOutcomePage(
  { tenant, outcome, provider, name }: ConnectOutcome,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const key = `connect.${outcome}` as const
  const frame = {
    titleKey: `${key}.title`,
    branding: tenant,
    acceptLanguage: languages,
  } as const
  return { html: renderPage('connect-outcome', frame, { key, outcome, provider, name }) }
}

export function connectFailedPage(
  { tenant, provider, code, back }: ConnectFailed,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const frame = {
    titleKey: 'connect.failed.title',
    branding: tenant,
    acceptLanguage: languages,
  } as const
  const again = `${CONNECT_PAGE}/${code}`
  return { html: renderPage('connect-failed', frame, { provider, again, back }) }
}

export const connectRefusedPage =
  (status: number) =>
  ({ why }: ConnectRefused, { browser, requestId }: ReplyContext): PageAnswer => {
    const key = `connect.refused.${why}` as const
    return { html: failurePage({ status, key, acceptLanguage: browser.languages, requestId }) }
  }
