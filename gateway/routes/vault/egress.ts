/** Calls with a credential of the vault. interface.md, Egress proxy request; decisions.md 5 and 22. */
import { z } from 'zod'
import {
  egress,
  METHODS,
  type ProxyOutcome,
  type RelayEnd,
} from '../../../actors/vault/egress/protocol.js'
import { granteeOf } from '../../../actors/domain/grantee.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { callerOf } from '../../request/caller.js'
import { PROXY_NAME } from '../../response/respond.js'
import { uuid } from '../../request/ids.js'
import type { Problem } from '../../response/problems.js'
import { json, problem, relayed, type Route, route, streamed } from '../../route.js'

const JSON_BYTES_MAX = 8 * 1024 * 1024
const BODY_BYTES_MAX = 32 * 1024 * 1024
/** A body up to here travels with its request in one piece. */
const WHOLE_BYTES_MAX = 64 * 1024
const EXTRA_HEADER = 'x-svc-header-'
const PROXY = '/v1/proxy'

const method = z.enum(METHODS)
const authScheme = z.string().max(256)
/** Both are searched for, not matched from end to end: a body may have millions of characters. */
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
      .refine((text) => !HALF_PAIR.test(text), 'Half of a surrogate pair is no UTF-8.')
      .optional(),
    body_base64: z.string().refine(isBase64, 'Base64 with its padding.').optional(),
    auth_scheme: authScheme.optional().meta({ description: 'Must be that of the credential.' }),
    stream: z.boolean().default(false),
  })
  .refine(({ body, body_base64 }) => body === undefined || body_base64 === undefined, {
    message: 'Either body or body_base64.',
    path: ['body_base64'],
  })
  .meta({ id: 'EgressRequest' })

const BodyHeaders = z.looseObject({
  'x-svc-credential-id': uuid(),
  'x-svc-url': z
    .string()
    .min(1)
    .max(8_192)
    .regex(/^[!-~]*$/, 'Spaces and characters beyond ASCII must be percent-encoded.'),
  'x-svc-method': method,
  'x-svc-auth-scheme': authScheme.optional(),
  'x-svc-stream-response': z.enum(['true', 'false']).default('true'),
  'x-svc-headers': z
    .string()
    .max(16_384)
    .refine((text) => pairsIn(text) !== null, 'A JSON array of [name, value] pairs.')
    .optional()
    .meta({
      description:
        'Further upstream headers, for names that servers in between do not let through: ' +
        'a JSON array of pairs, as `headers` of POST /v1/proxy.',
      example: '[["x_api_version","2"]]',
    }),
  'content-type': z.string().optional(),
})

const status = (error: string) => ({ 'proxy-status': `${PROXY_NAME}; error=${error}` })

/** A share is free again when a call ends. */
const SHARE_RETRY_SECS = 1
const OUT_OF_BUDGET = 'The byte budget is used up.'
const NO_ANSWER = 'The upstream gave no answer that can be relayed.'
const TOO_LATE = 'The upstream did not answer in time.'

/** What is said of an answer whose body broke off before any of it was sent, by how the relay ended. */
function brokenOff(end: string): Problem {
  switch (end as RelayEnd) {
    case 'budget_exhausted':
      return { name: 'rate-limited', detail: OUT_OF_BUDGET, error: 'budget_exceeded' }
    case 'revoked':
      return {
        name: 'policy-denied',
        detail: 'The right to use the credential was withdrawn.',
      }
    case 'idle_timeout':
    case 'hop_timeout':
      return {
        name: 'gateway-timeout',
        detail: TOO_LATE,
        headers: status('http_response_timeout'),
      }
    default:
      return { name: 'bad-gateway', detail: NO_ANSWER, headers: status('http_response_incomplete') }
  }
}

const replies = {
  relayed: relayed(
    'What the upstream answered, with its own status and those of its header fields that may pass.',
    ({ status, headers, body, bodyBytes }: Extract<ProxyOutcome, { tag: 'relayed' }>) => ({
      status,
      headers,
      body,
      bodyBytes,
    }),
    brokenOff,
  ),
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
    detail: 'There is no such credential, or it was not granted.',
  }),
  budget_exceeded: problem(429, 'rate-limited', ({ detail }: { detail: string }) => ({
    detail,
    error: 'budget_exceeded',
  })),
  too_many_calls: problem(429, 'rate-limited', {
    detail: 'The agent or the tenant has as many calls under way as it may.',
    retryAfterSecs: SHARE_RETRY_SECS,
    headers: status('connection_limit_reached'),
  }),
  busy: problem(503, 'service-unavailable', {
    detail: 'The tenant, or the service, holds as many bytes, look-ups or calls as it may.',
    retryAfterSecs: SHARE_RETRY_SECS,
    headers: status('connection_limit_reached'),
  }),
  body_too_large: problem(413, 'payload-too-large'),
  // Nobody is left to read it.
  client_closed: problem(400, 'bad-request', { detail: 'The request body broke off.' }),
  upstream_failed: problem(
    502,
    'bad-gateway',
    ({ error, detail }: Extract<ProxyOutcome, { tag: 'upstream_failed' }>) => ({
      detail: detail ?? NO_ANSWER,
      headers: status(error),
    }),
  ),
  upstream_timeout: problem(504, 'gateway-timeout', ({ error }: { error: string }) => ({
    detail: TOO_LATE,
    headers: status(error),
  })),
} as const

/** Where the members of POST /v1/proxy stand in a request with a raw body. */
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

/** One quota for an agent, whichever of its tokens it uses. */
const byAgent = ({ principal }: { principal: Principal }) => {
  const { agentId } = granteeOf(principal)
  return `${principal.tenantId}:${agentId ?? principal.subject}`
}

export const egressRoutes: readonly Route[] = [
  route(egress, 'proxy', {
    ...operation,
    path: PROXY,
    operationId: 'proxyRequest',
    summary: 'Call an upstream with a credential that was granted',
    description:
      'Needs a delegated token. The credential is put in on the way; it is never part of the answer.',
    security: { scheme: 'bearer', scopes: ['vault:read'], direct: 'forbidden' },
    throttle: [{ policy: 'egress', by: byAgent }],
    body: json(EgressRequest, { maxBytes: JSON_BYTES_MAX, anyText: true }),
    message: (request) => {
      const { body } = request
      const bytes = bytesOf(body)
      return {
        caller: callerOf(request),
        credentialId: body.credential_id,
        method: body.method,
        url: body.url,
        headers: body.headers,
        body: bytes !== null && bytes.byteLength > WHOLE_BYTES_MAX ? ByteStream.from(bytes) : bytes,
        bodyBytes: bytes?.byteLength ?? 0,
        isBodyHeld: true,
        authScheme: body.auth_scheme ?? null,
        stream: body.stream,
      }
    },
    replies,
  }),
  route(egress, 'proxy', {
    ...operation,
    path: `${PROXY}/body`,
    operationId: 'proxyRequestBody',
    summary: 'Call an upstream with the body of this request',
    description:
      'The body is relayed while it comes. What else the upstream shall be sent is in header fields: ' +
      `x-svc-url, x-svc-method and so on; ${EXTRA_HEADER}<name> becomes <name>, and x-svc-headers has others.`,
    security: { scheme: 'bearer', scopes: ['vault:read'] },
    throttle: [{ policy: 'egress', by: byAgent }],
    headers: BodyHeaders,
    body: streamed({ maxBytes: BODY_BYTES_MAX }),
    message: (request) => ({
      caller: callerOf(request),
      credentialId: request.headers['x-svc-credential-id'],
      method: request.headers['x-svc-method'],
      url: request.headers['x-svc-url'],
      headers: extraHeaders(request.headers),
      body: request.body.stream,
      bodyBytes: request.body.bytes,
      authScheme: request.headers['x-svc-auth-scheme'] ?? null,
      stream: request.headers['x-svc-stream-response'] === 'true',
    }),
    replies: bodyReplies,
  }),
]

/** The routes with the sizes of a deployment: [vault] egress_json_max_bytes, egress_body_max_bytes. */
export function withEgressSizes(
  routes: readonly Route[],
  { jsonBytes, bodyBytes }: { readonly jsonBytes: number; readonly bodyBytes: number },
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

function bytesOf({ body, body_base64: base64 }: z.output<typeof EgressRequest>): Uint8Array | null {
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

/** The pairs of `x-svc-headers`; null when it holds something else. */
function pairsIn(text: string): [string, string][] | null {
  try {
    return headerPairs.parse(JSON.parse(text))
  } catch {
    return null
  }
}
