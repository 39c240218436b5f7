/** The account page. It shows what works: sessions, second factors, consents and delegations, each with its way to end. */
import type { AccountSeen } from '../../actors/account/protocol.js'
import type { PageAnswer, ReplyContext } from '../replies.js'
import { failurePage } from './error.js'
import { renderPage } from './render.js'
import { browserName } from './user-agent.js'

export function accountPage(
  { tenant, session, sessions, ...seen }: AccountSeen,
  { browser }: ReplyContext,
): PageAnswer {
  const frame = {
    titleKey: 'account.title',
    branding: tenant,
    acceptLanguage: browser.languages,
  } as const
  const html = renderPage('account', frame, {
    session,
    sessions: sessions.map((one) => ({
      ...one,
      browser: browserName(one.userAgent),
      own: one.id === session.id,
    })),
    ...seen,
    csrf: browser.csrfToken,
  })
  return { html }
}

/** Something of the account that is not there, or not any more. */
export function accountPartGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  const { browser, requestId } = context
  const html = failurePage({
    status: 404,
    key: 'error.404',
    acceptLanguage: browser.languages,
    requestId,
    link: { path: '/auth/account', key: 'common.continue' },
  })
  return { html }
}
