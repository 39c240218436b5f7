/**
 * Requests that a person decides elsewhere than where they were made: the device grant (RFC 8628).
 * decisions.md 7.3, 7.6 and 20 (device).
 */
import { address, type Ask } from '../../runtime/kernel/protocol.js'
import type { SessionId } from '../domain/ids.js'
import type { PageTenant } from '../login/protocol.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../tokens/protocol.js'

export type BackchannelProtocol = {
  /** RFC 8628 section 3.1. */
  startDevice: Ask<StartDevice, DeviceStarted | OAuthRefused | ProofRefused>
  /** The page: asks for the code, then asks the person. RFC 8628 section 3.3. */
  showDevice: Ask<ShowDevice, DevicePage>
  /** The person said yes or no. */
  decideDevice: Ask<DecideDevice, DevicePage | DeviceDecided>
}

/** The grant that an application needs, and that discovery lists. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

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

export const backchannel = address<BackchannelProtocol>('backchannel', [])
