/**
 * An agent's session: valid access tokens on demand, direct and delegated ones, renewed before they
 * expire and once more when the service refuses one.
 */
import { type Clock, systemClock } from '../../kernel/clock.js'
import type { AgentKey } from './agent.js'
import {
  askForDelegation,
  awaitDelegation,
  type DelegatedToken,
  type DelegationRequest,
  renewDelegation,
} from './delegation.js'
import type { Answer, HttpClient, Request } from './http.js'
import { type AgentToken, logIn } from './login.js'
import type { TenantChoice } from './registration.js'

/** A token that expires sooner is renewed, so that it lasts for its request. */
export const FRESH_FOR_SECS = 30

export type AgentSessionOptions = TenantChoice & {
  readonly http: HttpClient
  readonly key: AgentKey
  readonly issuer: string
  readonly agentId?: string | undefined
  /** The scope of the direct token. Default: all that the agent may have. */
  readonly scope?: string | undefined
  readonly clock?: Clock | undefined
}

export interface AgentSession {
  /** A direct access token that lasts at least half a minute. */
  token(): Promise<AgentToken>
  /** A request with the direct token, which is renewed once when the service refuses it (401). */
  request(request: Omit<Request, 'token'>): Promise<Answer>
  /**
   * Requests a delegation from a user. `show` receives the link and the code for the user. The
   * delegation renews itself like the session.
   */
  delegate(options: DelegateOptions): Promise<Delegation>
  /** An earlier delegation, from its stored tokens. */
  resumeDelegation(kept: DelegatedToken, onRenewed?: OnRenewed): Delegation
}

export type DelegateOptions = {
  readonly scope: string
  readonly audience?: string | undefined
  /** What the agent wants to do, in words that the user reads on the approval page. */
  readonly purpose?: string | undefined
  readonly show: (request: DelegationRequest) => void
  readonly onWait?: ((waitSecs: number) => void) | undefined
  readonly signal?: AbortSignal | undefined
  readonly onRenewed?: OnRenewed | undefined
}

/**
 * Receives each new refresh token before the access token is returned, because the old refresh
 * token is used up.
 */
export type OnRenewed = (token: DelegatedToken) => Promise<void> | void

export interface Delegation {
  readonly delegationId: string
  readonly subject: string
  /** A delegated access token that lasts at least half a minute. */
  token(): Promise<DelegatedToken>
  request(request: Omit<Request, 'token'>): Promise<Answer>
}

type Kept<Token> = { readonly token: Token; readonly endsMs: number }

export function agentSession(options: AgentSessionOptions): AgentSession {
  const { http, clock = systemClock } = options
  const direct = renewing(clock, undefined, () => logIn(options))

  function resume(kept: DelegatedToken, fresh: boolean, onRenewed: OnRenewed | undefined) {
    const held = renewing(clock, kept, async (last) => {
      const { refreshToken } = last ?? kept
      if (refreshToken === null) {
        throw new Error('the delegation has ended and cannot be renewed: request a new one')
      }
      const agentId = options.agentId ?? (await direct.get()).agentId
      const renewed = await renewDelegation({ http, agentId, refreshToken })
      await onRenewed?.(renewed)
      return renewed
    })
    if (!fresh) held.drop()
    const { delegationId, subject } = kept
    return { delegationId, subject, token: held.get, request: authorized(http, held) }
  }

  return {
    token: direct.get,
    request: authorized(http, direct),
    async delegate({ scope, audience, purpose, show, onWait, signal, onRenewed }) {
      const { accessToken: token } = await direct.get()
      const request = await askForDelegation({ http, token, scope, audience, purpose })
      show(request)
      const kept = await awaitDelegation({
        http,
        request,
        signal,
        onWait,
        clock,
        token: async () => (await direct.get()).accessToken,
      })
      return resume(kept, true, onRenewed)
    },
    // The age of the stored access token is unknown, so it is not used.
    resumeDelegation: (kept, onRenewed) => resume(kept, false, onRenewed),
  }
}

type Renewing<Token> = { get(): Promise<Token>; drop(): void }

/** Returns a token while it is valid. Concurrent callers wait for the same renewal. */
function renewing<Token extends { readonly expiresInSecs: number }>(
  clock: Clock,
  first: Token | undefined,
  renew: (last: Token | undefined) => Promise<Token>,
): Renewing<Token> {
  const keptFrom = (token: Token): Kept<Token> => ({
    token,
    endsMs: clock.monotonicMs() + token.expiresInSecs * 1000,
  })
  let last = first
  let kept = first === undefined ? undefined : keptFrom(first)
  let running: Promise<Token> | undefined
  return {
    get() {
      if (kept !== undefined && kept.endsMs - clock.monotonicMs() > FRESH_FOR_SECS * 1000) {
        return Promise.resolve(kept.token)
      }
      running ??= renew(last)
        .then((token) => {
          last = token
          kept = keptFrom(token)
          return token
        })
        .finally(() => (running = undefined))
      return running
    },
    drop() {
      kept = undefined
    },
  }
}

function authorized<Token extends { readonly accessToken: string }>(
  http: HttpClient,
  held: Renewing<Token>,
) {
  return async (request: Omit<Request, 'token'>): Promise<Answer> => {
    const send = async () => http.request({ ...request, token: (await held.get()).accessToken })
    const answer = await send()
    // The token was refused and nothing was done, so the same request may be sent again.
    if (answer.status !== 401) return answer
    held.drop()
    return send()
  }
}
