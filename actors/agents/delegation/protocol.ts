/**
 * Device-style delegation: an agent asks, a person decides in their browser, the agent polls.
 * interface.md, Device delegation; decisions.md section 3 and 21.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../../identity/sessions/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { ListCursor } from '../../domain/paging.js'

export type DelegationProtocol = {
  /** An agent asks for authority; nobody has decided. */
  start: Ask<
    StartDelegation,
    Started | { tag: 'invalid_scope'; scopes: readonly string[] } | InvalidTarget
  >
  poll: Ask<PollDelegation, PollOutcome>
  /** The page of a request: for whoever opens it, until it is decided. */
  show: Ask<ShowRequest, Asked | Decided | SignIn | UnknownRequest | RequestOver>
  approve: Ask<DecideRequest, Back | NothingHeld | SignIn | UnknownRequest | RequestOver>
  deny: Ask<DecideRequest, Back | SignIn | UnknownRequest | RequestOver>
  /** What the caller may see: a person their own, an agent those it holds. */
  list: Ask<ListDelegations, DelegationsListed | MayNotSee>
  read: Ask<OneDelegation, DelegationFound | UnknownDelegation | MayNotSee>
  /** Ends a delegation, by a person who is surely there. */
  revoke: Ask<OneDelegation, DelegationRevoked | UnknownDelegation | StepUpNeeded>
  /** Those of a person that are in force, for the page of their account. */
  ofPerson: Ask<
    { tenantId: TenantId; sub: string },
    { tag: 'listed'; delegations: DelegationRecord[] }
  >
  /** Ends one from the page of the account. */
  revokeOwn: Ask<RevokeOwn, { tag: 'revoked' } | UnknownDelegation | SignIn>
}

export type StartDelegation = {
  readonly caller: Caller
  readonly scope: string
  /** The audience of an application of the tenant; null: this service. */
  readonly audience: string | null
}
export type Started = {
  readonly tag: 'started'
  readonly deviceCode: string
  readonly userCode: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}
export type InvalidTarget = { readonly tag: 'invalid_target' }

export type PollDelegation = { readonly principal: Principal; readonly deviceCode: string }
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
  /** Unknown, another agent's, or redeemed before. */
  | { readonly tag: 'invalid' }

/** A browser at the page of a user code, as its person typed it. */
export type ShowRequest = { readonly userCode: string; readonly sessionToken: string | null }
export type DecideRequest = ShowRequest & {
  /** The session to which the page was shown. */
  readonly sessionId: string
  readonly address: string
}

/** The question: who asks, from where, for what, and what of it the person can give. */
export type Asked = {
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
  readonly audience: string
  /** The application whose audience it is; null for this service. */
  readonly audienceName: string | null
  readonly scopes: readonly { readonly name: string; readonly held: boolean }[]
  /** How long the delegation holds from the moment the agent fetches its token. */
  readonly lifetimeSecs: number
  /** When the agent registered; null for one that is gone. */
  readonly agentSince: Date | null
  /** When this person last let this agent act for them; null where nothing of it is kept. */
  readonly lastDelegatedAt: Date | null
}
/** What became of it, for the person who decided. */
export type Decided = {
  readonly tag: 'decided'
  readonly tenant: PageTenant
  readonly agentName: string
  readonly decision: 'approved' | 'denied'
}
/** The same question again: the person holds nothing of what was asked for. */
export type NothingHeld = { readonly tag: 'nothing_held'; readonly asked: Asked }
/** To the page of the request. An own path. */
export type Back = { readonly tag: 'back'; readonly location: string }
export type SignIn = { readonly tag: 'sign_in'; readonly location: string }
export type UnknownRequest = { readonly tag: 'unknown_request' }
export type RequestOver = { readonly tag: 'request_over' }

export type ListDelegations = {
  readonly principal: Principal
  readonly limit: number
  readonly after: ListCursor | null
}
export type OneDelegation = { readonly caller: Caller; readonly delegationId: string }
export type DelegationsListed = {
  readonly tag: 'listed'
  readonly delegations: readonly DelegationRecord[]
  readonly next: ListCursor | null
}
export type DelegationFound = { readonly tag: 'found'; readonly delegation: DelegationRecord }
export type DelegationRevoked = {
  readonly tag: 'revoked'
  readonly id: string
  readonly revokedAt: Date
}
export type UnknownDelegation = { readonly tag: 'unknown_delegation' }
/** Neither a person nor an agent: an application sees delegations with delegations:manage. */
export type MayNotSee = { readonly tag: 'may_not_see' }
/** RFC 9470: the same token cannot do it, a fresher or stronger one can. */
export type StepUpNeeded = {
  readonly tag: 'step_up_needed'
  /** The highest that the person can reach. */
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
  readonly scopes: readonly string[]
  readonly audience: string
  readonly status: DelegationStatus
  readonly acr: string
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
}

export type RevokeOwn = {
  readonly session: BrowserSession
  readonly token: string
  readonly delegationId: string
  readonly address: string
}

export const delegation = address<DelegationProtocol>('delegation', ['list', 'read', 'ofPerson'])
