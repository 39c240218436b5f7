/** One request on its way through the pipeline: what was learned of it so far. */
import type { BrowserSession } from '../../actors/identity/sessions/protocol.js'
import type { Principal } from '../../actors/domain/principal.js'
import type { WindowState } from '../../actors/operations/rate-limits/protocol.js'
import type { AskOptions, Leaver } from '../../runtime/kernel/actor.js'
import { type Browser, NO_BROWSER } from './browser.js'
import type { ClientAddresses } from './client-address.js'
import type { CompiledRoute } from '../compile-route.js'
import type { HttpExchange, HeaderPair } from '../http-exchange.js'
import type { RequestOrigin } from './request-origin.js'
import type { AnyRouteRequest, Credentials, IdempotencyClaim } from '../route.js'

export const EMPTY: Readonly<Record<string, never>> = Object.freeze({})
const NO_PAIRS: readonly HeaderPair[] = []
const NO_COOKIES: readonly string[] = []
const NO_NAMES: readonly string[] = []

/** It is an `AskOptions` too: hand it to every ask on behalf of the request. */
export class RequestContext implements AskOptions, Leaver {
  readonly exchange: HttpExchange
  readonly requestId: string
  readonly startedMs: number
  /** Monotonic milliseconds after which nobody waits; undefined is no limit. */
  deadlineMs: number | undefined
  /** Null until the path and method are matched. */
  route: CompiledRoute | null = null
  rawParams: Readonly<Record<string, string>> = EMPTY
  cors: readonly HeaderPair[] = NO_PAIRS
  windows: readonly WindowState[] = []
  principal: Principal | null = null
  /** Whose turn its asks take: the caller's tenant once it is known, before that the client's address. */
  share = ''
  browser: Browser = NO_BROWSER
  session: BrowserSession | null = null
  /** JSON pointers of members of the body that the operation does not know. */
  unknown: readonly string[] = NO_NAMES
  /** The value of `svc-warnings`; null without any. */
  warnings: string | null = null
  /** Set-Cookie values that go with whatever is answered. */
  cookies: readonly string[] = NO_COOKIES
  /** Code of the error that is answered, for the log. */
  error: string | null = null
  hasLeft = false
  /** Who is to be told when the client leaves: nearly always one ask at a time, or none. */
  private following: (() => void) | null = null
  private more: Set<() => void> | null = null

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

  /** Only where `request_timeout_secs` sets no deadline. */
  get timeoutMs(): number | undefined {
    return this.deadlineMs === undefined ? NO_LIMIT_MS : undefined
  }

  get leaver(): Leaver {
    return this
  }

  onLeft(listener: () => void): () => void {
    if (this.following === null) this.following = listener
    else (this.more ??= new Set()).add(listener)
    return () => {
      if (this.following === listener) this.following = null
      else this.more?.delete(listener)
    }
  }

  /** The client has left: whatever was asked in its name is given up. */
  leave(): void {
    this.hasLeft = true
    const { following, more } = this
    this.following = null
    this.more = null
    following?.()
    if (more !== null) for (const tell of more) tell()
  }
}

/** With request_timeout_secs = 0 an ask still needs a number: the longest a timer holds. */
const NO_LIMIT_MS = 2_147_483_647

/** What routes read. Everything is worked out when somebody looks. */
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

  get credentials(): Credentials {
    return credentialsOf(this.context, this.originOf)
  }
}

/** The checked parts of a request. */
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
