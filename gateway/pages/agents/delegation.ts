/** The pages of a delegation request. */
import {
  type ApprovalQuestion,
  type Decided,
  DELEGATION_PAGE,
  type GuessesSpent,
  type NothingHeld,
  type PasskeyWanted,
  type UnknownRequest,
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

/** The assertion of the passkey is missing or invalid. The request stays pending. */
export function passkeyWantedPage({ asked }: PasskeyWanted, context: ReplyContext): PageAnswer {
  return question(asked, { key: 'mfa.passkey.wrong', field: null }, context)
}

function question(
  asked: ApprovalQuestion,
  error: Frame['error'],
  { browser: { languages, csrfToken } }: ReplyContext,
): PageAnswer {
  const names = (held: boolean) =>
    asked.scopes.filter((scope) => scope.held === held).map(({ name }) => name)
  const scripted = asked.passkeyOptions !== null
  const html = renderPage(
    'delegation',
    {
      titleKey: 'delegation.title',
      branding: asked.tenant,
      acceptLanguage: languages,
      error,
      scripted,
    },
    {
      ...asked,
      held: names(true),
      refused: names(false),
      shownCode: showUserCode(asked.userCode),
      action: `${DELEGATION_PAGE}/${asked.userCode}`,
      csrfToken,
      csrf: csrfToken,
    },
  )
  return { html, scripted }
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

/** Asks for the code again: a person may have mistyped it. The form leads to the page of the new code. */
export function unknownRequestPage(
  { typed }: UnknownRequest,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const error = { key: 'device.unknown', field: 'user_code' } as const
  return { html: codePage({ error, acceptLanguage: languages }, { typed, invalid: true }) }
}

/** Too many wrong codes. */
export function guessesSpentPage(
  { retryAfterSecs }: GuessesSpent,
  { browser: { languages } }: ReplyContext,
): PageAnswer {
  const frame = {
    error: { key: 'device.spent', field: null },
    acceptLanguage: languages,
    retryAfterSecs,
  } as const
  const html = codePage(frame, { typed: '', invalid: false })
  return { html, headers: { 'retry-after': String(retryAfterSecs) } }
}

const codePage = (
  frame: Pick<Frame, 'error' | 'acceptLanguage' | 'retryAfterSecs'>,
  content: { readonly typed: string; readonly invalid: boolean },
) =>
  renderPage(
    'device-code',
    { titleKey: 'delegation.title', branding: null, ...frame },
    { action: `${DELEGATION_PAGE}/code`, csrf: null, ...content },
  )

export function requestOverPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  const { browser, requestId } = context
  const frame = {
    status: 410,
    key: 'error.410',
    acceptLanguage: browser.languages,
    requestId,
  } as const
  return { html: failurePage(frame) }
}
