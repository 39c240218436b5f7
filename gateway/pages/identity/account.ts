/** The account page. It shows what works: sessions, second factors, consents and delegations, each with its way to end. */
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
    sessions: sessions.map((one) => ({
      ...one,
      browser: browserName(one.userAgent),
      own: one.id === session.id,
    })),
    ...seen,
    looksAfter: session.role !== 'member',
    csrf: browser.csrfToken,
  })
  return { html }
}

/** Something of the account that is not there, or not any more. */
export function accountPartGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone('/auth/account', context)
}

/** A request of the inbox that waits no longer, or never did for this person. */
export function requestGonePage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return partGone(INBOX_PAGE, context)
}

/** Whoever pressed a button did not mistype an address. */
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
