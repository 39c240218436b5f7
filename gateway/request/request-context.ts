/** The state of a request in the pipeline. */
import type { BrowserSession } from '../../actors/identity/sign-in/sessions/protocol.js'
import type { RefusedRequester, VerifiedClient } from '../../actors/domain/oauth-reasons.js'
import type { Principal } from '../../actors/domain/principal.js'
import type { WindowState } from '../../actors/operations/rate-limits/protocol.js'
import type { AskOptions, Leaver } from '../../runtime/kernel/actor.js'
import type { Span } from '../../runtime/kernel/tracing.js'
import { type Browser, NO_BROWSER } from './browser.js'
import type { ClientAddresses } from './client-address.js'
import type { CompiledRoute } from '../compile-route.js'
import type { HttpExchange, HeaderPair } from '../http-exchange.js'
import type { RequestOrigin } from './request-origin.js'
import type { AnyRouteRequest, Credentials, FormFields, IdempotencyClaim } from '../route.js'
import { namedClient } from './presented-client.js'

export const EMPTY: Readonly<Record<string, never>> = Object.freeze({})
const NO_PAIRS: readonly HeaderPair[] = []
const NO_COOKIES: readonly string[] = []
const NO_NAMES: readonly string[] = []
const NO_FORM: FormFields = []
/** Values that are safe to log. */
const CLIENT_ID = /^[\x21-\x7e]{1,255}$/
const GRANT_TYPE = /^[a-z][a-z0-9:_-]{0,99}$/

/** Also the `AskOptions` of all asks on behalf of the request. */
export class RequestContext implements AskOptions, Leaver {
  readonly exchange: HttpExchange
  readonly requestId: string
  startedMs: number
  /** Deadline in monotonic milliseconds. Undefined is no limit. */
  deadlineMs: number | undefined
  /** Null until the path and method are matched. */
  route: CompiledRoute | null = null
  rawParams: Readonly<Record<string, string>> = EMPTY
  cors: readonly HeaderPair[] = NO_PAIRS
  windows: readonly WindowState[] = []
  principal: Principal | null = null
  /** Fair-share key of its asks: the caller's tenant, or the client's address before authentication. */
  share = ''
  browser: Browser = NO_BROWSER
  session: BrowserSession | null = null
  /** JSON pointers of unknown members of the body. */
  unknown: readonly string[] = NO_NAMES
  /** The value of `svc-warnings`, or null. */
  warnings: string | null = null
  /** Set-Cookie values of the response. */
  cookies: readonly string[] = NO_COOKIES
  /** Error code of the response, for the log. */
  error: string | null = null
  /** The check that failed. For the log. */
  reason: string | null = null
  /** The client that authenticated, or of the verified token. For the log. */
  client: VerifiedClient | null = null
  /** What a refusal of an OAuth endpoint says of its sender. For the log. */
  requester: RefusedRequester | null = null
  /** The check that failed, in words that only the log has. Null: `reason`. */
  logReason: string | null = null
  /** The form of an OAuth request. */
  form: FormFields = NO_FORM
  /** Undefined without tracing. */
  span: Span | undefined = undefined
  hasLeft = false
  /** The listener for the client's leaving. There is nearly always at most one ask at a time. */
  private onLeftListener: (() => void) | null = null
  private moreListeners: Set<() => void> | null = null

  constructor(
    exchange: HttpExchange,
    requestId: string,
    startedMs: number,
    deadlineMs: number | undefined,
  ) {
    this.exchange = exchange
    this.requestId = requestId
    this.startedMs = startedMs
    this.deadlineMs = deadlineMs
  }

  /** Set only if `request_timeout_secs` is 0. */
  get timeoutMs(): number | undefined {
    return this.deadlineMs === undefined ? NO_LIMIT_MS : undefined
  }

  get leaver(): Leaver {
    return this
  }

  /** What a request with client authentication says of itself, unverified. For the log. */
  get presented(): Pick<RefusedRequester, 'presented' | 'grantType'> {
    const { form, exchange, route } = this
    const isOfClient = route?.route.security.scheme === 'client'
    const clientId = isOfClient
      ? namedClient(exchange.headers.get('authorization') ?? null, form)
      : ''
    const grantType = form.find(([name]) => name === 'grant_type')?.[1] ?? ''
    return {
      presented: { clientId: CLIENT_ID.test(clientId) ? clientId : null, tenantId: null },
      grantType: GRANT_TYPE.test(grantType) ? grantType : null,
    }
  }

  onLeft(listener: () => void): () => void {
    if (this.onLeftListener === null) this.onLeftListener = listener
    else (this.moreListeners ??= new Set()).add(listener)
    return () => {
      if (this.onLeftListener === listener) this.onLeftListener = null
      else this.moreListeners?.delete(listener)
    }
  }

  /** Cancels all asks, because the client has left. */
  leave(): void {
    this.hasLeft = true
    const { onLeftListener, moreListeners } = this
    this.onLeftListener = null
    this.moreListeners = null
    onLeftListener?.()
    if (moreListeners !== null) for (const listener of moreListeners) listener()
  }
}

/** The longest timer, for asks without a deadline. */
const NO_LIMIT_MS = 2_147_483_647

/** The request as routes see it. Members are computed on access. */
export class RequestView implements AnyRouteRequest {
  private readonly context: RequestContext
  private readonly addresses: ClientAddresses
  private readonly originOf: RequestOrigin
  private readonly parts: Parts

  constructor(
    context: RequestContext,
    addresses: ClientAddresses,
    originOf: RequestOrigin,
    parts: Parts,
  ) {
    this.context = context
    this.addresses = addresses
    this.originOf = originOf
    this.parts = parts
  }

  get params(): unknown {
    return this.parts.params
  }

  get query(): unknown {
    return this.parts.query
  }

  get headers(): unknown {
    return this.parts.headers
  }

  get body(): unknown {
    return this.parts.body
  }

  get idempotency(): IdempotencyClaim | null {
    return this.parts.idempotency
  }

  get principal(): Principal | null {
    return this.context.principal
  }

  get session(): BrowserSession | null {
    return this.context.session
  }

  get browser(): Browser {
    return this.context.browser
  }

  get requestId(): string {
    return this.context.requestId
  }

  get host(): string {
    return this.context.exchange.host
  }

  get clientAddress(): string {
    return clientAddressOf(this.context, this.addresses)
  }

  get registeringNetwork(): string | null {
    return this.addresses.networkOf(this.clientAddress)
  }

  get credentials(): Credentials {
    return credentialsOf(this.context, this.originOf)
  }
}

/** The validated parts of a request. */
export type Parts = {
  readonly params: unknown
  readonly query: unknown
  readonly headers: unknown
  readonly body: unknown
  readonly idempotency: IdempotencyClaim | null
}

export const NO_PARTS: Parts = Object.freeze({
  params: EMPTY,
  query: EMPTY,
  headers: EMPTY,
  body: null,
  idempotency: null,
})

export function clientAddressOf({ exchange }: RequestContext, addresses: ClientAddresses): string {
  return addresses.clientOf(exchange.peerAddress, exchange.headers.get('x-forwarded-for'))
}

export function credentialsOf({ exchange }: RequestContext, originOf: RequestOrigin): Credentials {
  return {
    authorization: exchange.headers.get('authorization') ?? null,
    dpopProof: exchange.headers.get('dpop') ?? null,
    httpMethod: exchange.method,
    httpUrl: `${originOf(exchange)}${exchange.path}`,
  }
}
