/** A route made ready to run: what never changes between requests is worked out once. */
import type { Policies, PolicyName } from '../actors/operations/rate-limits/protocol.js'
import type { ActorRef } from '../runtime/kernel/actor.js'
import { type HeaderBlock, type HeaderPair, headerBlock } from './http-exchange.js'
import { checked, type Parsed, queryPointer } from './body/read.js'
import { policyHeader } from './headers/rate-limit.js'
import type { HttpMetrics, RouteMeter } from './metrics/http-metrics.js'
import type { ResponseDoc } from './response/replies.js'
import {
  type AnyRouteRequest,
  isQueryFields,
  type ReplyRule,
  type Route,
  type ThrottleRule,
} from './route.js'

export type AnyRef = ActorRef<Record<string, { message: unknown; reply: { tag: string } }>>
export type Refs = ReadonlyMap<string, ActorRef<never>>

/** Which quotas a request takes, and when they can be told. */
export type Throttling = {
  /** The local `default` quota: by address before authentication, by caller after it, or not. */
  readonly byDefault: 'address' | 'caller' | 'none'
  /** Shared policies by address: taken before anything else is believed. */
  readonly early: readonly PolicyName[]
  /** Shared policies whose key needs the parsed request. */
  readonly late: readonly ThrottleRule<AnyRouteRequest>[]
  /** Null where nothing is limited. */
  readonly policyHeader: HeaderPair | null
}

export type CompiledRoute = {
  readonly route: Route
  readonly ref: AnyRef | null
  readonly rules: Readonly<Record<string, ReplyRule<never>>>
  readonly throttling: Throttling
  readonly meter: RouteMeter
  /** No input, no credentials: answered without the longer way through the pipeline. */
  readonly light: boolean
  /** The success media types, for Accept. */
  readonly offers: readonly string[]
  readonly isHealth: boolean
  /** What an empty query comes to, judged once; null where the route reads none. */
  readonly emptyQuery: Parsed<unknown> | null
  readonly deprecation: readonly HeaderPair[]
}

/** Null when the route's actor does not sit here. */
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
  const light =
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
    light,
    offers: offersOf(responses),
    isHealth: path.startsWith('/health/'),
    emptyQuery: emptyQueryOf(route),
    deprecation: deprecationOf(route),
  }
}

/** Media types of what succeeds; none where what comes back is another party's, of any type. */
function offersOf(responses: readonly ResponseDoc[]): readonly string[] {
  const offers = new Set<string>()
  for (const { status, contentType } of responses) {
    if (status < 300 && contentType !== null) offers.add(contentType.split(';')[0]!)
  }
  return offers.has('*/*') ? [] : [...offers]
}

function emptyQueryOf({ query }: Route): Parsed<unknown> | null {
  if (query === undefined) return null
  if (isQueryFields(query)) return { ok: true, value: [] }
  const judged = checked(query, {}, queryPointer)
  return judged.ok ? { ok: true, value: Object.freeze(judged.value) } : judged
}

/** Schemes under which a caller has a token to be counted by. */
const TOKEN_SCHEMES = new Set(['bearer', 'optional', 'metrics', 'person', 'page_call'])

function throttlingOf({ throttle, security }: Route, policies: Policies): Throttling {
  if (throttle === 'none') return { byDefault: 'none', early: [], late: [], policyHeader: null }
  const rules: readonly ThrottleRule<AnyRouteRequest>[] = throttle ?? [
    { policy: 'default', by: 'caller' },
  ]
  const authenticated = TOKEN_SCHEMES.has(security.scheme)
  const plain = rules.find(({ policy, by }) => policy === 'default' && typeof by === 'string')
  const shared = rules.filter((rule) => rule !== plain)
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

/** RFC 9745, RFC 8594; interface.md, Versioning 3. */
function deprecationOf({ deprecated }: Route): readonly HeaderPair[] {
  if (deprecated === undefined) return []
  const { sinceSecs, sunset, link } = deprecated
  const pairs: HeaderPair[] = [['deprecation', `@${sinceSecs}`]]
  if (sunset !== undefined) pairs.push(['sunset', sunset])
  if (link !== undefined) pairs.push(['link', `<${link}>; rel="deprecation"`])
  return pairs
}

/** What every answer says; pages get their policy, everything else may not be framed or run. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

/** Header blocks by content type and Cache-Control; there are few of them and they never change. */
export class HeaderBlocks {
  private readonly blocks = new Map<string, Map<string, HeaderBlock>>()
  private readonly secure: boolean

  constructor(secure: boolean) {
    this.secure = secure
  }

  /** A `policy` replaces the one of the content type; such blocks are not kept. */
  block(contentType: string | null, cacheControl: string, policy?: string): HeaderBlock {
    if (policy !== undefined) return this.build(contentType, cacheControl, policy)
    let byCache = this.blocks.get(contentType ?? '')
    if (byCache === undefined) this.blocks.set(contentType ?? '', (byCache = new Map()))
    let block = byCache.get(cacheControl)
    if (block === undefined) {
      const page = contentType?.startsWith('text/html') === true
      block = this.build(contentType, cacheControl, page ? PAGE_POLICY : DATA_POLICY)
      if (byCache.size < 64) byCache.set(cacheControl, block)
    }
    return block
  }

  /** For an answer of somebody else: their type and their Cache-Control. */
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
