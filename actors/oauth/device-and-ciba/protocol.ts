/**
 * Requests that a person decides elsewhere than where they were made: the device grant (RFC 8628) and
 * CIBA (OpenID Connect Client-Initiated Backchannel Authentication Core 1.0, poll mode).
 * decisions.md 7.3, 7.6 and 20 (device).
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../../identity/sessions/protocol.js'
import type { SessionId } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../tokens/protocol.js'

export type BackchannelProtocol = {
  /** RFC 8628 section 3.1. */
  startDevice: Ask<StartDevice, DeviceStarted | OAuthRefused | ProofRefused>
  /** The page: asks for the code, then asks the person. RFC 8628 section 3.3. */
  showDevice: Ask<ShowDevice, DevicePage>
  /** The person said yes or no. */
  decideDevice: Ask<DecideDevice, DevicePage | DeviceDecided>
  /** CIBA section 7.1. */
  startCiba: Ask<TokenRequest, CibaStarted | CibaRefused | OAuthRefused | ProofRefused>
  /** What waits for the person, the latest first. */
  listInbox: Ask<{ readonly person: InboxPerson }, InboxListed | StepUpNeeded>
  decideInInbox: Ask<DecideInInbox, InboxDecided | InboxRefused>
  /** The same for the page, which leads to whatever sign-in the answer needs. */
  showInbox: Ask<{ readonly session: BrowserSession }, InboxSeen>
  answerInbox: Ask<AnswerInbox, InboxAnswered>
}

/** The grant that an application needs, and that discovery lists. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
export const CIBA_GRANT = 'urn:openid:params:grant-type:ciba'

export type StartDevice = {
  readonly request: TokenRequest
  /** Address of the client behind trusted proxies. */
  readonly address: string
}
export type DeviceStarted = {
  readonly tag: 'started'
  readonly deviceCode: string
  /** As people type it: four letters, a hyphen, four letters. */
  readonly userCode: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}

export type ShowDevice = {
  /** As typed; null where nothing was. */
  readonly typed: string | null
  readonly sessionToken: string | null
  /** Whose guesses are counted together. */
  readonly address: string
  readonly uiLocales: string | null
}
export type DecideDevice = ShowDevice & {
  readonly typed: string
  /** Null: only the code was given so far. */
  readonly action: 'approve' | 'deny' | null
  /** The session that the question was shown to: another one is asked anew. */
  readonly sessionId: string
  /** The scopes that the question named: more than these are asked for anew. */
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
/** No request waits under this code. */
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
/** To a page of our own (303). */
export type Interaction = { readonly tag: 'interaction'; readonly location: string }
/** The question to the person. */
export type DeviceAsked = DeviceQuestion & { readonly tag: 'asked' }
/** The person holds nothing of what is asked for; the request goes on waiting. */
export type NothingToGrant = DeviceQuestion & { readonly tag: 'nothing_to_grant' }
/** Guesses cannot be counted at the moment. */
export type Busy = { readonly tag: 'busy' }

export type DeviceQuestion = {
  readonly userCode: string
  readonly sessionId: SessionId
  readonly tenant: PageTenant
  readonly clientName: string
  readonly email: string
  /** Those that can be granted. */
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
/** Refusals that only this endpoint knows (CIBA section 13). */
export type CibaRefused = {
  readonly tag: 'ciba_refused'
  readonly error: 'expired_login_hint_token' | 'invalid_binding_message'
  readonly description: string
}

/** Who looks into their inbox: at their browser, or by a token of theirs. */
export type InboxPerson = SignedInPerson | { readonly by: 'token'; readonly principal: Principal }

/** A user at a page of ours. */
export type SignedInPerson = { readonly by: 'session'; readonly session: BrowserSession }

export type InboxEntry = {
  readonly id: string
  readonly clientId: string
  readonly clientName: string
  readonly bindingMessage: string | null
  /** As asked for. */
  readonly scopes: readonly string[]
  /** What of it would be granted. */
  readonly grantable: readonly string[]
  /** The least level that the answer needs. */
  readonly level: 2 | 3
  /** `acr_values` asked for more than nothing. */
  readonly acrAsked: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}
export type InboxListed = { readonly tag: 'listed'; readonly requests: readonly InboxEntry[] }

/**
 * The answer to one request. A token may only deny: approving gives another application tokens of the
 * user, so that a token of one application must never be enough for it.
 */
export type DecideInInbox = {
  readonly requestId: string
  /** The scopes that the question named, where it named no more than can be granted: no others are. */
  readonly shown?: readonly string[] | undefined
  /** Address of the person behind trusted proxies. */
  readonly address: string
} & (
  | { readonly approve: boolean; readonly person: SignedInPerson }
  | { readonly approve: false; readonly person: InboxPerson }
)
export type InboxDecided = {
  readonly tag: 'decided'
  readonly approved: boolean
  readonly clientName: string
}
export type InboxRefused =
  /** None of this person's waits under the id. */
  | { readonly tag: 'unknown_request' }
  | StepUpNeeded
  /** The person holds nothing of what is asked for; the request goes on waiting. */
  | { readonly tag: 'nothing_to_grant' }

/** The sign-in is too weak or too old. `maxAgeSecs` in seconds; null where its age does not matter. */
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
  /** The scopes that the page named. */
  readonly shown: readonly string[]
  readonly address: string
}
export type InboxAnswered =
  | (InboxDecided & { readonly tenant: PageTenant })
  | { readonly tag: 'unknown_request' }
  | { readonly tag: 'nothing_to_grant' }
  | { readonly tag: 'interaction'; readonly location: string }

export const backchannel = address<BackchannelProtocol>('backchannel', ['listInbox', 'showInbox'])
