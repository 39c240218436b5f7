/**
 * A resource server for access tokens of svc: verifies them offline, checks scopes and DPoP proofs, and answers refusals
 * and metadata requests as clients of the Model Context Protocol expect (docs/guides/oauth/resource-server-kit.md).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { systemClock } from '../../kernel/clock.js'
import { type AccessToken, InvalidToken, verifyAccessToken } from './access-token.js'
import { type ChallengeContext, type ChallengeOptions, type Refusal, refusal } from './challenge.js'
import { Unavailable } from './documents.js'
import { createNonces, memoryReplayStore, proofFault, type ProofNeeds } from './dpop.js'
import { checkOptions, type ResourceServerOptions } from './options.js'
import { tokenRules } from './verify-token.js'

const DPOP_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const PROOF_AGE_SECS = 60
const METADATA_MAX_AGE_SECS = 300
const ANSWER_HEADERS = 'WWW-Authenticate, DPoP-Nonce, Mcp-Session-Id'
const REQUEST_HEADERS =
  'Authorization, DPoP, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Last-Event-ID'
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*) *$/i

/** Of `node:http` (also Express) or of the Fetch standard. */
export type AnyRequest = IncomingMessage | Request
export type Authenticated = { readonly tag: 'authenticated'; readonly token: AccessToken }

/** Protected resource metadata (RFC 9728 section 2). */
export type ProtectedResourceMetadata = Readonly<Record<string, unknown>> & {
  readonly resource: string
  readonly authorization_servers: readonly string[]
}

export interface ResourceServer {
  /** The address of the metadata, which every challenge names. */
  readonly metadataUrl: string
  /**
   * Authenticates a request by its Authorization header, and by its DPoP header if the token is bound to a key.
   * @param needs `scopes`: all scopes of the operation.
   * @returns the token, or the refusal to send. Never throws for a fault of the request.
   */
  authenticate(
    request: AnyRequest,
    needs?: { readonly scopes?: readonly string[] },
  ): Promise<Authenticated | Refusal>
  /**
   * Checks scopes after authentication, when the body has named the operation, such as the tool of a call. Null: they
   * suffice.
   */
  requireScopes(request: AnyRequest, token: AccessToken, scopes: readonly string[]): Refusal | null
  protectedResourceMetadata(): ProtectedResourceMetadata
  /** A refusal for your own reason. */
  challenge(options?: ChallengeOptions): Refusal
  /** Answers requests for the metadata, and CORS preflights. False: the request is for your code. */
  handleNode(request: IncomingMessage, response: ServerResponse): boolean
  /** The same for the Fetch standard. Null: the request is for your code. */
  handleRequest(request: Request): Response | null
  sendRefusal(response: ServerResponse, refusal: Refusal): void
  refusalResponse(refusal: Refusal): Response
  /** CORS headers for your own answers to a request. Empty without `corsOrigins`. */
  corsHeaders(request: AnyRequest): Readonly<Record<string, string>>
}

/** What the functions of a resource server share. */
type Kit = {
  readonly options: ResourceServerOptions
  readonly here: URL
  readonly metadataUrl: string
  readonly metadataPaths: ReadonlySet<string>
  readonly rules: ReturnType<typeof tokenRules>
  readonly nonces: ReturnType<typeof createNonces> | null
  readonly proofs: ProofNeeds
  readonly required: boolean
}

/** @throws TypeError that names an option with an invalid value. */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  checkOptions(options)
  const kit = kitOf(options)
  return {
    metadataUrl: kit.metadataUrl,
    corsHeaders: (request) => corsHeaders(kit, request),
    authenticate: (request, needs = {}) => authenticate(kit, request, needs),
    requireScopes: (request, token, needed) =>
      missing(token, needed, (of) => challenged(kit, corsHeaders(kit, request), of)),
    protectedResourceMetadata: () => metadataOf(kit),
    challenge: (of = {}) => challenged(kit, {}, of),
    handleRequest(request) {
      const answer = own(kit, request)
      return answer === null
        ? null
        : new Response(answer.body, { status: answer.status, headers: answer.headers })
    },
    handleNode(request, response) {
      const answer = own(kit, request)
      if (answer === null) return false
      response.writeHead(answer.status, answer.headers).end(answer.body)
      return true
    },
    sendRefusal(response, { status, headers, body }) {
      response.writeHead(status, headers).end(body)
    },
    refusalResponse: ({ status, headers, body }) => new Response(body, { status, headers }),
  }
}

function kitOf(options: ResourceServerOptions): Kit {
  const { resource, dpop = {}, clock = systemClock } = options
  const here = new URL(resource)
  const ownPath = here.pathname === '/' ? '' : here.pathname
  const metadataPaths = new Set([
    `${WELL_KNOWN}${ownPath}`,
    ...((options.metadataAtRoot ?? true) ? [WELL_KNOWN] : []),
  ])
  const metadataUrl = `${here.origin}${WELL_KNOWN}${ownPath}`
  const rules = tokenRules({ ...options, audience: options.audience ?? resource })
  const nonces = dpop.nonces === true ? createNonces(clock, dpop.nonceSecret) : null
  const proofs: ProofNeeds = {
    clock,
    replays: dpop.replayStore ?? memoryReplayStore(clock),
    nonces,
    algorithms: DPOP_ALGORITHMS,
    maxAgeSecs: dpop.maxAgeSecs ?? PROOF_AGE_SECS,
    aheadSecs: rules.toleranceSecs,
  }
  const required = dpop.required === true
  return { options, here, metadataUrl, metadataPaths, rules, nonces, proofs, required }
}

function challenged(
  { options, metadataUrl, nonces, required }: Kit,
  cors: ChallengeContext['cors'],
  of: ChallengeOptions,
): Refusal {
  const context = {
    metadataUrl,
    scopes: options.scopes,
    dpopAlgorithms: DPOP_ALGORITHMS,
    dpopRequired: required,
    cors,
  }
  const isDpop = of.dpop === true || required
  const nonce = isDpop && of.error !== undefined ? nonces?.current() : undefined
  return refusal(context, { nonce, ...of })
}

function corsHeaders({ options }: Kit, request: AnyRequest): Readonly<Record<string, string>> {
  const { corsOrigins = [] } = options
  const origin = headerOf(request, 'origin')
  if (corsOrigins === '*')
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': ANSWER_HEADERS }
  return {
    ...(origin !== null && corsOrigins.includes(origin)
      ? { 'access-control-allow-origin': origin, 'access-control-expose-headers': ANSWER_HEADERS }
      : {}),
    ...(corsOrigins.length > 0 ? { vary: 'Origin' } : {}),
  }
}

async function authenticate(
  kit: Kit,
  request: AnyRequest,
  needs: { readonly scopes?: readonly string[] },
): Promise<Authenticated | Refusal> {
  const cors = corsHeaders(kit, request)
  const refuse = (of: ChallengeOptions) => challenged(kit, cors, { scopes: needs.scopes, ...of })
  try {
    const outcome = await authenticated(kit, request, refuse)
    if (outcome.tag === 'refused') return outcome
    return missing(outcome.token, needs.scopes ?? [], refuse) ?? outcome
  } catch (error) {
    const dpop = /^dpop /i.test(headerOf(request, 'authorization') ?? '')
    if (error instanceof InvalidToken)
      return refuse({ error: 'invalid_token', description: error.message, dpop })
    // The replay store may be away as well. Details stay out of the answer.
    const description =
      error instanceof Unavailable
        ? 'The access token cannot be verified at the moment. Send the request again.'
        : 'The request cannot be authenticated at the moment. Send it again.'
    return refuse({ error: 'temporarily_unavailable', description })
  }
}

async function authenticated(
  { here, rules, proofs, required }: Kit,
  request: AnyRequest,
  refuse: (of: ChallengeOptions) => Refusal,
): Promise<Authenticated | Refusal> {
  const authorization = headerOf(request, 'authorization')
  if (authorization === null) return refuse({})
  const [, scheme = '', presented] = CREDENTIALS.exec(authorization) ?? []
  const usesDpop = scheme.toLowerCase() === 'dpop'
  const invalid = (description: string) =>
    refuse({ error: 'invalid_token', description, dpop: usesDpop })
  if (presented === undefined) return invalid('The Authorization header contains no access token.')
  const token = await verifyAccessToken(rules, presented)
  if (token.jkt === null) {
    if (usesDpop) return invalid('The access token is not bound to a key: use the scheme Bearer.')
    return required
      ? invalid('The access token must be bound to a key.')
      : { tag: 'authenticated', token }
  }
  // A stolen bound token must not work as a bearer token (RFC 9449 section 7.2).
  if (!usesDpop)
    return refuse({
      error: 'invalid_token',
      description: 'The access token is bound to a key: use the scheme DPoP.',
      dpop: true,
    })
  const proof = headerOf(request, 'dpop')
  if (proof === null || proof.includes(','))
    return refuse({
      error: 'invalid_dpop_proof',
      description: 'One DPoP header is needed.',
      dpop: true,
    })
  const url = `${here.origin}${pathOf(request)}`
  const of = { proof, method: request.method ?? '', url, accessToken: presented, jkt: token.jkt }
  const fault = await proofFault(proofs, of)
  return fault === undefined ? { tag: 'authenticated', token } : refuse({ ...fault, dpop: true })
}

function metadataOf({ options, required }: Kit): ProtectedResourceMetadata {
  const { issuer, resource, scopes, name, documentation } = options
  return {
    resource,
    authorization_servers: [issuer],
    scopes_supported: scopes,
    bearer_methods_supported: ['header'],
    ...(name === undefined ? {} : { resource_name: name }),
    ...(documentation === undefined ? {} : { resource_documentation: documentation }),
    dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
    dpop_bound_access_tokens_required: required,
  }
}

/** The answer to a request for the metadata or a preflight. */
function own(kit: Kit, request: AnyRequest): OwnAnswer | null {
  const path = pathOf(request)
  const isPreflight =
    request.method === 'OPTIONS' && headerOf(request, 'access-control-request-method') !== null
  if (kit.metadataPaths.has(path)) {
    if (isPreflight) return preflight({ 'access-control-allow-origin': '*' }, 'GET, HEAD')
    return metadataAnswer(request.method ?? '', metadataOf(kit))
  }
  const cors = corsHeaders(kit, request)
  const isAllowed = isPreflight && cors['access-control-allow-origin'] !== undefined
  return isAllowed ? preflight(cors, 'GET, HEAD, POST, PUT, PATCH, DELETE') : null
}

type OwnAnswer = {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string | null
}

function metadataAnswer(method: string, metadata: ProtectedResourceMetadata): OwnAnswer {
  const open = { 'access-control-allow-origin': '*' }
  if (method !== 'GET' && method !== 'HEAD')
    return { status: 405, headers: { allow: 'GET, HEAD, OPTIONS', ...open }, body: null }
  const cacheControl = `public, max-age=${METADATA_MAX_AGE_SECS}`
  const headers = { 'content-type': 'application/json', 'cache-control': cacheControl, ...open }
  return { status: 200, headers, body: method === 'HEAD' ? null : JSON.stringify(metadata) }
}

const preflight = (cors: Readonly<Record<string, string>>, methods: string): OwnAnswer => ({
  status: 204,
  headers: {
    ...cors,
    'access-control-allow-methods': methods,
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': '600',
  },
  body: null,
})

/** 403 with all scopes of the operation, so that the client asks for all of them together. */
function missing(
  token: AccessToken,
  needed: readonly string[],
  refuse: (of: ChallengeOptions) => Refusal,
): Refusal | null {
  if (needed.every((scope) => token.scopes.includes(scope))) return null
  return refuse({
    error: 'insufficient_scope',
    description: `The operation needs the scopes: ${needed.join(' ')}.`,
    scopes: needed,
    dpop: token.jkt !== null,
  })
}

function headerOf(request: AnyRequest, name: string): string | null {
  if (isFetchRequest(request)) return request.headers.get(name)
  const value = request.headers[name]
  // node:http joins repeated fields, except Authorization, of which it keeps the first.
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

/** The path as clients send it: Express removes the prefix of a router from `url`. */
function pathOf(request: AnyRequest): string {
  if (isFetchRequest(request)) return new URL(request.url).pathname
  const { originalUrl, url = '/' } = request as IncomingMessage & { readonly originalUrl?: string }
  return (originalUrl ?? url).split('?')[0]!
}

const isFetchRequest = (request: AnyRequest): request is Request =>
  typeof (request.headers as { get?: unknown }).get === 'function'
