/** The egress proxy: calls with a credential of the vault. */
import { z } from 'zod'
import { RefusedBudget } from '../../../actors/domain/vault/budgets.js'
import { METHODS } from '../../../actors/domain/vault/egress.js'
import { egress, type ProxyOutcome, type RelayEnd } from '../../../actors/vault/egress/protocol.js'
import { granteeOf } from '../../../actors/domain/grantee.js'
import { packPrincipal } from '../../../actors/domain/packed-principal.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { presenter } from '../../response/presenter.js'
import { PROXY_NAME } from '../../response/respond.js'
import { uuid } from '../../request/ids.js'
import { approvalReply } from './approval-shapes.js'
import type { Problem } from '../../response/problems.js'
import { choice, json, problem, relayed, reply, type Route, route, streamed } from '../../route.js'

const JSON_BYTES_MAX = 8 * 1024 * 1024
const BODY_BYTES_MAX = 32 * 1024 * 1024
/** Bodies up to this size are sent to the actor as bytes, larger ones as a stream. */
const WHOLE_BYTES_MAX = 64 * 1024
const EXTRA_HEADER = 'x-svc-header-'
const PROXY = '/v1/proxy'

const method = z.enum(METHODS)
const authScheme = z.string().max(256)
/** Both search for one invalid character, because a body may have millions of characters. */
const NOT_BASE64 = /[^A-Za-z0-9+/]/
const HALF_PAIR = /\p{Cs}/u

const headerPairs = z.array(z.tuple([z.string().max(256), z.string().max(16_384)])).max(100)

const EgressRequest = z
  .strictObject({
    credential_id: uuid().meta({ description: 'Active, granted to the caller.' }),
    method: method.default('GET'),
    url: z.string().min(1).max(8_192).meta({ example: 'https://api.example.com/v1/models' }),
    headers: headerPairs.default([]),
    body: z
      .string()
      .refine((text) => !HALF_PAIR.test(text), 'Must not contain lone surrogates.')
      .optional(),
    body_base64: z.string().refine(isBase64, 'Must be base64 with padding.').optional(),
    auth_scheme: authScheme
      .optional()
      .meta({ description: 'Must equal the scheme of the credential.' }),
    stream: z.boolean().default(false),
  })
  .refine(({ body, body_base64 }) => body === undefined || body_base64 === undefined, {
    message: 'body and body_base64 are mutually exclusive.',
    path: ['body_base64'],
  })
  .meta({ id: 'EgressRequest' })

const approvalHeader = {
  'x-svc-approval': z.string().max(64).optional().meta({
    description: 'The approval_id of this same request, once it is approved.',
  }),
}

const SignRequest = z
  .strictObject({
    credential_id: uuid().meta({ description: 'Active, granted to the caller.' }),
    method,
    url: z.string().min(1).max(8_192).meta({ example: 'https://api.example.com/v1/models' }),
    headers: z
      .union([headerPairs, z.record(z.string().max(256), z.string().max(16_384))])
      .default([]),
    body_base64: z.string().refine(isBase64, 'Must be base64 with padding.').optional(),
  })
  .meta({ id: 'SignRequest' })

const SignedRequest = z
  .object({ headers: z.record(z.string(), z.string()) })
  .meta({ id: 'SignedRequest' })

const BodyHeaders = z.looseObject({
  'x-svc-credential-id': uuid(),
  'x-svc-url': z
    .string()
    .min(1)
    .max(8_192)
    .regex(/^[!-~]*$/, 'Must be percent-encoded ASCII without spaces.'),
  'x-svc-method': method,
  'x-svc-auth-scheme': authScheme.optional(),
  'x-svc-stream-response': z.enum(['true', 'false']).default('true'),
  ...approvalHeader,
  'x-svc-headers': z
    .string()
    .max(16_384)
    .refine((text) => pairsIn(text) !== null, 'Must be a JSON array of [name, value] pairs.')
    .optional()
    .meta({
      description:
        'More upstream headers, for names that intermediaries do not forward: a JSON array of ' +
        'pairs, like `headers` of POST /v1/proxy.',
      example: '[["x_api_version","2"]]',
    }),
  'content-type': z.string().optional(),
})

type Lapsed = Extract<ProxyOutcome, { tag: 'reauthorization_required' }>
const status = (error: string) => ({ 'proxy-status': `${PROXY_NAME}; error=${error}` })

const APPROVALS_RETRY_SECS = 60
/** A call that ends releases its share. */
const SHARE_RETRY_SECS = 1
const OUT_OF_BUDGET = 'The byte budget is exhausted.'
const NO_RESPONSE = 'The upstream sent no valid response.'
const TOO_LATE = 'The upstream did not respond in time.'

/** The error for a response whose body broke off before any of it was sent, by the end of the relay. */
function brokenOff(end: string): Problem {
  switch (end as RelayEnd) {
    case 'budget_exhausted':
      return { name: 'rate-limited', detail: OUT_OF_BUDGET, error: 'budget_exceeded' }
    case 'revoked':
      return {
        name: 'policy-denied',
        reason: 'authorization_revoked',
        detail: 'The authorization to use the credential was revoked.',
      }
    case 'idle_timeout':
    case 'hop_timeout':
      return {
        name: 'gateway-timeout',
        detail: TOO_LATE,
        headers: status('http_response_timeout'),
      }
    default:
      return {
        name: 'bad-gateway',
        detail: NO_RESPONSE,
        headers: status('http_response_incomplete'),
      }
  }
}

const refusedBudget = presenter(RefusedBudget)

const refusals = {
  approval_needed: approvalReply(202),
  too_many_approvals: problem(429, 'rate-limited', {
    detail: 'Too many calls of the agent or the tenant wait for a person.',
    retryAfterSecs: APPROVALS_RETRY_SECS,
  }),
  invalid: problem(
    400,
    'bad-request',
    ({ pointer, detail }: { pointer: string; detail: string }) => ({
      detail,
      errors: [{ pointer, detail }],
    }),
  ),
  denied: problem(403, 'policy-denied', ({ detail }: { detail: string }) => ({ detail })),
  unknown_credential: problem(404, 'not-found', {
    detail: 'There is no such credential, or the caller has no grant for it.',
  }),
  reauthorization_required: choice<Lapsed, 'connection' | 'credential'>(
    ({ connectCode }) => (connectCode === undefined ? 'credential' : 'connection'),
    {
      credential: problem(424, 'failed-dependency', {
        error: 'policy_denied',
        detail:
          'The upstream refuses the refresh token of the credential. Its owner must store a new one.',
        reason: 'reauthorization_required',
        members: { reason: 'reauthorization_required' },
        headers: status('http_request_denied'),
      }),
      connection: problem(403, 'policy-denied', ({ connectCode }: Lapsed, { baseUrl }) => ({
        error: 'reauthorization_required',
        detail: 'The provider has ended the access. The person must connect the account again.',
        members: { connect_url: `${baseUrl}/connect/${connectCode}` },
        headers: status('http_request_denied'),
      })),
    },
  ),
  budget_exceeded: problem(
    429,
    'rate-limited',
    ({ detail, budget, retryAfterSecs }: Extract<ProxyOutcome, { tag: 'budget_exceeded' }>) => ({
      detail,
      error: 'budget_exceeded',
      retryAfterSecs,
      members: budget && refusedBudget(budget),
    }),
  ),
  too_many_calls: problem(429, 'rate-limited', {
    detail: 'The agent has the maximum number of concurrent calls.',
    retryAfterSecs: SHARE_RETRY_SECS,
    headers: status('connection_limit_reached'),
  }),
  busy: problem(503, 'service-unavailable', {
    detail: 'The share of memory, name look-ups or calls is exhausted.',
    error: 'share_exhausted',
    retryAfterSecs: SHARE_RETRY_SECS,
    headers: status('connection_limit_reached'),
  }),
  body_too_large: problem(413, 'payload-too-large'),
  // The client has disconnected and does not read this.
  client_closed: problem(400, 'bad-request', { detail: 'The request body broke off.' }),
  upstream_failed: problem(
    502,
    'bad-gateway',
    ({ error, detail }: Extract<ProxyOutcome, { tag: 'upstream_failed' }>) => ({
      detail: detail ?? NO_RESPONSE,
      headers: status(error),
    }),
  ),
  upstream_timeout: problem(504, 'gateway-timeout', ({ error }: { error: string }) => ({
    detail: TOO_LATE,
    headers: status(error),
  })),
} as const

const replies = {
  ...refusals,
  relayed: relayed(
    'The response of the upstream, with its status and the allowed header fields.',
    ({ status, headers, body, bodyBytes }: Extract<ProxyOutcome, { tag: 'relayed' }>) => ({
      status,
      headers,
      body,
      bodyBytes,
    }),
    brokenOff,
  ),
} as const

/** The header fields of a raw-body request that correspond to members of POST /v1/proxy. */
const FIELDS: Readonly<Record<string, string>> = {
  '/credential_id': 'header:x-svc-credential-id',
  '/url': 'header:x-svc-url',
  '/headers': 'header',
}

const bodyReplies = {
  ...replies,
  invalid: problem(
    400,
    'bad-request',
    ({ pointer, detail }: { pointer: string; detail: string }) => ({
      detail,
      errors: [{ pointer: FIELDS[pointer] ?? pointer, detail }],
    }),
  ),
} as const

const operation = {
  method: 'POST',
  tags: ['Vault'],
  exposure: 'public',
  capabilities: ['vault.egress', 'vault.egress_streaming'],
  proxy: true,
} as const

/** One rate limit per agent, across its tokens. */
const byAgent = ({ principal }: { principal: Principal }) => {
  const { agentId } = granteeOf(principal)
  return `${principal.tenantId}:${agentId ?? principal.subject}`
}

export const egressRoutes: readonly Route[] = [
  route(egress, 'proxyRequest', {
    ...operation,
    path: PROXY,
    summary: 'Call an upstream with a granted credential',
    description:
      'Needs a delegated token. The proxy injects the credential; the response never contains it.',
    security: { scheme: 'bearer', scopes: ['vault:read'], direct: 'forbidden' },
    throttle: [{ policy: 'egress', by: byAgent }],
    headers: z.looseObject(approvalHeader),
    body: json(EgressRequest, { maxBytes: JSON_BYTES_MAX, anyText: true }),
    message: (request) => {
      const { body } = request
      const bytes = bytesOf(body)
      return {
        principal: packPrincipal(request.principal),
        clientAddress: request.clientAddress,
        credentialId: body.credential_id,
        method: body.method,
        url: body.url,
        headers: body.headers,
        body: bytes !== null && bytes.byteLength > WHOLE_BYTES_MAX ? ByteStream.from(bytes) : bytes,
        bodyBytes: bytes?.byteLength ?? 0,
        isBodyHeld: true,
        authScheme: body.auth_scheme ?? null,
        approvalId: request.headers['x-svc-approval'] ?? null,
        stream: body.stream,
      }
    },
    replies,
  }),
  route(egress, 'proxyRequest', {
    ...operation,
    path: `${PROXY}/body`,
    operationId: 'proxyRequestBody',
    summary: 'Call an upstream with the body of this request',
    description:
      'The body is relayed as a stream. Header fields hold the rest of the upstream request: ' +
      `x-svc-url, x-svc-method and so on. ${EXTRA_HEADER}<name> becomes <name>.`,
    security: { scheme: 'bearer', scopes: ['vault:read'] },
    throttle: [{ policy: 'egress', by: byAgent }],
    headers: BodyHeaders,
    body: streamed({ maxBytes: BODY_BYTES_MAX }),
    message: (request) => ({
      principal: packPrincipal(request.principal),
      clientAddress: request.clientAddress,
      credentialId: request.headers['x-svc-credential-id'],
      method: request.headers['x-svc-method'],
      url: request.headers['x-svc-url'],
      headers: extraHeaders(request.headers),
      body: request.body.stream,
      bodyBytes: request.body.bytes,
      authScheme: request.headers['x-svc-auth-scheme'] ?? null,
      approvalId: request.headers['x-svc-approval'] ?? null,
      stream: request.headers['x-svc-stream-response'] === 'true',
    }),
    replies: bodyReplies,
  }),
  route(egress, 'signRequest', {
    method: 'POST',
    tags: ['Vault'],
    exposure: 'public',
    capabilities: ['vault.http_signature'],
    path: '/v1/sign-request',
    summary: 'Sign a request that the agent sends itself',
    description:
      'For credentials with the auth_scheme http_signature. It is decided and counted like a call. Nothing is sent; ' +
      'the answer has the header fields to add.',
    security: { scheme: 'bearer', scopes: ['vault:read'] },
    throttle: [{ policy: 'egress', by: byAgent }],
    headers: z.looseObject(approvalHeader),
    body: json(SignRequest, { maxBytes: JSON_BYTES_MAX, anyText: true }),
    message: ({ body, principal, clientAddress, headers }) => {
      const bytes = bytesOf(body)
      return {
        principal: packPrincipal(principal),
        clientAddress,
        credentialId: body.credential_id,
        method: body.method,
        url: body.url,
        headers: Array.isArray(body.headers) ? body.headers : Object.entries(body.headers),
        body: bytes,
        bodyBytes: bytes?.byteLength ?? 0,
        isBodyHeld: true,
        authScheme: null,
        approvalId: headers['x-svc-approval'] ?? null,
        stream: false,
      }
    },
    replies: {
      ...refusals,
      signed_request: reply(200, SignedRequest, ({ headers }) => ({ headers: { ...headers } })),
    },
  }),
]

/** `vault.egress_json_max_bytes` and `vault.egress_body_max_bytes`. */
export type EgressSizes = { readonly jsonBytes: number; readonly bodyBytes: number }

/** The routes with the size limits of a deployment. */
export function withEgressSizes(
  routes: readonly Route[],
  { jsonBytes, bodyBytes }: EgressSizes,
): readonly Route[] {
  return routes.map((each) => {
    if (each.proxy !== true || each.body === undefined) return each
    const maxBytes = each.body.kind === 'json' ? jsonBytes : bodyBytes
    return { ...each, body: { ...each.body, maxBytes } }
  })
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && !NOT_BASE64.test(text.replace(/={1,2}$/, ''))
}

type WithBody = Pick<z.output<typeof EgressRequest>, 'body_base64'> & {
  readonly body?: string | undefined
}

function bytesOf({ body, body_base64: base64 }: WithBody): Uint8Array | null {
  if (body !== undefined) return new TextEncoder().encode(body)
  return base64 === undefined ? null : new Uint8Array(Buffer.from(base64, 'base64'))
}

function extraHeaders(headers: z.output<typeof BodyHeaders>): [string, string][] {
  const extra: [string, string][] = []
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'content-type') extra.push([name, String(value)])
    else if (name.startsWith(EXTRA_HEADER)) {
      extra.push([name.slice(EXTRA_HEADER.length), String(value)])
    }
  }
  const { 'x-svc-headers': more } = headers
  return more === undefined ? extra : [...extra, ...(pairsIn(more) ?? [])]
}

/** The pairs of `x-svc-headers`; null when it is invalid. */
function pairsIn(text: string): [string, string][] | null {
  try {
    return headerPairs.parse(JSON.parse(text))
  } catch {
    return null
  }
}
