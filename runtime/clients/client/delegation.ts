/**
 * Requests a delegation from a user, waits for the decision, and renews it
 * (docs/reference/agents.md).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeJwt } from 'jose'
import { type Clock, systemClock } from '../../kernel/clock.js'
import type { Answer, HttpClient, Request } from './http.js'
import {
  expectAnswer,
  member,
  type Members,
  numberMember,
  secondsOf,
  ServiceRefusal,
  textMember,
} from './refusal.js'

const DEVICE = '/api/v1/agents/delegations/device'
/** What slow_down adds to the interval when the response does not say (RFC 8628 section 3.5). */
const SLOW_DOWN_SECS = 5
/** The wait after a poll without a response, and after 429 and 5xx without Retry-After. */
const UNANSWERED_WAIT_SECS = 5

export type DelegationRequest = {
  readonly deviceCode: string
  /** Formatted for reading, with its hyphen. */
  readonly userCode: string
  /** An absolute URL, which the user opens. */
  readonly verificationUrl: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}

export type DelegatedToken = {
  readonly delegationId: string
  readonly accessToken: string
  readonly expiresInSecs: number
  readonly scope: string
  /** Null when the delegation ends with the access token. */
  readonly refreshToken: string | null
  /** The user's `sub` in the tenant. */
  readonly subject: string
}

export type AskOptions = {
  readonly http: HttpClient
  /** A direct token of the agent, for the tenant of the user. */
  readonly token: string
  readonly scope: string
  readonly audience?: string | undefined
  /** What the agent wants to do, in words that the user reads on the approval page. */
  readonly purpose?: string | undefined
}

/** @throws ServiceRefusal: `invalid_scope`, `invalid_target`, 403 for a token that is not direct. */
export async function askForDelegation(options: AskOptions): Promise<DelegationRequest> {
  const { http, token, scope, audience, purpose } = options
  const body = await expectAnswer(http, 200, {
    method: 'POST',
    path: DEVICE,
    token,
    json: { scope, audience, purpose },
  })
  const complete = textMember(body, 'verification_uri_complete')
  return {
    deviceCode: textMember(body, 'device_code'),
    userCode: textMember(body, 'user_code_display'),
    verificationUrl: new URL(complete, http.baseUrl).href,
    expiresInSecs: numberMember(body, 'expires_in'),
    intervalSecs: numberMember(body, 'interval'),
  }
}

export type AwaitOptions = {
  readonly http: HttpClient
  readonly request: DelegationRequest
  /**
   * A direct token of the same agent. Requested at each poll, because a token may expire before the
   * decision.
   */
  readonly token: () => Promise<string>
  readonly signal?: AbortSignal | undefined
  /** Called before each wait, with its length in seconds. */
  readonly onWait?: ((waitSecs: number) => void) | undefined
  readonly clock?: Clock | undefined
}

/**
 * Polls until the user has decided, at the interval that the service sets. A poll without a
 * response is repeated while the request is valid.
 * @throws ServiceRefusal: `access_denied`, `expired_token`, `invalid_grant`; the signal's reason.
 */
export async function awaitDelegation(options: AwaitOptions): Promise<DelegatedToken> {
  const { http, request, token, signal, onWait, clock = systemClock } = options
  const deadlineMs = clock.monotonicMs() + request.expiresInSecs * 1000
  let intervalSecs = request.intervalSecs
  for (;;) {
    onWait?.(intervalSecs)
    await sleep(intervalSecs * 1000, undefined, signal === undefined ? {} : { signal })
    const poll: Request = { method: 'POST', path: `${DEVICE}/token` }
    let answer: Answer
    try {
      const json = { device_code: request.deviceCode }
      answer = await http.request({ ...poll, json, token: await token() })
    } catch (error) {
      // A connection error has a code. Any other error would occur again.
      const passing =
        error instanceof Error && 'code' in error && !(error instanceof ServiceRefusal)
      if (!passing || clock.monotonicMs() >= deadlineMs) throw error
      intervalSecs = Math.max(intervalSecs, UNANSWERED_WAIT_SECS)
      continue
    }
    if (answer.status === 200) return delegatedToken(answer.body as Members)
    const waitSecs = nextWait(answer, intervalSecs)
    if (waitSecs === null || clock.monotonicMs() >= deadlineMs) {
      throw new ServiceRefusal(answer, poll)
    }
    intervalSecs = waitSecs
  }
}

/** Seconds until the next poll. Null when another poll is pointless. */
export function nextWait({ status, headers, body }: Answer, intervalSecs: number): number | null {
  const code = member(body, 'error')
  const named = secondsOf(headers['retry-interval'])
  if (status === 400 && code === 'authorization_pending') return named ?? intervalSecs
  if (status === 400 && code === 'slow_down') return named ?? intervalSecs + SLOW_DOWN_SECS
  if (status === 429 || status >= 500) {
    return Math.max(secondsOf(headers['retry-after']) ?? UNANSWERED_WAIT_SECS, intervalSecs)
  }
  return null
}

export type RenewOptions = {
  readonly http: HttpClient
  readonly agentId: string
  readonly refreshToken: string
}

/**
 * Uses a refresh token. Store the one in the response before anything else. @throws ServiceRefusal:
 * `invalid_grant` when the delegation has ended.
 */
export async function renewDelegation(options: RenewOptions): Promise<DelegatedToken> {
  const { http, agentId, refreshToken } = options
  const body = await expectAnswer(http, 200, {
    method: 'POST',
    path: '/oauth/token',
    form: { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: agentId },
  })
  return delegatedToken(body)
}

function delegatedToken(body: Members): DelegatedToken {
  const accessToken = textMember(body, 'access_token')
  const claims = claimsOf(accessToken)
  const refreshToken = body['refresh_token']
  return {
    delegationId: textMember(claims, 'delegation_id'),
    accessToken,
    expiresInSecs: numberMember(body, 'expires_in'),
    scope: textMember(body, 'scope'),
    refreshToken: typeof refreshToken === 'string' ? refreshToken : null,
    subject: textMember(claims, 'sub'),
  }
}

/** The claims of a token, for its holder. A resource server must verify the token instead. */
function claimsOf(token: string): unknown {
  try {
    return decodeJwt(token)
  } catch {
    throw new TypeError("the claims of the service's access token cannot be parsed")
  }
}
