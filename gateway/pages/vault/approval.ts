/** The pages of a call that waits for a person. */
import { APPROVAL_PAGE } from '../../../actors/domain/vault/approvals.js'
import type { CallDecided, CallQuestion } from '../../../actors/vault/approvals/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { renderPage } from '../platform/render.js'

export function callPage(asked: CallQuestion, { browser }: ReplyContext): PageAnswer {
  const { tenant: branding, approval } = asked
  const html = renderPage(
    'approval',
    { titleKey: 'approval.title', branding, acceptLanguage: browser.languages },
    { ...asked, action: `${APPROVAL_PAGE}/${approval.id}`, csrf: browser.csrfToken },
  )
  return { html }
}

/** The outcome. A used one was approved. */
export function callDecidedPage(
  { approval, tenant: branding }: CallDecided,
  { browser }: ReplyContext,
): PageAnswer {
  const { status, agentName } = approval
  const decision = status === 'denied' || status === 'expired' ? status : 'approved'
  const html = renderPage(
    'approval-decided',
    { titleKey: `approval.${decision}.title`, branding, acceptLanguage: browser.languages },
    { decision, status, agentName },
  )
  return { html }
}

/** No such approval, or another person answers. */
export function noApprovalPage(
  _outcome: unknown,
  { browser, requestId }: ReplyContext,
): PageAnswer {
  const html = failurePage({
    status: 404,
    key: 'approval.none',
    acceptLanguage: browser.languages,
    requestId,
  })
  return { html }
}
