/**
 * Delegation by device flow: an agent starts a request, a person approves it in their browser, the
 * agent polls for its token (docs/reference/agents.md).
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession, SignedStatement } from '../../identity/sign-in/sessions/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { ListCursor, Page } from '../../domain/paging.js'

export type DelegationProtocol = {
  /** An agent requests a delegation. */
  startDelegation: Ask<
    StartDelegation,
    Started | { tag: 'invalid_scope'; scopes: readonly string[] } | InvalidTarget
  >
  pollDelegation: Ask<PollDelegation, PollOutcome>
  /** The approval page of a request. */
  showDelegation: Ask<
    ShowRequest,
    ApprovalQuestion | Decided | SignIn | UnknownRequest | GuessesSpent | Busy | RequestOver
  >
  /** Write scopes need an assertion of a passkey over the approval, if the person has one. */
  approveDelegation: Ask<
    DecideRequest & { credential: string },
    Back | NothingHeld | PasskeyWanted | SignIn | UnknownRequest | GuessesSpent | Busy | RequestOver
  >
  denyDelegation: Ask<
    DecideRequest,
    Back | SignIn | UnknownRequest | GuessesSpent | Busy | RequestOver
  >
  /** The visible delegations: a person sees those they approved, an agent those it received. */
  listDelegations: Ask<ListDelegations, DelegationsListed | MayNotSee>
  readDelegation: Ask<OneDelegation, DelegationFound | UnknownDelegation | MayNotSee>
  /** Revokes a delegation. Needs a recent sign-in at the person's highest assurance level. */
  revokeDelegation: Ask<OneDelegation, DelegationRevoked | UnknownDelegation | StepUpNeeded>
  /** The active delegations of a person, for the account page. */
  ofPerson: Ask<
    { tenantId: TenantId; sub: string },
    { tag: 'listed'; delegations: DelegationRecord[] }
  >
  /** Revokes a delegation on the account page. */
  revokeOwnDelegation: Ask<RevokeOwn, { tag: 'revoked' } | UnknownDelegation | SignIn>
}

export type StartDelegation = {
  readonly caller: Caller
  readonly scope: string
  /** The audience of an application of the tenant; null for this service. */
  readonly audience: string | null
  /** What the agent wants to do, in its words. Null without one. */
  readonly purpose: string | null
}
export type Started = {
  readonly tag: 'started'
  readonly deviceCode: string
  readonly userCode: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}
export type InvalidTarget = { readonly tag: 'invalid_target' }

export type PollDelegation = {
  readonly principal: Principal
  readonly deviceCode: string
  /** The address of the client. */
  readonly address: string
}
export type PollOutcome =
  | {
      readonly tag: 'granted'
      readonly accessToken: string
      readonly tokenType: 'Bearer' | 'DPoP'
      readonly expiresInSecs: number
      readonly refreshToken: string | null
      readonly scopes: readonly string[]
    }
  | { readonly tag: 'pending'; readonly intervalSecs: number }
  | { readonly tag: 'slow_down'; readonly intervalSecs: number }
  | { readonly tag: 'denied' }
  | { readonly tag: 'expired' }
  /** Unknown, issued to another agent, or redeemed already. */
  | { readonly tag: 'invalid' }
  /** An access policy of the tenant refuses the token. The delegation stays approved. */
  | { readonly tag: 'policy_denied' }

/** A page load. `userCode` is as typed. */
export type ShowRequest = {
  readonly userCode: string
  readonly sessionToken: string | null
  /** The address or network for which wrong codes are counted. */
  readonly countedFor: string
}
export type DecideRequest = ShowRequest & {
  /** The session that loaded the page. */
  readonly sessionId: string
  readonly address: string
}

/** The content of the approval page. `held` marks the scopes that the person can grant. */
export type ApprovalQuestion = {
  readonly tag: 'asked'
  readonly tenant: PageTenant
  readonly email: string
  readonly sessionId: string
  readonly userCode: string
  readonly agentName: string
  readonly agentId: string
  readonly keyFingerprint: string | null
  readonly address: string
  readonly askedAt: Date
  readonly purpose: string | null
  readonly audience: string
  /** The application whose audience it is; null for this service. */
  readonly audienceName: string | null
  readonly scopes: readonly { readonly name: string; readonly held: boolean }[]
  /** Lifetime of the delegation from the moment the agent gets its token. */
  readonly lifetimeSecs: number
  /** When the page was made, for relative times. */
  readonly seenAt: Date
  /** When the agent registered; null for a deleted agent. */
  readonly agentSince: Date | null
  /** A domain that the organization of the agent has proved to own; null for an agent that is not verified. */
  readonly agentDomain: string | null
  /** Options of the assertion that approves. Null: a button approves. */
  readonly passkeyOptions: object | null
  /** When this person last approved this agent; null when there is no record. */
  readonly lastDelegatedAt: Date | null
}
/** The outcome, shown to the person who decided. */
export type Decided = {
  readonly tag: 'decided'
  readonly tenant: PageTenant
  readonly agentName: string
  readonly decision: 'approved' | 'denied'
}
/** The page again: the person holds none of the requested scopes. */
export type NothingHeld = { readonly tag: 'nothing_held'; readonly asked: ApprovalQuestion }
/** The page again: the approval needs an assertion of a passkey over it. */
export type PasskeyWanted = { readonly tag: 'passkey_wanted'; readonly asked: ApprovalQuestion }
/** Redirects to the page of the request, a same-origin path. */
/** The page of the gateway where a person decides; the user code follows. */
export const DELEGATION_PAGE = '/device/delegation'

export type Back = { readonly tag: 'back'; readonly location: string }
export type SignIn = { readonly tag: 'sign_in'; readonly location: string }
export type UnknownRequest = {
  readonly tag: 'unknown_request'
  /** The code as it was typed. */
  readonly typed: string
}
/** Too many wrong codes from this address. */
export type GuessesSpent = { readonly tag: 'guesses_spent'; readonly retryAfterSecs: number }
/** Wrong codes cannot be counted now. */
export type Busy = { readonly tag: 'busy' }
export type RequestOver = { readonly tag: 'request_over' }

export type ListDelegations = Page & {
  readonly principal: Principal
}
export type OneDelegation = { readonly caller: Caller; readonly delegationId: string }
export type DelegationsListed = {
  readonly tag: 'listed'
  readonly delegations: readonly DelegationRecord[]
  readonly next: ListCursor | null
}
/** The assertion of a passkey over an approval. */
export type DelegationApproval = SignedStatement & { readonly approvedAt: Date }
export type DelegationFound = {
  readonly tag: 'found'
  readonly delegation: DelegationRecord
  /** Null: approved without a passkey. */
  readonly approval: DelegationApproval | null
}
export type DelegationRevoked = {
  readonly tag: 'revoked'
  readonly id: string
  readonly revokedAt: Date
}
export type UnknownDelegation = { readonly tag: 'unknown_delegation' }
/** An application needs `delegations:manage` to see delegations. */
export type MayNotSee = { readonly tag: 'may_not_see' }
/** RFC 9470: needs a token of a more recent or stronger sign-in. */
export type StepUpNeeded = {
  readonly tag: 'step_up_needed'
  /** The highest level that the person's factors reach. */
  readonly level: 2 | 3
  readonly maxAgeSecs: number
}

export type DelegationStatus = 'active' | 'revoked' | 'expired'
export type DelegationRecord = {
  readonly id: string
  readonly tenantId: TenantId
  readonly agentId: string
  readonly agentName: string
  /** The `sub` of the person. */
  readonly subject: string
  /** The person, for callers who may know them. */
  readonly user?: { readonly id: string; readonly email: string; readonly displayName: string }
  readonly scopes: readonly string[]
  readonly audience: string
  readonly purpose: string | null
  readonly purposeHash: string | null
  readonly policyHash: string
  readonly status: DelegationStatus
  readonly acr: string
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly createdAt: Date
  /** When the agent last got a token by it. Null before the first. */
  readonly lastUsedAt: Date | null
  readonly expiresAt: Date
  readonly revokedAt: Date | null
}

export type RevokeOwn = {
  readonly session: BrowserSession
  readonly token: string
  readonly delegationId: string
  readonly address: string
}

export const delegation = address<DelegationProtocol>('delegation', {
  idempotent: ['listDelegations', 'readDelegation', 'ofPerson'],
})
