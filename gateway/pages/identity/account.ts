/** The account page: sessions, second factors, consents and delegations, each with a button to end it. */
import type { AccountSeen } from '../../../actors/identity/accounts/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { INBOX_PAGE } from '../oauth/ciba-inbox.js'
import { renderPage } from '../platform/render.js'
import { browserName } from '../platform/user-agent.js'

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
    sessions: sessions.map((listed) => ({
      ...listed,
      browser: browserName(listed.userAgent),
      own: listed.id === session.id,
    })),
    ...seen,
    looksAfter: session.role !== 'member',
    csrf: browser.csrfToken,
  })
  return { html }
}

/** The part of the account does not exist (any more). */
export function accountPartGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone('/auth/account', context)
}

/** The inbox request is not pending (any more), or was never for this user. */
export function requestGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone(INBOX_PAGE, context)
}

/** The user pressed a button, so the text does not blame a mistyped address. */
function partGone(path: string, { browser, requestId }: ReplyContext): PageAnswer {
  const html = failurePage({
    status: 404,
    key: 'account.gone',
    acceptLanguage: browser.languages,
    requestId,
    link: { path, key: 'common.continue' },
  })
  return { html }
}
