/**
 * The request pipeline: host, route, CORS, rate limits, authentication, input, actor, response. All requests pass
 * it in this order. A route skips the steps that it does not need.
 */
import { ActorUnavailable, type AskOptions } from '../runtime/kernel/actor.js'
import { type Clock, systemClock } from '../runtime/kernel/clock.js'
import type { Logger } from '../runtime/kernel/log.js'
import type { Random } from '../runtime/kernel/random.js'
import {
  isSampledAt,
  readTraceparent,
  type Span,
  traceIdOf,
  tracing,
  writeTraceparent,
} from '../runtime/kernel/tracing.js'
import { type Responder, wordOf } from './response/respond.js'
import { type Authenticator, refuseAuthority, scopesOf } from './request/authenticate.js'
import type { Administration } from './request/administration.js'
import type { BillingCheck } from './request/billing.js'
import type { ControlPlaneCheck, Judged } from './request/control-plane-tokens.js'
import type { ClientAddresses } from './request/client-address.js'
import type { Principal } from '../actors/domain/principal.js'
import type { Metered } from '../actors/oauth/tokens/protocol.js'
import { quotaAddress } from '../actors/domain/quota-address.js'
import { type CompiledRoute, isPath, SHORT_ANSWER_BYTES } from './compile-route.js'
import { warningsHeader } from './body/unknown-members.js'
import { BodyUnreadable, type HttpExchange } from './http-exchange.js'
import { type Cors, preflightHeaders } from './headers/cors.js'
import { rateLimited } from './headers/rate-limit.js'
import type { HostPolicy } from './request/hosts.js'
import { clientIdOf, type InputReader, restIsDropped } from './request/input.js'
import {
  type BrowserSessionGuard,
  FOREIGN_CALL,
  noSession,
} from './request/browser-session-guard.js'
import { wantsPage } from './request/browser.js'
import {
  ALLOW_ALL,
  BODY_PROBLEMS,
  FAULT_PROBLEMS,
  MALFORMED_HOST,
  MISDIRECTED,
  NOT_FROM_HERE,
  STARTING,
  unavailable,
} from './response/refusals.js'
import type { Quotas, QuotaVerdict } from './request/quotas.js'
import type { ReplyContext } from './response/replies.js'
import type { AnyRouteRequest, Security, StreamedBody } from './route.js'
import { RequestIds } from './request/request-ids.js'
import type { RequestOrigin } from './request/request-origin.js'
import type { Resource, Router } from './router.js'
import {
  clientAddressOf,
  credentialsOf,
  NO_PARTS,
  RequestView,
  RequestContext,
} from './request/request-context.js'

export type PipelineNeeds = {
  readonly router: Router<CompiledRoute>
  readonly respond: Responder
  readonly hosts: HostPolicy
  readonly addresses: ClientAddresses
  readonly cors: Cors
  readonly quotas: Quotas
  readonly authenticator: Authenticator
  /** Verifies SCIM tokens. */
  readonly scimAuthenticator: Authenticator
  /** Null: deployment operators may use their scopes from everywhere. */
  readonly administration: Administration | null
  /** Null in a process without tokens. */
  readonly controlPlane: ControlPlaneCheck | null
  /** Null where plans are off. */
  readonly billing: BillingCheck | null
  readonly sessionGuard: BrowserSessionGuard
  readonly input: InputReader
  readonly originOf: RequestOrigin
  readonly baseUrl: string
  readonly requestTimeoutMs: number
  /** True for a sandbox tenant. Without this function no warnings are sent. */
  readonly isSandbox?: ((tenantId: string, options: AskOptions) => Promise<boolean>) | undefined
  /** `telemetry.sample_ratio`. */
  readonly sampleRatio: number
  readonly metricsToken: ((authorization: string) => boolean) | null
  /** While the service starts only health probes are served. Other requests wait for it, and get 503 on false. */
  readonly started: () => true | Promise<boolean>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export class Pipeline {
  private readonly needs: PipelineNeeds
  private readonly ids: RequestIds

  constructor(needs: PipelineNeeds) {
    this.needs = needs
    this.ids = new RequestIds(needs.clock, needs.random)
  }

  /** Handles one exchange. Never throws. */
  handle(exchange: HttpExchange): void {
    const now = this.needs.clock.monotonicMs()
    const requestId = this.ids.idOf(exchange.headers.get('x-request-id'), now)
    const context = new RequestContext(exchange, requestId, now, this.deadlineAfter(now))
    if (tracing === undefined) this.serve(context)
    else {
      context.span = this.beginSpan(context)
      tracing.within(context.span, () => this.serve(context))
    }
  }

  private deadlineAfter(now: number): number | undefined {
    const { clock, requestTimeoutMs } = this.needs
    // Deadlines of actors are in real time, also if a test stops the clock.
    const realMs = clock === systemClock ? now : systemClock.monotonicMs()
    return requestTimeoutMs > 0 ? realMs + requestTimeoutMs : undefined
  }

  /** The span of a request. Senders behind trusted proxies decide whether their trace is recorded. */
  private beginSpan({ exchange, requestId }: RequestContext): Span {
    const { addresses, sampleRatio } = this.needs
    const sent = readTraceparent(exchange.headers.get('traceparent'))
    const parent =
      sent === undefined || addresses.trusts(exchange.peerAddress)
        ? sent
        : { ...sent, isSampled: sent.isSampled && isSampledAt(sampleRatio, sent.traceId) }
    return tracing!.begin(exchange.method, {
      role: 'server',
      parent: parent === undefined ? undefined : writeTraceparent(parent),
      traceId: traceIdOf(requestId),
      attributes: {
        'http.request.method': exchange.method,
        'url.path': exchange.path,
        'url.scheme': exchange.secure ? 'https' : 'http',
        'svc.request_id': requestId,
      },
    })
  }

  /** Matches the route and runs the pipeline. Never throws. */
  private serve(context: RequestContext): void {
    const { respond, hosts, router } = this.needs
    const { exchange } = context
    try {
      if (exchange.fault !== null) {
        respond.problem(context, FAULT_PROBLEMS[exchange.fault], true)
        return
      }
      const host = exchange.isHostless === true ? 'served' : hosts(exchange.host)
      if (host !== 'served') {
        respond.problem(context, host === 'malformed' ? MALFORMED_HOST : MISDIRECTED)
        return
      }
      if (exchange.path === '*') {
        respond.send(context, { status: 204, pairs: [ALLOW_ALL] })
        return
      }
      const match = router.match(exchange.path)
      const method = exchange.method === 'HEAD' ? 'GET' : exchange.method
      const route = match?.resource.methods.get(method)
      if (match === null || !isPath(match, route, exchange.headers)) {
        respond.problem(context, {
          name: 'not-found',
          detail: 'There is no resource at this path.',
        })
        return
      }
      if (route === undefined) {
        void this.withoutRoute(context, match.resource)
        return
      }
      context.route = route
      context.rawParams = match.params
      const started = route.isHealth || this.needs.started()
      if (started === true) this.enter(context, route)
      else void this.enterLater(context, route, started)
    } catch (error) {
      this.fail(context, error)
    }
  }

  private enter(context: RequestContext, route: CompiledRoute): void {
    const { bytes } = route.expected
    const turn = route.isLight && bytes <= SHORT_ANSWER_BYTES ? true : context.exchange.turn(bytes)
    if (turn === true) this.begin(context, route)
    else void this.enterInTurn(context, route, turn)
  }

  private begin(context: RequestContext, route: CompiledRoute): void {
    if (route.isLight) this.answerLight(context, route)
    else void this.answer(context, route)
  }

  /** The time before does not count, because the client did not read its earlier answers. */
  private async enterInTurn(
    context: RequestContext,
    route: CompiledRoute,
    turn: Promise<void>,
  ): Promise<void> {
    await turn
    if (context.exchange.done) return
    context.startedMs = this.needs.clock.monotonicMs()
    context.deadlineMs = this.deadlineAfter(context.startedMs)
    this.begin(context, route)
  }

  private async enterLater(
    context: RequestContext,
    route: CompiledRoute,
    started: Promise<boolean>,
  ): Promise<void> {
    try {
      if (await started) this.enter(context, route)
      else this.needs.respond.problem(context, STARTING)
    } catch (error) {
      this.fail(context, error)
    }
  }

  /** Serves routes without input and authentication. */
  private answerLight(context: RequestContext, route: CompiledRoute): void {
    const { quotas, addresses, originOf } = this.needs
    const { cors: policy = 'configured', cache } = route.route
    const origin = context.exchange.headers.get('origin')
    const cors = this.needs.cors.headers(policy, origin, undefined, cache !== undefined)
    if (!(cors instanceof Promise)) context.cors = cors
    if (route.throttling.byDefault !== 'none' && quotas.enabled) {
      if (!this.admit(context, quotas.takeDefault(this.addressKey(context)))) return
    }
    const { target } = route.route
    if (target.via !== 'actor') return
    const request = new RequestView(context, addresses, originOf, NO_PARTS)
    route
      .ref!.ask(target.kind, target.message(request), context)
      .then((outcome) => this.conclude(context, route, outcome))
      .catch((error: unknown) => this.fail(context, error))
  }

  private async answer(context: RequestContext, route: CompiledRoute): Promise<void> {
    try {
      context.exchange.onAborted(() => context.leave())
      const request = await this.prepare(context, route)
      if (request !== null) await this.ask(context, route, request)
    } catch (error) {
      this.fail(context, error)
    }
  }

  /** All steps before the actor. @returns null if the request was answered already. */
  private async prepare(
    context: RequestContext,
    route: CompiledRoute,
  ): Promise<AnyRouteRequest | null> {
    const { quotas, addresses, originOf, input, respond, sessionGuard, cors } = this.needs
    const { exchange } = context
    const { throttling } = route
    const { cors: policy = 'configured', cache } = route.route
    sessionGuard.loadBrowser(context, route.route.security)
    const origin = exchange.headers.get('origin')
    // Refusals before the client is known are read by the pages that a preflight lets call.
    const corsHeaders = cors.headers(policy, origin, null, cache !== undefined)
    context.cors = corsHeaders instanceof Promise ? await corsHeaders : corsHeaders

    if (quotas.enabled) {
      if (throttling.byDefault === 'address') {
        if (!this.admit(context, quotas.takeDefault(this.addressKey(context)))) return null
      }
      if (throttling.early.length > 0) {
        const key = this.addressKey(context)
        const taken = throttling.early.map((policy) => ({ policy, key }))
        if (!this.admit(context, await quotas.takeShared(taken, context))) return null
      }
    }
    if (isGuarded(route) && !(await this.authenticate(context, route))) return null
    if (quotas.enabled && throttling.byDefault === 'caller') {
      const { principal } = context
      const key = principal === null ? this.addressKey(context) : `token:${principal.tokenId}`
      if (!this.admit(context, quotas.takeDefault(key))) return null
    }

    const refusal = route.route.refuse?.(exchange)
    if (refusal !== undefined) {
      respond.problem(context, refusal)
      return null
    }
    const reading = input.read(context, route, context.principal, (bytes) => {
      const keyOf = () => context.principal?.tenantId ?? this.addressKey(context)
      const large = quotas.refuseBody(keyOf, bytes)
      return large === null || this.admit(context, large)
    })
    const parts = reading instanceof Promise ? await reading : reading
    if (context.unknown.length > 0) await this.warn(context)
    if (!parts.ok) {
      if (parts.problem !== null) respond.problem(context, parts.problem, parts.close === true)
      return null
    }
    if (route.route.errors === 'oauth' && Array.isArray(parts.value.body))
      context.form = parts.value.body
    const foreign = sessionGuard.refuseForm(context, route.route.security, parts.value.body)
    if (foreign !== null) {
      respond.problem(context, foreign)
      return null
    }
    const request = new RequestView(context, addresses, originOf, parts.value)
    if (origin !== undefined && policy === 'application-origins') {
      context.cors = await cors.headers(policy, origin, clientIdOf(request))
    }
    if (quotas.enabled && throttling.late.length > 0) {
      const taken = throttling.late.map(({ policy, by }) => ({
        policy,
        key: typeof by === 'function' ? by(request) : this.callerKey(context),
      }))
      if (!this.admit(context, await quotas.takeShared(taken, context))) return null
    }
    return request
  }

  /** Warns of unknown members, in sandbox tenants only. */
  private async warn(context: RequestContext): Promise<void> {
    const { principal, unknown } = context
    const isSandbox = this.needs.isSandbox
    if (principal === null || isSandbox === undefined) return
    // A failed warning must not fail the request.
    const warns = await isSandbox(principal.tenantId, context).catch(() => false)
    if (warns) context.warnings = warningsHeader(unknown)
  }

  /** @returns false if the request was refused. */
  private async authenticate(context: RequestContext, { route }: CompiledRoute): Promise<boolean> {
    const { security } = route
    const { respond, authenticator, quotas, originOf, metricsToken } = this.needs
    if (security.scheme === 'session') {
      const location = await this.needs.sessionGuard.openSession(context)
      if (location === null) return true
      if (route.errors === undefined && !wantsPage(context.exchange.headers)) {
        respond.problem(context, noSession(location))
        return false
      }
      respond.send(context, { status: 303, pairs: [['location', location]] })
      return false
    }
    const authorization = context.exchange.headers.get('authorization')
    if (authorization === undefined && security.scheme === 'optional') return true
    if (authorization === undefined && isPageCall(security)) {
      const call = await this.needs.sessionGuard.openCall(context)
      if (call === 'open') return true
      if (call === 'foreign') {
        respond.problem(context, FOREIGN_CALL)
        return false
      }
    }
    if (security.scheme === 'metrics' && authorization !== undefined) {
      if (metricsToken?.(authorization) === true) return true
    }
    // A quota per address counts refused tokens. Over it, a wrong token is 429. A signed token is still verified, so that
    // guessing costs no other caller behind the address. Other tokens need the database, and are refused.
    const guesses = `refused:${this.addressKey(context)}`
    const spent =
      quotas.enabled && quotas.anySpent() && !isSigned(authorization)
        ? quotas.spentDefault(guesses)
        : null
    if (spent !== null) return this.admit(context, spent)
    const credentials = credentialsOf(context, originOf)
    const { host } = context.exchange
    const verifier = security.scheme === 'scim' ? this.needs.scimAuthenticator : authenticator
    const addressOf = () => clientAddressOf(context, this.needs.addresses)
    const result = await verifier.authenticate(
      credentials,
      host,
      addressOf,
      scopesOf(security),
      context,
    )
    if (result.tag === 'problem') {
      if (quotas.enabled && authorization !== undefined) {
        const counted = quotas.takeDefault(guesses)
        if (counted.tag === 'exceeded') return this.admit(context, counted)
      }
      respond.problem(context, result.problem)
      return false
    }
    context.client = result.principal
    const { administration, billing } = this.needs
    const allowed = administration?.(result.principal, addressOf()) ?? result.principal
    const judged = await this.judge(security, allowed, context)
    if ('refused' in judged) {
      const isElsewhere =
        allowed !== result.principal &&
        !('refused' in (await this.judge(security, result.principal, context)))
      // A token of an operator at another address may be stolen.
      respond.problem(context, isElsewhere ? NOT_FROM_HERE : judged.refused)
      return false
    }
    const { principal } = judged
    if (billing !== null) {
      const unpaid = await billing(route, principal, context)
      if (unpaid !== null) {
        respond.problem(context, unpaid)
        return false
      }
    }
    context.principal = principal
    return true
  }

  /** Checks the tenant, scopes and kind of a valid token against the route. */
  private judge(
    security: Security,
    presented: Principal,
    context: RequestContext,
  ): Judged | Promise<Judged> {
    const { controlPlane, baseUrl } = this.needs
    const judge = (judged: Judged): Judged => {
      if ('refused' in judged) return judged
      const refused = refuseAuthority(security, judged.principal, baseUrl)
      return refused === undefined ? judged : { refused }
    }
    if (controlPlane === null) return judge({ principal: presented })
    const judged = controlPlane(security, presented, context)
    return judged instanceof Promise ? judged.then(judge) : judge(judged)
  }

  private async ask(
    context: RequestContext,
    compiled: CompiledRoute,
    request: AnyRouteRequest,
  ): Promise<void> {
    const { respond } = this.needs
    const { target } = compiled.route
    if (target.via === 'gateway') {
      respond.rendered(context, await target.answer(request, context), false)
      return
    }
    const { proxy = false, body } = compiled.route
    if (proxy) context.deadlineMs = undefined
    context.share =
      context.principal?.tenantId ?? context.session?.tenantId ?? this.addressKey(context)
    let outcome: { readonly tag: string }
    try {
      outcome = await compiled.ref!.ask(target.kind, target.message(request), context)
    } catch (error) {
      if (body?.kind === 'stream') (request.body as StreamedBody).stream?.cancel('not taken')
      throw error
    }
    // If the body failed, the outcome is of an incomplete body.
    const { bodyFailure } = context.exchange
    if (bodyFailure !== null && body?.kind === 'stream') throw new BodyUnreadable(bodyFailure)
    this.conclude(context, compiled, outcome)
  }

  private conclude(
    context: RequestContext,
    compiled: CompiledRoute,
    outcome: { readonly tag: string },
  ): void {
    const rule = compiled.rules[outcome.tag]
    if (rule === undefined) {
      const { method, path } = compiled.route
      throw new Error(`${method} ${path}: unknown outcome ${outcome.tag}`)
    }
    const { windows } = outcome as Metered
    if (windows !== undefined) context.windows = [...context.windows, ...windows]
    const replayed = 'replayed' in outcome && outcome.replayed === true
    const rendered = rule.render(outcome as never, this.contextOf(context))
    // A page says to a person what failed, and the log line of the request says it to the operator.
    if (rendered.form === 'body' && rendered.status >= 400 && rendered.fault === undefined) {
      context.error ??= wordOf(outcome)
      context.logReason ??= context.error
    }
    this.needs.respond.rendered(context, rendered, replayed)
  }

  /** A known path with an unknown method: preflight, OPTIONS, or 405. */
  private async withoutRoute(
    context: RequestContext,
    resource: Resource<CompiledRoute>,
  ): Promise<void> {
    const { respond, cors } = this.needs
    const { method, headers } = context.exchange
    try {
      if (method !== 'OPTIONS') {
        const rpc = [...resource.methods.values()].find(({ route }) => route.errors === 'json-rpc')
        // The error has the form of the route. MCP lists the methods of its transport only.
        if (rpc !== undefined) context.route = rpc
        const allow = rpc === undefined ? resource.allow : [...resource.methods.keys()].join(', ')
        respond.problem(context, {
          name: 'method-not-allowed',
          detail: `This resource allows ${allow}.`,
          headers: { allow },
        })
        return
      }
      const origin = headers.get('origin')
      const wanted = headers.get('access-control-request-method')
      const pairs: (readonly [string, string])[] = [['allow', resource.allow]]
      if (origin !== undefined && wanted !== undefined) {
        const route = resource.methods.get(wanted === 'HEAD' ? 'GET' : wanted)
        if (route !== undefined) {
          const answer = await cors.headers(route.route.cors ?? 'configured', origin, null)
          pairs.push(...answer)
          const allowed = answer.some(([name]) => name === 'access-control-allow-origin')
          if (allowed) pairs.push(...preflightHeaders(resource.allow))
        }
      }
      respond.send(context, { status: 204, pairs })
    } catch (error) {
      this.fail(context, error)
    }
  }

  /** Stores the quota state for the response. @returns false if the request was refused. */
  private admit(context: RequestContext, verdict: QuotaVerdict): boolean {
    const { respond } = this.needs
    if (verdict.tag === 'unknown') {
      respond.problem(context, {
        name: 'service-unavailable',
        detail: 'The rate limit of this operation is temporarily unavailable.',
        retryAfterSecs: 1,
      })
      return false
    }
    context.windows =
      context.windows.length === 0 ? verdict.windows : [...context.windows, ...verdict.windows]
    if (verdict.tag === 'taken') return true
    respond.problem(context, rateLimited(verdict.violated, verdict.retryAfterSecs))
    return false
  }

  private addressKey(context: RequestContext): string {
    return quotaAddress(clientAddressOf(context, this.needs.addresses))
  }

  private callerKey(context: RequestContext): string {
    const { principal } = context
    return principal === null
      ? this.addressKey(context)
      : `${principal.tenantId}:${principal.clientId}`
  }

  private contextOf({ exchange, requestId, browser }: RequestContext): ReplyContext {
    const { path, query } = exchange
    return { requestId, baseUrl: this.needs.baseUrl, path, query, browser }
  }

  /** Answers a request without an outcome: unreadable body, unavailable actor, or a defect. */
  private fail(context: RequestContext, error: unknown): void {
    const { respond, log } = this.needs
    if (context.exchange.done) return
    if (error instanceof BodyUnreadable) {
      if (error.reason === 'aborted') return
      const problem = BODY_PROBLEMS[error.reason]
      const close = error.reason !== 'too_large' || !restIsDropped(context.exchange)
      respond.problem(context, problem, close)
      return
    }
    if (error instanceof ActorUnavailable && error.reason !== 'failed') {
      respond.problem(context, unavailable(error))
      return
    }
    if (!(error instanceof ActorUnavailable)) {
      log.error({ err: error, request_id: context.requestId }, 'request failed')
    }
    try {
      respond.problem(context, { name: 'server-error' })
    } catch (second) {
      log.error({ err: second, request_id: context.requestId }, 'cannot render the error')
      // Only pages are rendered. The client must not wait for an answer that never comes.
      if (!context.exchange.done) {
        const body = '<!doctype html><title>Internal error</title><p>Internal error</p>'
        respond.send(context, { status: 500, contentType: 'text/html; charset=utf-8', body })
      }
    }
  }
}

/** True if the pipeline authenticates. Actors authenticate OAuth clients, and pages have their own guard. */
function isGuarded({ route }: CompiledRoute): boolean {
  const { scheme } = route.security
  return scheme !== 'anonymous' && scheme !== 'client' && scheme !== 'browser'
}

/** True if pages of ours may call the route with the session of their browser. */
function isPageCall({ scheme }: Security): boolean {
  return scheme === 'person' || scheme === 'page_call'
}

const SIGNED = /^(?:bearer|dpop) [\w-]+\.[\w-]+\.[\w-]+$/i

/** True for a token whose signature tells whether it is right. */
function isSigned(authorization: string | undefined): boolean {
  return authorization !== undefined && SIGNED.test(authorization)
}
