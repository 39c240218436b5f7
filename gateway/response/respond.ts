/** Sends answers: bodies, problem documents and OAuth errors, with the headers that all of them share. */
import type { RefusedRequester } from '../../actors/domain/oauth-reasons.js'
import type { I18nSettings } from '../../actors/domain/i18n/settings.js'
import type { Logger } from '../../runtime/kernel/log.js'
import type { Span } from '../../runtime/kernel/tracing.js'
import { refusalText } from './json-rpc-errors.js'
import { browserLanguages, wantsPage } from '../request/browser.js'
import { type HeaderBlocks, PAGE_POLICY } from '../compile-route.js'
import type { HeaderPair } from '../http-exchange.js'
import { stateHeader } from '../headers/rate-limit.js'
import {
  challengeWith,
  hasOauthForm,
  oauthCode,
  oauthErrorPath,
  PROBLEM_MEDIA_TYPE,
  PROBLEM_TYPES,
  type Problem,
  problemBody,
  problemCode,
  problemHeaders,
  quotable,
} from './problems.js'
import { errorPage } from '../pages/platform/error.js'
import { atMostEvery } from '../../runtime/kernel/fairness/at-most-every.js'
import { pagePolicy, type Rendered } from './replies.js'
import type { RequestContext } from '../request/request-context.js'
import { compressedFor, isShared, tagOf, tagsOf } from './shared-body.js'
import { heldBytesOf } from '../transports/bounds.js'
import { isScimPath, SCIM_MEDIA_TYPE, scimErrorOf } from './scim-errors.js'

/** Media types that become shorter. Fonts and pictures are compressed already. */
const COMPRESSIBLE =
  /^(?:text\/|application\/(?:[a-z.-]+\+)?json|application\/javascript|image\/svg)/

const NO_STORE = 'no-store'
/** For clients that used the Authorization header, with whichever scheme (RFC 6749 section 5.2). */
const BASIC_CHALLENGE = { 'www-authenticate': 'Basic realm="svc", charset="UTF-8"' } as const
/** A too long target is not repeated in full. */
const INSTANCE_CHARS_MAX = 2_048

type ResponderNeeds = {
  readonly blocks: HeaderBlocks
  readonly errorsBaseUrl: string
  /** `[i18n]`, for error pages. */
  readonly i18n: I18nSettings
  /** The Set-Cookie value that sets or (null) deletes the session cookie. */
  readonly sessionCookie: (token: string | null) => string
  readonly log: Logger
  readonly monotonicMs: () => number
  /** True if this process serves SCIM: then unknown paths of SCIM get its errors too. */
  readonly servesScim: boolean
  /** Counts requests without a route. */
  readonly observeUnrouted: (status: number, ms: number) => void
}

type Answer = {
  readonly status: number
  readonly contentType?: string | null
  /** Default: no-store. */
  readonly cacheControl?: string | undefined
  readonly pairs?: readonly HeaderPair[]
  readonly body?: string | Uint8Array | null
  readonly close?: boolean
  readonly policy?: string | undefined
  /** `body` in the coding of `pairs`. */
  readonly compressed?: Uint8Array | undefined
}

export class Responder {
  private readonly needs: ResponderNeeds

  /** By reason. */
  private readonly mayLog: (reason: string) => boolean

  constructor(needs: ResponderNeeds) {
    this.needs = needs
    this.mayLog = atMostEvery(1000, needs)
  }

  rendered(context: RequestContext, rendered: Rendered, replayed: boolean): void {
    if (rendered.form === 'problem') {
      this.problem(context, rendered.problem)
      return
    }
    if (rendered.form === 'oauth') {
      context.reason = rendered.reason ?? null
      context.client = rendered.requester?.client ?? context.client
      context.requester = rendered.requester ?? null
      context.logReason = rendered.requester?.reason ?? rendered.logReason ?? null
      this.oauthError(
        context,
        rendered.status,
        rendered.error,
        rendered.description,
        rendered.headers,
      )
      return
    }
    if (rendered.form === 'relayed') {
      this.relay(context, rendered).catch((error: unknown) => {
        // An unhandled rejection would end the process.
        const { body } = rendered
        if (!(body instanceof Uint8Array)) body.cancel('it could not be relayed')
        this.needs.log.error(
          { err: error, request_id: context.requestId },
          'cannot relay an answer',
        )
      })
      return
    }
    const { status, contentType, body, headers, etag, session, policy, fault } = rendered
    if (fault !== undefined) {
      context.error = fault
      context.logReason = fault
      context.requester = { ...STRANGER, isAnyones: true }
    }
    const form = formFor(context, rendered)
    if (form instanceof Promise) {
      form
        .then(() => this.rendered(context, rendered, replayed))
        .catch((error: unknown) => this.needs.log.error({ err: error }, 'cannot send a document'))
      return
    }
    const cache = rendered.cacheControl ?? (status < 300 ? context.route?.route.cache : undefined)
    const pairs: HeaderPair[] = []
    if (headers !== undefined) for (const name in headers) pairs.push([name, headers[name]!])
    for (const cookie of rendered.cookies ?? []) pairs.push(['set-cookie', cookie])
    if (session !== undefined) pairs.push(['set-cookie', this.needs.sessionCookie(session)])
    if (replayed) pairs.push(['idempotency-replayed', 'true'])
    if (form !== undefined) pairs.push(['vary', 'Accept-Encoding'])
    if (etag !== undefined) {
      const { exchange } = context
      const current = form ? tagOf(etag, form.coding) : etag
      const known =
        status === 200 && isSafe(exchange.method)
          ? knownOf(
              exchange.headers.get('if-none-match'),
              current,
              form === undefined ? [etag] : tagsOf(etag),
            )
          : undefined
      pairs.push(['etag', known ?? current])
      if (known !== undefined) {
        // A browser replaces the fields of the page that it keeps (RFC 9111 section 3.2).
        const kept = contentType?.startsWith('text/html') === true ? PAGE_POLICY : undefined
        this.send(context, {
          status: 304,
          cacheControl: cache,
          pairs,
          policy: policy ?? kept,
        })
        return
      }
    }
    if (form) pairs.push(['content-encoding', form.coding])
    const compressed = form?.body
    this.send(context, {
      status,
      contentType,
      cacheControl: cache,
      pairs,
      body,
      policy,
      compressed,
    })
  }

  problem(context: RequestContext, problem: Problem, close = false): void {
    const { status, title } = PROBLEM_TYPES[problem.name]
    context.error ??= problem.error ?? problemCode(problem.name)
    context.client ??= problem.client ?? null
    if (status === 401 || status === 403) context.logReason ??= context.reason ?? reasonOf(problem)
    const errors = errorsOf(context, this.needs.servesScim)
    const oauth = errors === 'oauth'
    if (oauth && hasOauthForm(status)) {
      const code = problem.error ?? oauthCode(problem.name)
      const description = problem.errorDescription ?? problem.detail ?? title
      this.oauthError(context, status, code, description, problemHeaders(problem))
      return
    }
    const pairs = Object.entries(problemHeaders(problem))
    if (errors === 'scim') {
      const body = scimErrorOf(problem)
      this.send(context, { status, contentType: SCIM_MEDIA_TYPE, pairs, body, close })
      return
    }
    if (context.route?.route.proxy === true && problem.headers?.['proxy-status'] === undefined) {
      pairs.push(['proxy-status', `${PROXY_NAME}; error=${refusalType(status)}`])
    }
    if (errors === 'page') {
      const html = errorPage(
        problem,
        browserLanguages(context.exchange.headers, this.needs.i18n),
        context.requestId,
      )
      const page = { contentType: 'text/html; charset=utf-8', body: html, policy: pagePolicy([]) }
      this.send(context, { status, pairs, close, ...page })
      return
    }
    if (errors === 'json-rpc') {
      const body = refusalText(problem, context.requestId)
      this.send(context, { status, contentType: 'application/json', pairs, body, close })
      return
    }
    const full =
      oauth && problem.errorDescription === undefined
        ? { ...problem, errorDescription: problem.detail ?? title }
        : problem
    const members = problemBody(full, {
      errorsBaseUrl: this.needs.errorsBaseUrl,
      instance: context.exchange.path.slice(0, INSTANCE_CHARS_MAX),
      requestId: context.requestId,
    })
    const body = JSON.stringify(members)
    this.send(context, { status, contentType: PROBLEM_MEDIA_TYPE, pairs, body, close })
  }

  send(
    context: RequestContext,
    {
      status,
      contentType = null,
      cacheControl = NO_STORE,
      pairs = [],
      body = null,
      close = false,
      policy,
      compressed,
    }: Answer,
  ): void {
    const { exchange, route, requestId } = context
    if (route !== null && body !== null && body.length > route.expected.bytes)
      route.expected.bytes = heldBytesOf(body)
    const headers: HeaderPair[] = [['x-request-id', requestId]]
    if (context.windows.length > 0) headers.push(stateHeader(context.windows))
    if (route !== null) {
      const { policyHeader } = route.throttling
      if (policyHeader !== null && context.windows.length > 0) headers.push(policyHeader)
      if (route.deprecation.length > 0) headers.push(...route.deprecation)
    }
    if (context.cors.length > 0) headers.push(...context.cors)
    if (context.warnings !== null) headers.push(['svc-warnings', context.warnings])
    for (const cookie of context.cookies) headers.push(['set-cookie', cookie])
    for (const pair of pairs) {
      if (isFieldValue(pair[1])) headers.push(pair)
      else
        this.needs.log.error(
          { request_id: requestId, header: pair[0] },
          'invalid header value left out',
        )
    }
    exchange.send({
      status,
      block: this.needs.blocks.block(contentType, cacheControl, policy),
      headers,
      body: compressed ?? body,
      close,
    })
    this.account(context, status)
  }

  /**
   * Relays the response of an upstream, or a stream of the service. Its rate-limit fields are kept. The service adds no rate-limit fields, which
   * would mean something else, and sets date and security fields.
   */
  private async relay(
    context: RequestContext,
    {
      status,
      headers: upstreamHeaders,
      body,
      bodyBytes,
      unsent,
      isOwn = false,
    }: Extract<Rendered, { form: 'relayed' }>,
  ): Promise<void> {
    const { exchange, requestId } = context
    const headers: HeaderPair[] = [['x-request-id', requestId], ...context.cors]
    if (!isOwn) headers.push(['proxy-status', `${PROXY_NAME}; received-status=${status}`])
    let contentType: string | null = null
    let cacheControl = NO_STORE
    for (const pair of upstreamHeaders) {
      const [name, value] = pair
      if (name === 'content-type') contentType = value
      else if (name === 'cache-control') cacheControl = value
      else if (name !== 'date') headers.push(pair)
    }
    // Not cached: upstreams choose the values.
    const block = this.needs.blocks.relayed(contentType, cacheControl)
    if (body instanceof Uint8Array) exchange.send({ status, block, headers, body })
    else {
      const end = await exchange.relay({
        status,
        block,
        headers,
        body,
        bodyBytes,
      })
      if (typeof end === 'object') return this.problem(context, unsent(end.unsent))
    }
    this.account(context, status)
  }

  private oauthError(
    context: RequestContext,
    status: number,
    error: string,
    description: string | undefined,
    headers: Readonly<Record<string, string>> | undefined,
  ): void {
    const body = {
      error,
      ...(description === undefined ? {} : { error_description: quotable(description) }),
      error_uri: this.errorUri(error, context.reason),
      // RFC 6749 section 5.2 allows further members: clients ignore unknown ones.
      request_id: context.requestId,
    }
    context.error = error
    if (status === 401 || status === 403) context.logReason ??= context.reason ?? error
    const isClient = status === 401 && error === 'invalid_client'
    const triedHeader = isClient && context.exchange.headers.get('authorization') !== undefined
    const said = triedHeader ? BASIC_CHALLENGE : challengeWith(headers ?? {}, description)
    const pairs: HeaderPair[] = [['pragma', 'no-cache'], ...Object.entries(said)]
    const contentType = 'application/json'
    this.send(context, { status, contentType, pairs, body: JSON.stringify(body) })
  }

  /** The page of the error, with the reason as anchor (RFC 6749 section 5.2). */
  private errorUri(error: string, reason: string | null): string {
    const page = this.needs.errorsBaseUrl + oauthErrorPath(error)
    return reason === null ? page : `${page}#${reason}`
  }

  private account(context: RequestContext, status: number): void {
    const ms = this.needs.monotonicMs() - context.startedMs
    const { route, exchange, requestId } = context
    if (route === null) this.needs.observeUnrouted(status, ms)
    else route.meter.observe(status, ms)
    if (context.span !== undefined) endSpan(context.span, context, status)
    const isQuiet = route !== null && (route.isLight || route.route.quiet === true)
    const { log } = this.needs
    const isAnyones = context.requester?.isAnyones === true
    const isRepeated = isAnyones && !this.mayLog(String(context.logReason))
    const level = isRepeated ? 'debug' : levelOf(status, context.error, isQuiet)
    if (!log.isLevelEnabled(level)) return
    log[level](
      {
        request_id: requestId,
        method: exchange.method,
        route: route?.route.path ?? null,
        status,
        ...(context.error === null ? {} : refusalMembers(context, context.error)),
        ms: Math.round(ms * 10) / 10,
      },
      'request',
    )
  }
}

/** The form of a shared body for the client. Undefined for bodies that are never compressed. */
function formFor(
  { exchange }: RequestContext,
  { status, contentType, body }: Extract<Rendered, { form: 'body' }>,
): ReturnType<typeof compressedFor> | undefined {
  if (status !== 200 || body === null || typeof body === 'string' || !isShared(body)) return
  if (contentType === null || !COMPRESSIBLE.test(contentType)) return
  return compressedFor(body, exchange.headers.get('accept-encoding') ?? '')
}

/** Ends the span of a request with the attributes of OpenTelemetry's HTTP conventions. */
function endSpan(
  span: Span,
  { route, exchange, principal, error }: RequestContext,
  status: number,
): void {
  const path = route?.route.path
  if (path !== undefined) span.rename(`${exchange.method} ${path}`)
  span.set({
    'http.response.status_code': status,
    ...(path === undefined ? {} : { 'http.route': path }),
    ...(principal === null ? {} : { 'svc.tenant_id': principal.tenantId }),
    ...(error === null ? {} : { 'svc.error': error }),
  })
  span.end(status >= 500 ? String(status) : undefined)
}

/** Errors that are part of a normal flow: polls, and the first request without a nonce. */
const EXPECTED = new Set(['authorization_pending', 'slow_down', 'use_dpop_nonce'])
/** Statuses that clients meet in normal use: a wrong path, a price that is to be paid, what is not built. */
const USUAL = new Set([402, 404, 405, 425, 501])

/** Faults of a server that this one called, and of the version of a request. */
const FOREIGN = new Set([502, 505])

/** The level of a request's log line: by status (docs/guides/operations/trace.md, Logs). Exported for tests. */
export function levelOf(
  status: number,
  error: string | null,
  isQuiet: boolean,
): 'debug' | 'info' | 'warn' | 'error' {
  // Health probes report 503 for as long as the process is not ready.
  if (isQuiet && (status < 400 || status === 404 || status === 503)) return 'debug'
  // Tenants cause it, as they cause 429, and others cause what is wrong with their server or their request line.
  if (error === 'share_exhausted' || FOREIGN.has(status)) return 'warn'
  if (status >= 500 && !USUAL.has(status)) return 'error'
  if (status < 400 || USUAL.has(status)) return 'info'
  return error !== null && EXPECTED.has(error) ? 'info' : 'warn'
}

/** The word of a refused authority for the log. Every refusal has one. */
function reasonOf({ reason, error, outcome, name }: Problem): string {
  const isScope = name === 'insufficient-scope'
  return reason ?? (isScope ? 'scope_missing' : (error ?? outcome ?? problemCode(name)))
}

/** The word for a refusal that is a page: its error code, else what the outcome says of it, else its tag. */
export function wordOf(outcome: {
  readonly tag: string
  readonly error?: unknown
  readonly why?: unknown
}) {
  const words = [outcome.error, outcome.why]
  const word = words.find((one) => typeof one === 'string' && /^[a-z][a-z_]{0,63}$/.test(one))
  return typeof word === 'string' ? word : outcome.tag
}

const STRANGER: RefusedRequester = {
  client: null,
  presented: { clientId: null, tenantId: null },
  grantType: null,
}

/** The members of the log line of a refusal. What the request says without proof has other names. */
function refusalMembers(context: RequestContext, error: string): Record<string, unknown> {
  const { reason, logReason, principal, session } = context
  const client = context.client ?? principal
  const sent = context.requester ?? context.presented
  const presented = client === null ? sent.presented : null
  const members = {
    error,
    reason: logReason ?? reason,
    client_id: client?.clientId,
    tenant_id: client?.tenantId ?? session?.tenantId,
    presented_client_id: presented?.clientId,
    presented_tenant_id: presented?.tenantId,
    grant_type: sent.grantType ?? context.presented.grantType,
  }
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value != null))
}

/** The name of this proxy in Proxy-Status (RFC 9209 section 2). */
export const PROXY_NAME = 'svc-egress'

/** The Proxy-Status type of errors that the proxy generates (RFC 9209 section 2.3). */
function refusalType(status: number): string {
  if (status === 504) return 'http_response_timeout'
  if (status >= 500) return 'proxy_internal_error'
  return [401, 403, 404, 413, 429].includes(status) ? 'http_request_denied' : 'http_request_error'
}

/** The form of errors for this route and client. */
function errorsOf(
  { route, browser, exchange }: RequestContext,
  servesScim: boolean,
): 'problem' | 'oauth' | 'page' | 'json-rpc' | 'scim' {
  if (route === null && servesScim && isScimPath(exchange.path)) return 'scim'
  // A browser with a wrong link gets a page.
  if (route === null) return wantsPage(exchange.headers) ? 'page' : 'problem'
  const errors = route.route.errors ?? 'problem'
  if (errors !== 'negotiated') return errors
  return browser.wantsPage ? 'page' : 'oauth'
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

// oxlint-disable-next-line no-control-regex
const FORBIDDEN_IN_FIELD = /[\u0000-\u0008\u000a-\u001f\u007f\u0100-\uffff]/

/** Header values must not contain control characters or characters outside of latin-1. */
function isFieldValue(value: string): boolean {
  return !FORBIDDEN_IN_FIELD.test(value)
}

/**
 * The entity tag that If-None-Match has of a document, by weak comparison (RFC 9110 section 13.1.2).
 * @param tags the tags of all forms of the document. The client may have any of them, whatever it would get now.
 */
function knownOf(
  ifNoneMatch: string | undefined,
  etag: string,
  tags: readonly string[],
): string | undefined {
  if (ifNoneMatch === undefined) return undefined
  if (ifNoneMatch.trim() === '*') return etag
  const sent = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.find((tag) => sent.includes(tag.replace(/^W\//, '')))
}
