/** The page of an approval. Every load reads the approval and the session again. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { holdOpenSession } from '../../../storage/oauth/token-sessions.js'
import type { ApprovalView } from '../../../storage/vault/call-approvals.js'
import { FRESH_FACTORS_SECS, type SessionDemand } from '../../domain/assurance.js'
import { byPerson } from '../../domain/audit.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { APPROVAL_PAGE } from '../../domain/vault/approvals.js'
import type { BrowserSession } from '../../identity/sign-in/sessions/protocol.js'
import { decide } from './answer.js'
import type { ApprovalsHandler, ApprovalsNeeds } from './needs.js'
import type {
  ApprovalBack,
  ApprovalSignIn,
  DecideShown,
  NoApproval,
  ShowApproval,
} from './protocol.js'
import { mayAnswer, recordOf, viewOf } from './read.js'

const NONE: NoApproval = { tag: 'no_approval' }
const RECENT_FACTORS: SessionDemand = { level: 2, maxAgeSecs: FRESH_FACTORS_SECS }

/** An approval with the session of a person who may answer. */
type Ready = {
  readonly tag: 'ready'
  readonly view: ApprovalView
  readonly session: BrowserSession
}

export const showCallApproval: ApprovalsHandler<'showCallApproval'> = async (
  needs,
  message,
  context,
) => {
  const ready = await prepare(needs, message, context)
  if (ready.tag !== 'ready') return ready
  const { view, session } = ready
  const tenant = brandingOf(view.tenantId, view.tenantName, view.tenantSettings)
  const approval = recordOf(view)
  if (view.status !== 'pending') return { tag: 'decided', tenant, approval }
  const { grantExpiresAt } = view
  const { id: sessionId } = session
  const email = session.email || session.displayName
  const seenAt = needs.clock.now()
  return { tag: 'asked', tenant, email, sessionId, approval, grantExpiresAt, seenAt }
}

export const approveShownCall: ApprovalsHandler<'approveShownCall'> = (needs, message, context) =>
  decideShown(needs, message, 'approved', context)

export const denyShownCall: ApprovalsHandler<'denyShownCall'> = (needs, message, context) =>
  decideShown(needs, message, 'denied', context)

async function decideShown(
  needs: ApprovalsNeeds,
  message: DecideShown,
  status: 'approved' | 'denied',
  context: MessageContext,
): Promise<ApprovalBack | ApprovalSignIn | NoApproval> {
  const ready = await prepare(needs, message, context)
  if (ready.tag !== 'ready') return ready
  const { view, session } = ready
  const { tenantId, id, sub } = session
  // Another account signed in after the page was shown: it shows the page again.
  if (view.status === 'pending' && id === message.sessionId) {
    const by = {
      actor: { type: 'human', id: sub },
      audit: byPerson(session, message.address),
      random: needs.random,
      now: needs.clock.now(),
      requestId: context.requestId,
    }
    await decide(needs, view, status, { sub, by }, (tx) => holdOpenSession(tx, tenantId, id))
  }
  return { tag: 'back', location: `${APPROVAL_PAGE}/${view.id}` }
}

async function prepare(
  needs: ApprovalsNeeds,
  { approvalId, sessionToken: token }: ShowApproval,
  context: MessageContext,
): Promise<Ready | ApprovalSignIn | NoApproval> {
  const view = await viewOf(needs, approvalId, context)
  if (view === undefined) return NONE
  const returnTo = `${APPROVAL_PAGE}/${view.id}`
  const flow = { returnTo, reason: { tag: 'agent', name: view.agentName } } as const
  const { tenantId } = view as { tenantId: BrowserSession['tenantId'] }
  const message = { token, tenantId, demand: RECENT_FACTORS, flow }
  const verdict = await needs.browserSessions.demand(message, context)
  if (verdict.tag !== 'met') return verdict
  const { session } = verdict
  const person = { sub: session.sub, isOwner: session.role === 'owner' }
  return mayAnswer(view, person) ? { tag: 'ready', view, session } : NONE
}
