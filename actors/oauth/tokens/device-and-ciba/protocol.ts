/**
 * Messages of the device grant (RFC 8628) and CIBA (OpenID Connect Client-Initiated Backchannel
 * Authentication Core 1.0, poll mode). See docs/reference/oauth.md.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import type { SessionId } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../protocol.js'

export type BackchannelProtocol = {
  /** RFC 8628 section 3.1. */
  authorizeDevice: Ask<TokenRequest, DeviceStarted | OAuthRefused | ProofRefused>
  /** The verification page: asks for the code, then for consent (RFC 8628 section 3.3). */
  showDeviceVerification: Ask<ShowDevice, DevicePage>
  /** The user approved or denied the device. */
  verifyDevice: Ask<DecideDevice, DevicePage | DeviceDecided>
  /** CIBA section 7.1. */
  authorizeBackchannel: Ask<TokenRequest, CibaStarted | CibaRefused | OAuthRefused | ProofRefused>
  /** The pending requests of a user, the newest first. */
  listBackchannelRequests: Ask<{ readonly person: InboxPerson }, InboxListed | StepUpNeeded>
  /**
   * An access token can only deny: an approval gives the user's authority to another application, which no application
   * may trigger with its own token.
   */
  approveBackchannelRequest: Ask<DecideRequest<SignedInPerson>, InboxDecided | InboxRefused>
  denyBackchannelRequest: Ask<DecideRequest<InboxPerson>, InboxDecided | InboxRefused>
  /** The same for the page, which redirects to a stronger sign-in if needed. */
  showInbox: Ask<{ readonly session: BrowserSession }, InboxSeen>
  answerInbox: Ask<AnswerInbox, InboxAnswered>
}

export type DeviceStarted = {
  readonly tag: 'started'
  readonly deviceCode: string
  /** As shown to users: four letters, a hyphen, four letters. */
  readonly userCode: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}

export type ShowDevice = {
  /** The user code as entered. Null on the empty form. */
  readonly typed: string | null
  readonly sessionToken: string | null
  /** Client address. Wrong codes are counted per address. */
  readonly address: string
  readonly uiLocales: string | null
}
export type DecideDevice = ShowDevice & {
  readonly typed: string
  /** Null if only the code was submitted. */
  readonly action: 'approve' | 'deny' | null
  /** The request of the page. */
  readonly requestId: string
  /** The session in which the page was shown. In another one it is shown again. */
  readonly sessionId: string
  /** The scopes that the page showed. If more can be granted now, it is shown again. */
  readonly scopes: readonly string[]
}

export type DevicePage =
  | CodeAsked
  | CodeUnknown
  | GuessesSpent
  | Interaction
  | DeviceAsked
  | NothingToGrant
  | Busy
/** The empty form. */
export type CodeAsked = { readonly tag: 'code_asked'; readonly uiLocales: string | null }
/** No pending request has this code. */
export type CodeUnknown = {
  readonly tag: 'code_unknown'
  readonly typed: string
  readonly uiLocales: string | null
}
/** Too many wrong codes from this address. */
export type GuessesSpent = {
  readonly tag: 'guesses_spent'
  readonly retryAfterSecs: number
  readonly uiLocales: string | null
}
/** Redirects to a page of the service (303). */
export type Interaction = { readonly tag: 'interaction'; readonly location: string }
/** Asks the user for consent. */
export type DeviceAsked = DeviceQuestion & { readonly tag: 'asked' }
/** The user can grant none of the requested scopes. The request stays pending. */
export type NothingToGrant = DeviceQuestion & { readonly tag: 'nothing_to_grant' }
/** The coordination backend is unavailable, so guesses cannot be counted. */
export type Busy = { readonly tag: 'busy' }

export type DeviceQuestion = {
  readonly requestId: string
  readonly userCode: string
  readonly sessionId: SessionId
  readonly tenant: PageTenant
  readonly clientName: string
  readonly email: string
  /** The scopes that the user can grant. */
  readonly scopes: readonly string[]
  readonly askedFrom: string | null
  readonly askedAt: Date
  readonly uiLocales: string | null
}
export type DeviceDecided = {
  readonly tag: 'decided'
  readonly approved: boolean
  readonly tenant: PageTenant
  readonly clientName: string
  readonly uiLocales: string | null
}

export type CibaStarted = {
  readonly tag: 'started'
  readonly authReqId: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}
/** Errors that only this endpoint has (CIBA section 13). */
export type CibaRefused = {
  readonly tag: 'ciba_refused'
  readonly error: 'expired_login_hint_token' | 'invalid_binding_message'
  readonly description: string
}

/** The owner of an inbox, identified by browser session or access token. */
export type InboxPerson = SignedInPerson | { readonly by: 'token'; readonly principal: Principal }

/** A user signed in on a page of the service. */
export type SignedInPerson = { readonly by: 'session'; readonly session: BrowserSession }

export type InboxEntry = {
  readonly id: string
  readonly clientId: string
  readonly clientName: string
  readonly bindingMessage: string | null
  /** The requested scopes. */
  readonly scopes: readonly string[]
  /** The scopes that the user can grant. */
  readonly grantable: readonly string[]
  /** The assurance level that an approval needs. */
  readonly level: 2 | 3
  /** The requested acr. Null for the default level. */
  readonly acrAsked: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}
export type InboxListed = { readonly tag: 'listed'; readonly requests: readonly InboxEntry[] }

export type DecideRequest<Person> = {
  readonly requestId: string
  readonly person: Person
  /** Client address of the user, with trusted proxies resolved. */
  readonly address: string
}
export type InboxDecided = {
  readonly tag: 'decided'
  readonly approved: boolean
  readonly clientName: string
}
export type InboxRefused =
  /** The user has no pending request with this id. */
  | { readonly tag: 'unknown_request' }
  | StepUpNeeded
  /** The user can grant none of the requested scopes. The request stays pending. */
  | { readonly tag: 'nothing_to_grant' }

/** The sign-in is too weak or too old. `maxAgeSecs` is in seconds, or null if its age does not matter. */
export type StepUpNeeded = {
  readonly tag: 'step_up_needed'
  readonly level: 2 | 3
  readonly maxAgeSecs: number | null
}

export type InboxSeen = InboxListed & {
  readonly session: BrowserSession
  readonly tenant: PageTenant
}
export type AnswerInbox = {
  readonly session: BrowserSession
  readonly sessionToken: string
  readonly requestId: string
  readonly approve: boolean
  /** The scopes that the page showed. */
  readonly shown: readonly string[]
  readonly address: string
}
export type InboxAnswered =
  | (InboxDecided & { readonly tenant: PageTenant })
  | { readonly tag: 'unknown_request' }
  | { readonly tag: 'nothing_to_grant' }
  | { readonly tag: 'interaction'; readonly location: string }

export const backchannel = address<BackchannelProtocol>('backchannel', {
  idempotent: ['listBackchannelRequests', 'showInbox'],
})
