/** Approval of calls: the agent reads its state, a person answers (docs/guides/vault/approvals.md). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../../identity/sign-in/sessions/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { ListCursor, Page } from '../../domain/paging.js'
import type { Principal } from '../../domain/principal.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { Denied } from '../../domain/vault/denied.js'
import type { ApprovalStatus, CallApprovalRecord } from '../../domain/vault/approvals.js'

export type ApprovalsProtocol = {
  /** The state of an approval, for the agent that asked. */
  getCallApproval: Ask<
    { principal: Principal; approvalId: string },
    CallApprovalState | UnknownApproval
  >
  /** A person sees the approvals that they may answer; with `vault:manage` all approvals of the tenant. */
  listCallApprovals: Ask<ListApprovals, ApprovalsListed>
  readCallApproval: Ask<OneApproval, ApprovalFound | UnknownApproval>
  /** Needs a recent sign-in with two factors. */
  approveCall: Ask<OneApproval, ApprovalAnswer>
  denyCall: Ask<OneApproval, ApprovalAnswer>
  /** The page of an approval. */
  showCallApproval: Ask<ShowApproval, CallQuestion | CallDecided | ApprovalSignIn | NoApproval>
  approveShownCall: Ask<DecideShown, ApprovalBack | ApprovalSignIn | NoApproval>
  denyShownCall: Ask<DecideShown, ApprovalBack | ApprovalSignIn | NoApproval>
  /** What waits for a person, for the account page. */
  waitingFor: Ask<
    { session: BrowserSession },
    { tag: 'listed'; approvals: readonly CallApprovalRecord[] }
  >
}

export type CallApprovalState = {
  readonly tag: 'state'
  readonly approvalId: string
  readonly status: ApprovalStatus
  readonly expiresAt: Date
}
export type UnknownApproval = { readonly tag: 'unknown_approval' }

export type ListApprovals = Page & {
  readonly principal: Principal
  readonly status: ApprovalStatus | null
}
export type ApprovalsListed = {
  readonly tag: 'listed'
  readonly approvals: readonly CallApprovalRecord[]
  readonly next: ListCursor | null
}

export type OneApproval = { readonly caller: Caller; readonly approvalId: string }
export type ApprovalFound = { readonly tag: 'found'; readonly approval: CallApprovalRecord }
export type ApprovalAnswer =
  | ApprovalFound
  | UnknownApproval
  /** Another person answers. */
  | Denied
  | { readonly tag: 'step_up'; readonly maxAgeSecs: number }
  /** Answered, used or expired. */
  | { readonly tag: 'decided_before'; readonly status: ApprovalStatus }

/** A page load. */
export type ShowApproval = { readonly approvalId: string; readonly sessionToken: string | null }
export type DecideShown = ShowApproval & {
  /** The session that loaded the page. */
  readonly sessionId: string
  readonly address: string
}
export type CallQuestion = {
  readonly tag: 'asked'
  readonly tenant: PageTenant
  readonly email: string
  readonly sessionId: string
  readonly approval: CallApprovalRecord
  /** When the grant ends; null: it does not. */
  readonly grantExpiresAt: Date | null
  /** When the page was made, for relative times. */
  readonly seenAt: Date
}
/** The outcome, for a person who may answer. */
export type CallDecided = {
  readonly tag: 'decided'
  readonly tenant: PageTenant
  readonly approval: CallApprovalRecord
}
/** Redirects to the page of the approval, a same-origin path. */
export type ApprovalBack = { readonly tag: 'back'; readonly location: string }
export type ApprovalSignIn = { readonly tag: 'sign_in'; readonly location: string }
/** No such approval, or another person answers. */
export type NoApproval = { readonly tag: 'no_approval' }

export const approvals = address<ApprovalsProtocol>('approvals', {
  idempotent: ['getCallApproval', 'listCallApprovals', 'readCallApproval', 'waitingFor'],
})
