/** The pages of a delegation request. */
import type {
  ApprovalQuestion,
  Decided,
  NothingHeld,
} from '../../../actors/agents/delegation/protocol.js'
import { showUserCode } from '../../../actors/domain/user-code.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import { failurePage } from '../platform/error.js'
import { type Frame, renderPage } from '../platform/render.js'

/** The approval page: agent, requested scopes and those that the person can grant. */
export function delegationPage(asked: ApprovalQuestion, context: ReplyContext): PageAnswer {
  return question(asked, undefined, context)
}

/** The person holds none of the requested scopes. The request stays pending. */
export function nothingHeldPage({ asked }: NothingHeld, context: ReplyContext): PageAnswer {
  return question(asked, { key: 'delegation.nothing', field: null }, context)
}

function question(
  asked: ApprovalQuestion,
  error: Frame['error'],
  { browser: { languages, csrfToken } }: ReplyContext,
): PageAnswer {
  const names = (held: boolean) =>
    asked.scopes.filter((scope) => scope.held === held).map(({ name }) => name)
  const html = renderPage(
    'delegation',
    {
      titleKey: 'delegation.title',
      branding: asked.tenant,
      acceptLanguage: languages,
      error,
    },
    {
      ...asked,
      held: names(true),
      refused: names(false),
      shownCode: showUserCode(asked.userCode),
      action: `/device/delegation/${asked.userCode}`,
      csrfToken,
    },
  )
  return { html }
}

/** The outcome page. */
export function decidedPage(
  { tenant, agentName, decision }: Decided,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const html = renderPage(
    'delegation-decided',
    { titleKey: `delegation.${decision}.title`, branding: tenant, acceptLanguage: languages },
    { key: `delegation.${decision}`, agentName, decision },
  )
  return { html }
}

export function unknownRequestPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(404, 'error.404', context)
}

export function requestOverPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(410, 'error.410', context)
}

function failure(
  status: number,
  key: 'error.404' | 'error.410',
  { browser: { languages: acceptLanguage }, requestId }: ReplyContext,
): PageAnswer {
  return { html: failurePage({ status, key, acceptLanguage, requestId }) }
}
