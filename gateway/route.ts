/**
 * The declaration of a route. Routing, validation, authentication, rate limits, OpenAPI and capabilities are
 * derived from it, and all routes are declared this way.
 */
import { z } from 'zod'
import type { IdempotencyClaim } from '../actors/domain/idempotency.js'
import type { BrowserSession } from '../actors/identity/sign-in/sessions/protocol.js'
import type { Principal, SubjectType } from '../actors/domain/principal.js'
import type { PolicyName } from '../actors/operations/rate-limits/protocol.js'
import type { Address, Protocol } from '../runtime/kernel/protocol.js'
import type { ByteStream } from '../runtime/kernel/stream.js'
import type { AskOptions } from '../runtime/kernel/actor.js'
import type { RequestHead } from './http-exchange.js'
import type { Browser } from './request/browser.js'
import type { Problem, ProblemName } from './response/problems.js'
import type { Rendered, ReplyContext, ReplyRule, ResponseDoc } from './response/replies.js'

export {
  bytes,
  choice,
  chunked,
  constant,
  empty,
  html,
  oauthError,
  page,
  problem,
  relayed,
  refusal,
  reply,
  seeOther,
  written,
} from './response/replies.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * Which tokens of the control-plane tenant a route accepts. `operator`: those with `deployment:manage`, or with
 * `signing_keys:manage` or `metrics:read` where the route names it. `owner`: also tokens of organization owners. A
 * refused token gets 403 `forbidden` with `reason: control_plane_token`.
 */
export type ControlPlaneTokens = 'refused' | 'operator' | 'owner'

/** How callers are authenticated. */
export type Security =
  /** No authentication. */
  | { readonly scheme: 'anonymous' }
  /** An access token (Bearer or DPoP), verified before the message is built. */
  | {
      readonly scheme: 'bearer'
      /** One of these is enough. Without scopes, any valid token is accepted. */
      readonly scopes?: readonly string[] | undefined
      /** Default: all kinds. */
      readonly subjects?: readonly SubjectType[] | undefined
      /** Whether the token may carry an act chain. Default `either`. */
      readonly direct?: 'required' | 'forbidden' | 'either' | undefined
      /** With `direct: 'forbidden'`: direct tokens with one of these scopes are accepted as well. */
      readonly directScopes?: readonly string[] | undefined
      /** Where `subjects` has agents only: also accepts a user's token that the console got. */
      readonly console?: 'accepted' | undefined
      /** Accepts a user's token that is bound to one organization. Other routes refuse such tokens. */
      readonly organizationBound?: 'accepted' | undefined
      /** Default `refused`. */
      readonly controlPlaneTokens?: ControlPlaneTokens | undefined
    }
  /** A token is verified if present. Without one the principal is null. */
  | { readonly scheme: 'optional' }
  /** OAuth client authentication, done by the actor with `credentials` and the form. */
  | { readonly scheme: 'client' }
  /** The metrics endpoint: the configured bearer token, or a service token with metrics:read. */
  | { readonly scheme: 'metrics' }
  /**
   * A page without a session. Its form must carry the `csrf_token` of the page. `foreign` accepts forms from other
   * sites: the handler of such a route must not change anything. `console` binds the form to the session of the
   * console too: after a sign-in to another tenant, a form that was open before is refused.
   */
  | { readonly scheme: 'browser'; readonly forms?: 'own' | 'console' | 'foreign' | undefined }
  /** A page for a signed-in user. Without a session the browser is redirected to sign-in (303). */
  | { readonly scheme: 'session' }
  /**
   * An operation for a user, with a direct access token or with a browser session. A session is accepted only if
   * the browser declares the request same-origin.
   */
  | {
      readonly scheme: 'person'
      /** Scopes of the token. One of these is enough. */
      readonly scopes: readonly string[]
    }
  /**
   * An operation for pages of the service, with a browser session. An access token is refused with 403
   * `insufficient_scope`, because no scope can replace the user's own decision.
   */
  | { readonly scheme: 'page_call' }
  /** A SCIM token of a tenant (docs/reference/identity.md, SCIM). Access tokens are refused. */
  | { readonly scheme: 'scim' }

type PrincipalOf<S extends Security> = S extends { scheme: 'bearer' | 'scim' }
  ? Principal
  : S extends { scheme: 'optional' | 'metrics' | 'person' }
    ? Principal | null
    : null

type SessionOf<S extends Security> = S extends { scheme: 'session' | 'page_call' }
  ? BrowserSession
  : S extends { scheme: 'person' }
    ? BrowserSession | null
    : null

export type { IdempotencyClaim }

/** Credentials as sent, for actors that verify them. */
export type Credentials = {
  /** The Authorization header, or null. */
  readonly authorization: string | null
  /** The DPoP header, or null. */
  readonly dpopProof: string | null
  readonly httpMethod: string
  /** Absolute URL of the request without its query, at an origin of the service (`requestOrigin`). */
  readonly httpUrl: string
}

type RouteRequest<Params, Query, Headers, Body, S extends Security> = {
  readonly params: Params
  readonly query: Query
  readonly headers: Headers
  readonly body: Body
  readonly principal: PrincipalOf<S>
  /** The signed-in user's session, on routes of the schemes `session`, `person` and `page_call`. */
  readonly session: SessionOf<S>
  /** Cookies and CSRF token, on pages (schemes `browser` and `session`). */
  readonly browser: Browser
  /** Null unless the route is `idempotent` and the request has a key. */
  readonly idempotency: IdempotencyClaim | null
  readonly requestId: string
  /** Address of the client behind trusted proxies. */
  readonly clientAddress: string
  /** What a registration is counted by: `ClientAddresses.networkOf`. */
  readonly registeringNetwork: string | null
  /** Host of the request, lower case, with its port if it has one. */
  readonly host: string
  readonly credentials: Credentials
}

/** The fields of a form in order, including repeated names. */
export type FormFields = readonly (readonly [name: string, value: string])[]

const JSON_BODY_BYTES_MAX = 1024 * 1024
const FORM_BODY_BYTES_MAX = 64 * 1024

export type BodyRule<Body> =
  | {
      readonly kind: 'json'
      readonly schema: z.ZodType<Body>
      readonly maxBytes: number
      /** A missing body is read as an empty object. */
      readonly optional?: boolean | undefined
      /** Media types besides application/json. OpenAPI has the first one. */
      readonly contentTypes?: readonly string[] | undefined
      /** Accepts text that `findJsonLoss` refuses, for bodies that are relayed and not stored. */
      readonly anyText?: boolean | undefined
    }
  | { readonly kind: 'form'; readonly schema: z.ZodType<Body>; readonly maxBytes: number }
  /** The fields in order, validated by the actor. `schema` is for OpenAPI. */
  | {
      readonly kind: 'fields'
      readonly schema: z.ZodType
      readonly maxBytes: number
      readonly fields?: Body
    }
  | {
      readonly kind: 'raw'
      readonly contentTypes: readonly string[]
      /** For OpenAPI. The actor parses and validates the body. */
      readonly schema?: z.ZodType | undefined
      readonly maxBytes: number
      /** Time limit of the body, if it is shorter than the request's. */
      readonly withinSecs?: number | undefined
      readonly bytes?: Body
    }
  /** multipart/form-data of a page: the hidden `csrf_token` and one file (RFC 7578). */
  | {
      readonly kind: 'upload'
      readonly schema: z.ZodType
      readonly maxBytes: number
      readonly upload?: Body
    }
  /** Read by the actor as a stream, with back pressure. */
  | { readonly kind: 'stream'; readonly maxBytes: number; readonly streamed?: Body }

/** A streamed request body. `stream` is null if the request has no body. */
export type StreamedBody = {
  readonly stream: ByteStream | null
  /** The content-length, or null. */
  readonly bytes: number | null
}

/** application/json, at most 1 MiB by default. */
export function json<S extends z.ZodType>(
  schema: S,
  {
    maxBytes = JSON_BODY_BYTES_MAX,
    optional = false,
    anyText = false,
    contentTypes = [],
  }: {
    maxBytes?: number
    optional?: boolean
    anyText?: boolean
    contentTypes?: readonly string[]
  } = {},
): BodyRule<z.output<S>> {
  const typed = schema as unknown as z.ZodType<z.output<S>>
  return { kind: 'json', schema: typed, maxBytes, optional, anyText, contentTypes }
}

/** application/x-www-form-urlencoded as an object. A repeated field is refused. */
export function form<S extends z.ZodType>(
  schema: S,
  { maxBytes = FORM_BODY_BYTES_MAX } = {},
): BodyRule<z.output<S>> {
  return { kind: 'form', schema: schema as unknown as z.ZodType<z.output<S>>, maxBytes }
}

/** The form of a page: `shape`, and the hidden `csrf_token` that the pipeline checks. */
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

/** application/x-www-form-urlencoded as fields in order, including repeated ones. */
export function formFields(
  schema: z.ZodType,
  { maxBytes = FORM_BODY_BYTES_MAX } = {},
): BodyRule<FormFields> {
  return { kind: 'fields', schema, maxBytes }
}

const fieldQueries = new WeakSet<z.ZodType>()

/** A query as fields in order, including repeated ones, validated by the actor. `schema` is for OpenAPI. */
export function queryFields(schema: z.ZodType): z.ZodType<FormFields> {
  fieldQueries.add(schema)
  return schema as z.ZodType<FormFields>
}

export function isQueryFields(schema: z.ZodType): boolean {
  return fieldQueries.has(schema)
}

/** Raw bytes. An empty list of content types accepts all types. */
export function raw(
  contentTypes: readonly string[],
  limits: {
    readonly maxBytes: number
    readonly withinSecs?: number | undefined
    readonly schema?: z.ZodType | undefined
  },
): BodyRule<Uint8Array> {
  return { kind: 'raw', contentTypes, ...limits }
}

/** Raw bytes as a stream. */
export function streamed({ maxBytes }: { maxBytes: number }): BodyRule<StreamedBody> {
  return { kind: 'stream', maxBytes }
}

/** A form with a file, as a browser sends it. */
export type UploadedForm = {
  readonly csrf_token: string
  /** Null if the user chose none. */
  readonly file: { readonly mediaType: string; readonly bytes: Uint8Array } | null
}

/** The form of a page with one file of at most `maxBytes`, in the field `file`. */
export function uploadForm({ maxBytes }: { maxBytes: number }): BodyRule<UploadedForm> {
  const schema = z.object({
    csrf_token: z.string().max(128),
    file: z.string().meta({ format: 'binary' }),
  })
  return { kind: 'upload', schema, maxBytes: maxBytes + UPLOAD_FRAME_BYTES_MAX }
}

/** Boundaries, headers and the other field of an upload. */
const UPLOAD_FRAME_BYTES_MAX = 4 * 1024

/**
 * The key of a rate limit: the client's address, the caller (token, else address), the OAuth client, or a function. The
 * actor counts by the OAuth client, after its authentication. Without a verified token a function reads what the sender
 * wrote: put the address into the key, so that the sender cannot use up the quota of others.
 */
type ThrottleKey<Request> = 'address' | 'caller' | 'client' | ((request: Request) => string)
export type ThrottleRule<Request> = {
  readonly policy: PolicyName
  readonly by: ThrottleKey<Request>
}

/** Origins that may read the answer in a browser (docs/reference/http.md, CORS). */
export type CorsPolicy =
  /** The issuer, server.identity_app_origin and server.dashboard_app_origin. */
  | 'own-apps'
  /** All origins, without credentials. */
  | 'public'
  /** The allowed_origins of the requesting application. */
  | 'application-origins'
  /** server.cors_allowed_origins, else the issuer's origin. The origins of the two apps always. */
  | 'configured'

type AskKind<P extends Protocol> = {
  [K in keyof P]: P[K]['reply'] extends undefined ? never : K
}[keyof P] &
  string

/** One rule for each tag of the reply. */
type TagsOf<R> = R extends { tag: infer T extends string } ? T : never
type RulesFor<R> = { readonly [T in TagsOf<R>]: ReplyRule<Extract<R, { tag: T }>> }

interface RouteSpec<
  P extends Protocol,
  K extends AskKind<P>,
  S extends Security,
  Params,
  Query,
  Headers,
  Body,
> {
  readonly method: Method
  /** Literal segments and `{name}` parameters. A parameter is one whole segment. */
  readonly path: string
  /** camelCase, unique. Default: the name of the message. */
  readonly operationId?: string | undefined
  readonly summary: string
  readonly description?: string | undefined
  readonly tags: readonly string[]
  /** `internal` operations are left out of the public OpenAPI document. */
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
  /** Supports the idempotency-key header. The claim is part of the message. */
  readonly idempotent?: boolean | undefined
  /** Default `configured`. */
  readonly cors?: CorsPolicy | undefined
  /** Cache-Control of successful answers. Default `no-store`. */
  readonly cache?: string | undefined
  /** Names that this route adds to the capabilities document. */
  readonly capabilities?: readonly string[] | undefined
  /**
   * `oauth`: error bodies of RFC 6749, repeated parameters refused, errors never cached. `page`: an HTML page with
   * the status and the request id. `negotiated`: a page for clients that accept HTML, otherwise as `oauth`.
   * `json-rpc`: error responses of JSON-RPC 2.0, also for other methods of the path. `scim`: error bodies of RFC 7644
   * section 3.12.
   */
  readonly errors?: 'problem' | 'oauth' | 'page' | 'negotiated' | 'json-rpc' | 'scim' | undefined
  /**
   * False: the path names nothing, and is answered as an unknown one. Parameters are not decoded. Without headers for a
   * method that no route has.
   */
  readonly isPath?:
    | ((params: Readonly<Record<string, string>>, headers?: RequestHead['headers']) => boolean)
    | undefined
  /** Refuses a request by its head, after the rate limits and before its input is read. */
  readonly refuse?: ((head: RequestHead) => Problem | undefined) | undefined
  /**
   * The route of an intermediary (RFC 9110 section 3.7): the actor has its own time limits in place of
   * request_timeout_secs, and Proxy-Status names the source of each error (RFC 9209).
   */
  readonly proxy?: boolean | undefined
  /** Successful answers, 404 and 503 are logged at level debug, as for public documents without input. */
  readonly quiet?: boolean | undefined
  /** Further problems for OpenAPI: this version never sends them, but clients should handle them. */
  readonly documented?: readonly ProblemName[] | undefined
  /** The answer may contain a secret that is shown once. For OpenAPI. */
  readonly onceOnly?: boolean | undefined
  /** The operation still works, and its answers say that another one replaces it. */
  readonly deprecated?: Deprecated | undefined
}

/** Deprecation (RFC 9745), Sunset (RFC 8594) and the link to the migration (docs/reference/http.md, Deprecation). */
export type Deprecated = {
  readonly since: Date
  /** The operation stays at least until then. */
  readonly sunset?: Date | undefined
  /** Where the migration is described. */
  readonly link?: string | undefined
  /** The operation id of the replacement. */
  readonly instead: string
}

type Erased = RouteSpec<Protocol, string, Security, unknown, unknown, unknown, unknown>

/** A declaration without its message and replies. */
interface RouteFacts
  extends Omit<Erased, 'operationId' | 'message' | 'replies' | 'throttle' | 'security' | 'body'> {
  readonly operationId: string
  readonly security: Security
  readonly body?: BodyRule<unknown> | undefined
  readonly throttle?: 'none' | readonly ThrottleRule<AnyRouteRequest>[] | undefined
}

/** A route with its types erased, for the pipeline and OpenAPI. */
export interface Route extends RouteFacts {
  readonly target:
    | {
        readonly via: 'actor'
        readonly address: Address<Protocol>
        readonly kind: string
        readonly message: (request: AnyRouteRequest) => unknown
        readonly replies: Readonly<Record<string, ReplyRule<never>>>
      }
    /** A document of the gateway, served on all planes without an actor. */
    | {
        readonly via: 'gateway'
        readonly answer: GatewayAnswer
        readonly responses: readonly ResponseDoc[]
      }
}

export type AnyRouteRequest = Omit<
  RouteRequest<unknown, unknown, unknown, unknown, { scheme: 'optional' }>,
  'session'
> & { readonly session: BrowserSession | null }

/**
 * Declares a route. The compiler checks that the message is one of the actor's protocol and that `replies` has a
 * rule for each outcome.
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
  const { message, replies, operationId = kind, ...facts } = spec
  const target = { via: 'actor', address, kind, message, replies }
  return { ...facts, operationId, target } as unknown as Route
}

/** @param asking the deadline of the request, for asks on its behalf */
type GatewayAnswer = (request: AnyRouteRequest, asking: AskOptions) => Promise<Rendered> | Rendered

export type OwnRouteSpec = RouteFacts & {
  readonly answer: GatewayAnswer
  readonly responses: readonly ResponseDoc[]
}

/** Declares a document of the gateway: OpenAPI, capabilities, metrics, error pages. */
export function ownRoute({ answer, responses, ...facts }: OwnRouteSpec): Route {
  return { ...facts, target: { via: 'gateway', answer, responses } }
}

export type { Rendered, ReplyContext, ReplyRule, ResponseDoc }
