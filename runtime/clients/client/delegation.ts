/**
 * Requests a delegation from a user, waits for the decision, and renews it
 * (docs/reference/agents.md). Also asks a user to connect an account at another service.
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

const CONNECTIONS = '/api/v1/vault/connections'

export type ConnectAccountOptions = {
  readonly http: HttpClient
  /** A delegated token with `vault:connect`. Requested at each poll, because it may expire before the decision. */
  readonly token: () => Promise<string>
  /** The name of the connector. */
  readonly connector: string
  readonly scopes?: readonly string[] | undefined
  /** Shown to the person. */
  readonly reason?: string | undefined
  readonly maxBytes?: number | undefined
  readonly expiresAt?: Date | undefined
  /** Gets the address that the person opens. Default: writes it to the standard error output. */
  readonly onLink?: ((connectUrl: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock | undefined
}

export type ConnectedAccount = {
  readonly connectionId: string
  /** `active`, `denied`, `expired` or `revoked`. */
  readonly status: string
  /** For the egress proxy. Null unless it is active. */
  readonly credentialId: string | null
  readonly accountLabel: string | null
}

/** @throws ServiceRefusal for a request that is refused; the signal's reason. */
export async function connectAccount(options: ConnectAccountOptions): Promise<ConnectedAccount> {
  const { http, token, connector, scopes, reason, signal, clock = systemClock } = options
  const asked = await expectAnswer(http, 201, {
    method: 'POST',
    path: CONNECTIONS,
    token: await token(),
    json: {
      connector,
      scopes,
      reason,
      max_bytes: options.maxBytes,
      expires_at: options.expiresAt?.toISOString(),
    },
  })
  const onLink = options.onLink ?? ((url: string) => process.stderr.write(`${url}\n`))
  onLink(textMember(asked, 'connect_url'))
  const connectionId = textMember(asked, 'id')
  const intervalSecs = numberMember(asked, 'interval')
  const deadlineMs = clock.monotonicMs() + (numberMember(asked, 'expires_in') + 60) * 1000
  const poll: Request = { method: 'GET', path: `${CONNECTIONS}/${connectionId}` }
  for (let waitSecs = intervalSecs; ; ) {
    await sleep(waitSecs * 1000, undefined, signal === undefined ? {} : { signal })
    const answer = await http.request({ ...poll, token: await token() })
    const status = member(answer.body, 'status')
    if (answer.status === 200 && status !== 'pending') {
      const body = answer.body as Members
      return {
        connectionId,
        status: textMember(body, 'status'),
        credentialId: textOrNull(body, 'credential_id'),
        accountLabel: textOrNull(body, 'account_label'),
      }
    }
    const next = answer.status === 200 ? intervalSecs : nextWait(answer, intervalSecs)
    if (next === null || clock.monotonicMs() >= deadlineMs) throw new ServiceRefusal(answer, poll)
    waitSecs = next
  }
}

function textOrNull(body: Members, name: string): string | null {
  const value = member(body, name)
  return typeof value === 'string' ? value : null
}
