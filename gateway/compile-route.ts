/** Prepares a route for requests: everything that is the same for all requests is computed once. */
import type { Policies, PolicyName } from '../actors/operations/rate-limits/protocol.js'
import type { ActorRef } from '../runtime/kernel/actor.js'
import { type HeaderBlock, type HeaderPair, headerBlock } from './http-exchange.js'
import type { HttpExchange } from './http-exchange.js'
import type { Resource } from './router.js'
import { checked, type Parsed, queryPointer } from './body/read.js'
import { policyHeader } from './headers/rate-limit.js'
import type { HttpMetrics, RouteMeter } from './metrics/http-metrics.js'
import { type ResponseDoc, withImagesOf } from './response/replies.js'
import { SCIM_MEDIA_TYPE } from './response/scim-errors.js'
import {
  type AnyRouteRequest,
  isQueryFields,
  type ReplyRule,
  type Route,
  type ThrottleRule,
} from './route.js'

export type AnyRef = ActorRef<Record<string, { message: unknown; reply: { tag: string } }>>
export type Refs = ReadonlyMap<string, ActorRef<never>>

/** The rate limits of a route, and the step at which the key of each is known. */
type Throttling = {
  /** The local `default` quota: by address before authentication, by caller after it, or none. */
  readonly byDefault: 'address' | 'caller' | 'none'
  /** Shared policies by address, taken before authentication. */
  readonly early: readonly PolicyName[]
  /** Shared policies with a key from the parsed request. */
  readonly late: readonly ThrottleRule<AnyRouteRequest>[]
  /** Null if the route has no limits. */
  readonly policyHeader: HeaderPair | null
}

export type CompiledRoute = {
  readonly route: Route
  readonly ref: AnyRef | null
  readonly rules: Readonly<Record<string, ReplyRule<never>>>
  readonly throttling: Throttling
  readonly meter: RouteMeter
  /** The route has no input and no credentials, so the pipeline skips those steps. */
  readonly isLight: boolean
  /** The bytes for which an exchange keeps room (`HttpExchange.turn`): the length of its longest answer, or a guess. */
  readonly expected: { bytes: number }
  /** Media types of success, for Accept. */
  readonly offers: readonly string[]
  readonly isHealth: boolean
  /** The validated empty query. Null if the route has no query. */
  readonly emptyQuery: Parsed<unknown> | null
  readonly deprecation: readonly HeaderPair[]
}

/** Requests with such answers do not wait for each other: 16 of them have 1 MiB. */
export const SHORT_ANSWER_BYTES = 64 * 1024
const LONG_ANSWER_BYTES = 256 * 1024

/** @returns null if this process does not run the route's actor. */
export function compileRoute(
  route: Route,
  refs: Refs,
  metrics: HttpMetrics,
  policies: Policies,
): CompiledRoute | null {
  const { target, security, method, path } = route
  const ref = target.via === 'actor' ? refs.get(target.address.name) : null
  if (ref === undefined) return null
  const throttling = throttlingOf(route, policies)
  const responses =
    target.via === 'gateway'
      ? target.responses
      : Object.values(target.replies).flatMap((rule) => rule.docs)
  const isLight =
    target.via === 'actor' &&
    security.scheme === 'anonymous' &&
    method === 'GET' &&
    [route.params, route.query, route.headers, route.body].every((part) => part === undefined) &&
    throttling.early.length + throttling.late.length === 0 &&
    route.deprecated === undefined
  return {
    route,
    ref: ref as unknown as AnyRef | null,
    rules: target.via === 'actor' ? target.replies : {},
    throttling,
    meter: metrics.meter({ method, route: path }),
    isLight,
    // One object has a short answer, a list may have a long one.
    expected: {
      bytes:
        isLight || method !== 'GET' || path.endsWith('}') ? SHORT_ANSWER_BYTES : LONG_ANSWER_BYTES,
    },
    offers: offersOf(responses),
    isHealth: path.startsWith('/health/'),
    emptyQuery: emptyQueryOf(route),
    deprecation: deprecationOf(route),
  }
}

/** Media types of success. Empty for relayed answers, which can have any type. */
function offersOf(responses: readonly ResponseDoc[]): readonly string[] {
  const offers = new Set<string>()
  for (const { status, contentType } of responses) {
    if (status < 300 && contentType !== null) offers.add(contentType.split(';')[0]!)
  }
  // Clients of SCIM may ask for either name of the format (RFC 7644 section 3.8).
  if (offers.has(SCIM_MEDIA_TYPE)) offers.add('application/json')
  return offers.has('*/*') ? [] : [...offers]
}

function emptyQueryOf({ query }: Route): Parsed<unknown> | null {
  if (query === undefined) return null
  if (isQueryFields(query)) return { ok: true, value: [] }
  const parsed = checked(query, {}, queryPointer)
  return parsed.ok ? { ok: true, value: Object.freeze(parsed.value) } : parsed
}

/** Schemes with an access token, by which the caller is counted. */
const TOKEN_SCHEMES = new Set(['bearer', 'optional', 'metrics', 'person', 'page_call', 'scim'])

function throttlingOf({ throttle, security }: Route, policies: Policies): Throttling {
  if (throttle === 'none') return { byDefault: 'none', early: [], late: [], policyHeader: null }
  const authenticated = TOKEN_SCHEMES.has(security.scheme)
  const own = throttle ?? [{ policy: 'default', by: 'caller' } as const]
  // A sender without a verified token can choose a new value of every other key for each request.
  const isBounded = authenticated || own.some(({ by }) => by === 'address' || by === 'caller')
  const rules = isBounded ? own : [{ policy: 'default', by: 'address' } as const, ...own]
  const plain = rules.find(({ policy, by }) => policy === 'default' && typeof by === 'string')
  const shared = rules.filter((rule) => rule !== plain && rule.by !== 'client')
  const isEarly = ({ by }: ThrottleRule<AnyRouteRequest>) =>
    by === 'address' || (by === 'caller' && !authenticated)
  return {
    byDefault:
      plain === undefined ? 'none' : plain.by === 'caller' && authenticated ? 'caller' : 'address',
    early: shared.filter(isEarly).map(({ policy }) => policy),
    late: shared.filter((rule) => !isEarly(rule)),
    policyHeader: policyHeader(
      rules.map(({ policy }) => policy),
      policies,
    ),
  }
}

/** Deprecation (RFC 9745) and Sunset (RFC 8594). */
function deprecationOf({ deprecated }: Route): readonly HeaderPair[] {
  if (deprecated === undefined) return []
  const { since, sunset, link } = deprecated
  const pairs: HeaderPair[] = [['deprecation', `@${since.getTime() / 1000}`]]
  if (sunset !== undefined) pairs.push(['sunset', sunset.toUTCString()])
  if (link !== undefined) pairs.push(['link', `<${link}>; rel="deprecation"`])
  return pairs
}

/** Content security policies of pages and of all other answers. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

/** Cache of header blocks by content type and Cache-Control. There are few combinations. */
export class HeaderBlocks {
  private readonly blocks = new Map<string, Map<string, HeaderBlock>>()
  private readonly secure: boolean
  private readonly imageOrigin: string | undefined

  /** @param imageOrigin an origin of images that pages may show besides their own. */
  constructor(secure: boolean, imageOrigin?: string) {
    this.secure = secure
    this.imageOrigin = imageOrigin
  }

  /** @param policy replaces the policy of the content type. Such blocks are not cached. */
  block(contentType: string | null, cacheControl: string, policy?: string): HeaderBlock {
    if (policy !== undefined && policy !== PAGE_POLICY) {
      const { imageOrigin } = this
      const whole = imageOrigin === undefined ? policy : withImagesOf(policy, imageOrigin)
      return this.build(contentType, cacheControl, whole)
    }
    const isPage = policy === PAGE_POLICY || contentType?.startsWith('text/html') === true
    const key = contentType ?? (isPage ? 'page' : '')
    let byCache = this.blocks.get(key)
    if (byCache === undefined) this.blocks.set(key, (byCache = new Map()))
    let block = byCache.get(cacheControl)
    if (block === undefined) {
      block = this.build(contentType, cacheControl, isPage ? PAGE_POLICY : DATA_POLICY)
      if (byCache.size < 64) byCache.set(cacheControl, block)
    }
    return block
  }

  /** The block of a relayed answer, with the upstream's type and Cache-Control. Not cached. */
  relayed(contentType: string | null, cacheControl: string): HeaderBlock {
    return this.build(contentType, cacheControl, DATA_POLICY)
  }

  private build(contentType: string | null, cacheControl: string, policy: string): HeaderBlock {
    const pairs: HeaderPair[] = [
      ['cache-control', cacheControl],
      ['x-content-type-options', 'nosniff'],
      ['referrer-policy', 'no-referrer'],
      ['content-security-policy', policy],
    ]
    if (contentType !== null) pairs.unshift(['content-type', contentType])
    if (this.secure) pairs.push(['strict-transport-security', 'max-age=31536000'])
    return headerBlock(pairs)
  }
}

/** False: the path names nothing. Where no route has the method, those with others say it. */
export function isPath(
  {
    params,
    resource,
  }: { params: Readonly<Record<string, string>>; resource: Resource<CompiledRoute> },
  route: CompiledRoute | undefined,
  headers: HttpExchange['headers'],
): boolean {
  if (route !== undefined) return route.route.isPath?.(params, headers) !== false
  return [...resource.methods.values()].every((each) => each.route.isPath?.(params) !== false)
}
