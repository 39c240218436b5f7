/** The CIBA inbox of a user, and its result pages. */
import type {
  InboxDecided,
  InboxSeen,
} from '../../../actors/oauth/tokens/device-and-ciba/protocol.js'
import type { PageTenant } from '../../../actors/domain/tenants/branding.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { renderPage } from '../platform/render.js'

export const INBOX_PAGE = '/auth/requests'

export function inboxPage(seen: InboxSeen, { browser }: ReplyContext): PageAnswer {
  const { requests, session, tenant: branding } = seen
  const html = renderPage(
    'inbox',
    { titleKey: 'inbox.title', branding, acceptLanguage: browser.languages },
    {
      requests,
      email: session.email || session.displayName,
      action: INBOX_PAGE,
      csrf: browser.csrfToken,
    },
  )
  return { html }
}

export function inboxDecidedPage(
  { approved, clientName, tenant: branding }: InboxDecided & { readonly tenant: PageTenant },
  { browser }: ReplyContext,
): PageAnswer {
  const key = approved ? 'inbox.approved' : 'inbox.denied'
  const html = renderPage(
    'inbox-decided',
    { titleKey: `${key}.title`, branding, acceptLanguage: browser.languages },
    { key, approved, clientName, inbox: INBOX_PAGE },
  )
  return { html }
}

/** The user has none of the requested scopes. */
export function nothingToGrantPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  const { browser, requestId } = context
  const html = failurePage({
    status: 403,
    key: 'device.nothing',
    acceptLanguage: browser.languages,
    requestId,
    link: { path: INBOX_PAGE, key: 'common.continue' },
  })
  return { html }
}
