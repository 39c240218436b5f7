/**
 * The declaration of a route: router, validation, security, throttle, OpenAPI and capabilities all
 * come out of it. No route exists outside of one. Route files are tables of these.
 */
import { z } from 'zod'
import type { IdempotencyClaim } from '../actors/domain/idempotency.js'
import type { BrowserSession } from '../actors/identity/sessions/protocol.js'
import type { Principal, SubjectType } from '../actors/domain/principal.js'
import type { PolicyName } from '../actors/operations/rate-limits/protocol.js'
import type { Address, Protocol } from '../runtime/kernel/protocol.js'
import type { ByteStream } from '../runtime/kernel/stream.js'
import type { Browser } from './request/browser.js'
import type { ProblemName } from './response/problems.js'
import type { Rendered, ReplyContext, ReplyRule, ResponseDoc } from './response/replies.js'

export {
  bytes,
  choice,
  constant,
  empty,
  html,
  oauthError,
  page,
  problem,
  relayed,
  reply,
  seeOther,
  written,
} from './response/replies.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Who may call. */
export type Security =
  /** Nobody is asked who they are. */
  | { readonly scheme: 'anonymous' }
  /** An access token (Bearer or DPoP), judged before the message is built. */
  | {
      readonly scheme: 'bearer'
      /** Any one of these suffices; none means any valid token. */
      readonly scopes?: readonly string[] | undefined
      /** Default: all kinds. */
      readonly subjects?: readonly SubjectType[] | undefined
      /** Whether the token may carry an act chain. Default `either`. */
      readonly direct?: 'required' | 'forbidden' | 'either' | undefined
      /** With `direct: 'forbidden'`: a direct token with one of these scopes is accepted all the same. */
      readonly directScopes?: readonly string[] | undefined
      /** Takes a person's token that is bound to one organization; no other route does. */
      readonly organizationBound?: 'accepted' | undefined
    }
  /** A token is judged when present; without one the principal is null. */
  | { readonly scheme: 'optional' }
  /** OAuth client authentication: the actor judges `credentials` and the form itself. */
  | { readonly scheme: 'client' }
  /** The metrics endpoint: the configured bearer token or a service token with metrics:read. */
  | { readonly scheme: 'metrics' }
  /**
   * A page for anybody's browser. A form has to carry the `csrf_token` of a page of ours, unless
   * forms come from elsewhere by design (`foreign`): such a route must change nothing by itself.
   */
  | { readonly scheme: 'browser'; readonly forms?: 'own' | 'foreign' | undefined }
  /** A page for a person who is signed in; anybody else is sent to sign in (303). */
  | { readonly scheme: 'session' }
  /**
   * An operation for a person, by a direct access token of theirs or by the session of their browser.
   * A session counts only for requests that the browser says come from pages of ours.
   */
  | {
      readonly scheme: 'person'
      /** Of a token: any one of these suffices. */
      readonly scopes: readonly string[]
    }
  /**
   * An operation that only pages of ours may call, with the session of their browser. An access token
   * is refused with 403 `insufficient_scope`: no scope stands for the user's own answer.
   */
  | { readonly scheme: 'page_call' }

export type PrincipalOf<S extends Security> = S extends { scheme: 'bearer' }
  ? Principal
  : S extends { scheme: 'optional' | 'metrics' | 'person' }
    ? Principal | null
    : null

export type SessionOf<S extends Security> = S extends { scheme: 'session' | 'page_call' }
  ? BrowserSession
  : S extends { scheme: 'person' }
    ? BrowserSession | null
    : null

export type { IdempotencyClaim }

/** Credentials as sent, for actors that judge them themselves. */
export type Credentials = {
  /** The Authorization header; null when absent. */
  readonly authorization: string | null
  /** The DPoP header; null when absent. */
  readonly dpopProof: string | null
  readonly httpMethod: string
  /** Absolute URL of the request without its query, at an origin of ours (`requestOrigin`). */
  readonly httpUrl: string
}

export type RouteRequest<Params, Query, Headers, Body, S extends Security> = {
  readonly params: Params
  readonly query: Query
  readonly headers: Headers
  readonly body: Body
  readonly principal: PrincipalOf<S>
  /** Who is signed in, on routes of the schemes `session`, `person` and `page_call`. */
  readonly session: SessionOf<S>
  /** Cookies and form token, on pages (schemes `browser` and `session`). */
  readonly browser: Browser
  /** Null unless the route is `idempotent` and the request carries a key. */
  readonly idempotency: IdempotencyClaim | null
  readonly requestId: string
  /** Address of the client behind trusted proxies. */
  readonly clientAddress: string
  /** Host the client named, lower case, with a port where it named one. */
  readonly host: string
  readonly credentials: Credentials
}

/** A form as it came, in order; a repeated name appears twice. */
export type FormFields = readonly (readonly [name: string, value: string])[]

export const JSON_BODY_BYTES_MAX = 1024 * 1024
export const FORM_BODY_BYTES_MAX = 64 * 1024

export type BodyRule<Body> =
  | {
      readonly kind: 'json'
      readonly schema: z.ZodType<Body>
      readonly maxBytes: number
      /** A request without a body means the empty object. */
      readonly optional?: boolean | undefined
      /** Takes what `findJsonLoss` finds, too: it is handed on, not kept. */
      readonly anyText?: boolean | undefined
    }
  | { readonly kind: 'form'; readonly schema: z.ZodType<Body>; readonly maxBytes: number }
  /** The fields in order, judged by the actor; `schema` is for the documents. */
  | {
      readonly kind: 'fields'
      readonly schema: z.ZodType
      readonly maxBytes: number
      readonly fields?: Body
    }
  | {
      readonly kind: 'raw'
      readonly contentTypes: readonly string[]
      readonly maxBytes: number
      readonly bytes?: Body
    }
  /** Not read before the actor is asked: it reads it, at its own pace. */
  | { readonly kind: 'stream'; readonly maxBytes: number; readonly streamed?: Body }

/** A body on its way; `stream` is null when the request has none. */
export type StreamedBody = {
  readonly stream: ByteStream | null
  /** As announced; null when it was not. */
  readonly bytes: number | null
}

/** application/json, at most 1 MiB unless said otherwise. */
export function json<S extends z.ZodType>(
  schema: S,
  { maxBytes = JSON_BODY_BYTES_MAX, optional = false, anyText = false } = {},
): BodyRule<z.output<S>> {
  const judged = schema as unknown as z.ZodType<z.output<S>>
  return { kind: 'json', schema: judged, maxBytes, optional, anyText }
}

/** application/x-www-form-urlencoded as an object; a repeated field is refused. */
export function form<S extends z.ZodType>(
  schema: S,
  { maxBytes = FORM_BODY_BYTES_MAX } = {},
): BodyRule<z.output<S>> {
  return { kind: 'form', schema: schema as unknown as z.ZodType<z.output<S>>, maxBytes }
}

/** The form of a page: `shape` and the hidden `csrf_token`, which the pipeline checks. */
export function pageForm<Shape extends z.ZodRawShape>(
  shape: Shape,
): BodyRule<z.output<z.ZodObject<Shape>>> {
  const schema = z.object({ ...shape, csrf_token: z.string().max(128).optional() })
  return {
    kind: 'form',
    schema: schema as unknown as z.ZodType<z.output<z.ZodObject<Shape>>>,
    maxBytes: FORM_BODY_BYTES_MAX,
  }
}

/** application/x-www-form-urlencoded as fields in order, repeated ones included. */
export function formFields(
  schema: z.ZodType,
  { maxBytes = FORM_BODY_BYTES_MAX } = {},
): BodyRule<FormFields> {
  return { kind: 'fields', schema, maxBytes }
}

const fieldQueries = new WeakSet<z.ZodType>()

/** A query as fields in order, repeated ones included, judged by the actor; for the documents too. */
export function queryFields(schema: z.ZodType): z.ZodType<FormFields> {
  fieldQueries.add(schema)
  return schema as z.ZodType<FormFields>
}

export function isQueryFields(schema: z.ZodType): boolean {
  return fieldQueries.has(schema)
}

/** Bytes as they come. An empty list of content types accepts any. */
export function raw(
  contentTypes: readonly string[],
  { maxBytes }: { maxBytes: number },
): BodyRule<Uint8Array> {
  return { kind: 'raw', contentTypes, maxBytes }
}

/** Bytes as they come, while they come. */
export function streamed({ maxBytes }: { maxBytes: number }): BodyRule<StreamedBody> {
  return { kind: 'stream', maxBytes }
}

/** Who shares a quota: the client's address, the caller (token, else address), or what the route says. */
export type ThrottleKey<Request> = 'address' | 'caller' | ((request: Request) => string)
export type ThrottleRule<Request> = {
  readonly policy: PolicyName
  readonly by: ThrottleKey<Request>
}

/** Which origins may read the answer from a browser. decisions.md 14, CORS. */
export type CorsPolicy =
  /** Anybody, without credentials. */
  | 'public'
  /** The allowed_origins of the application that asks. */
  | 'application-origins'
  /** server.cors_allowed_origins, else the issuer's origin. */
  | 'configured'

type AskKind<P extends Protocol> = {
  [K in keyof P]: P[K]['reply'] extends undefined ? never : K
}[keyof P] &
  string

/** A rule for every tag of the reply, and for no other. */
type TagsOf<R> = R extends { tag: infer T extends string } ? T : never
type RulesFor<R> = { readonly [T in TagsOf<R>]: ReplyRule<Extract<R, { tag: T }>> }

export interface RouteSpec<
  P extends Protocol,
  K extends AskKind<P>,
  S extends Security,
  Params,
  Query,
  Headers,
  Body,
> {
  readonly method: Method
  /** Literal segments and `{name}` parameters; a parameter is one whole segment. */
  readonly path: string
  /** camelCase, unique. */
  readonly operationId: string
  readonly summary: string
  readonly description?: string | undefined
  readonly tags: readonly string[]
  /** `public` operations are in the integrators' document, `internal` ones in the operators' too. */
  readonly exposure: 'public' | 'internal'
  readonly security: S
  readonly params?: z.ZodType<Params> | undefined
  readonly query?: z.ZodType<Query> | undefined
  /** Keys are lower-case header names. */
  readonly headers?: z.ZodType<Headers> | undefined
  readonly body?: BodyRule<Body> | undefined
  readonly message: (request: RouteRequest<Params, Query, Headers, Body, S>) => P[K]['message']
  readonly replies: RulesFor<P[K]['reply']>
  /** Default: the `default` policy by caller. `none` only for health probes. */
  readonly throttle?:
    | 'none'
    | readonly ThrottleRule<RouteRequest<Params, Query, Headers, Body, S>>[]
    | undefined
  /** Honours the idempotency-key header; the claim goes into the message. */
  readonly idempotent?: boolean | undefined
  /** Default `configured`. */
  readonly cors?: CorsPolicy | undefined
  /** Cache-Control of success answers. Default `no-store`. */
  readonly cache?: string | undefined
  /** Names in the capabilities document that this route makes true. decisions.md 14. */
  readonly capabilities?: readonly string[] | undefined
  /**
   * `oauth`: plain error bodies, repeated parameters refused, errors never cached. `page`: an HTML
   * page with the status and the request id. `negotiated`: a page for whoever asks for HTML, plain
   * error bodies for everybody else.
   */
  readonly errors?: 'problem' | 'oauth' | 'page' | 'negotiated' | undefined
  /**
   * An intermediary's route (RFC 9110 section 3.7): the actor has clocks of its own in place of
   * request_timeout_secs, and every error says in Proxy-Status by whom it was made (RFC 9209).
   */
  readonly proxy?: boolean | undefined
  /**
   * Problems that the interface lists for the operation and this build never answers, for the
   * documents: clients should expect them from other deployments.
   */
  readonly documented?: readonly ProblemName[] | undefined
  /** The answer may hold a secret that is shown once. For the documents. */
  readonly onceOnly?: boolean | undefined
  readonly deprecated?:
    | {
        readonly sinceSecs: number
        readonly sunset?: string | undefined
        readonly link?: string | undefined
      }
    | undefined
}

type Erased = RouteSpec<Protocol, string, Security, unknown, unknown, unknown, unknown>

/** What a declaration says of itself: everything but what it does. */
export interface RouteFacts
  extends Omit<Erased, 'message' | 'replies' | 'throttle' | 'security' | 'body'> {
  readonly security: Security
  readonly body?: BodyRule<unknown> | undefined
  readonly throttle?: 'none' | readonly ThrottleRule<AnyRouteRequest>[] | undefined
}

/** A route with its types erased: what the pipeline and the documents work on. */
export interface Route extends RouteFacts {
  readonly target:
    | {
        readonly via: 'actor'
        readonly address: Address<Protocol>
        readonly kind: string
        readonly message: (request: AnyRouteRequest) => unknown
        readonly replies: Readonly<Record<string, ReplyRule<never>>>
      }
    /** The gateway's own documents: they exist on every plane and ask nobody. */
    | {
        readonly via: 'gateway'
        readonly answer: (request: AnyRouteRequest) => Promise<Rendered> | Rendered
        readonly responses: readonly ResponseDoc[]
      }
}

export type AnyRouteRequest = Omit<
  RouteRequest<unknown, unknown, unknown, unknown, { scheme: 'optional' }>,
  'session'
> & { readonly session: BrowserSession | null }

/**
 * Declares a route. The message must be what the actor's protocol asks for, and `replies` must name
 * every outcome and no other; both are compile errors otherwise.
 */
export function route<
  P extends Protocol,
  K extends AskKind<P>,
  const S extends Security,
  Params = Record<string, never>,
  Query = Record<string, never>,
  Headers = Record<string, never>,
  Body = null,
>(address: Address<P>, kind: K, spec: RouteSpec<P, K, S, Params, Query, Headers, Body>): Route {
  const { message, replies, ...facts } = spec
  return { ...facts, target: { via: 'actor', address, kind, message, replies } } as unknown as Route
}

export type OwnRouteSpec = RouteFacts & {
  readonly answer: (request: AnyRouteRequest) => Promise<Rendered> | Rendered
  readonly responses: readonly ResponseDoc[]
}

/** Declares a document that the gateway itself holds: OpenAPI, capabilities, metrics, errors. */
export function ownRoute({ answer, responses, ...facts }: OwnRouteSpec): Route {
  return { ...facts, target: { via: 'gateway', answer, responses } }
}

export type { Rendered, ReplyContext, ReplyRule, ResponseDoc }
