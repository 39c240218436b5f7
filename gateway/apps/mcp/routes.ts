/** POST /mcp: public discovery tools for software agents (docs/reference/operations.md, MCP). */
import { z } from 'zod'
import { accepts } from '../../headers/accept.js'
import { refuseMedia } from '../../body/read.js'
import type { RequestHead } from '../../http-exchange.js'
import type { Documents } from './documents.js'
import type { McpHeaders } from './eras.js'
import { MESSAGE_BYTES_MAX } from './json-rpc.js'
import { answerMcp } from './server.js'
import type { Problem } from '../../response/problems.js'
import { ownRoute, raw, type ResponseDoc, type Route } from '../../route.js'

const BODY_SECS_MAX = 10

const MEDIA_TYPES = ['application/json', 'text/event-stream']

const Id = z.union([z.string(), z.int()])
const Version = z.literal('2.0')

const Message = z
  .looseObject({
    jsonrpc: Version,
    id: Id.optional().describe('Absent in a notification.'),
    method: z.string().optional(),
    params: z.looseObject({}).optional(),
  })
  .meta({ id: 'JsonRpcMessage', description: 'One message of JSON-RPC 2.0.' })

const Failure = z
  .object({
    jsonrpc: Version,
    id: z.union([Id, z.null()]).describe('Null if the message has no valid id.'),
    error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }),
  })
  .meta({ id: 'JsonRpcError', description: 'An error of JSON-RPC 2.0 section 5.1.' })

const Answer = z.union([
  z
    .object({ jsonrpc: Version, id: Id, result: z.looseObject({}) })
    .meta({ id: 'JsonRpcResult', description: 'A result of JSON-RPC 2.0 section 5.' }),
  Failure,
])

const FAILURES: Readonly<Record<number, string>> = {
  400: 'Invalid message, unsupported protocol version, or headers that do not match the body',
  401: 'The request has credentials, which this endpoint does not process',
  403: 'The Origin is not trusted',
  404: 'Unknown method (since 2026-07-28)',
  405: 'There is no standalone event stream and no session to delete',
  406: 'Accept must allow application/json and text/event-stream',
  408: 'The body did not arrive within 10 seconds',
  413: 'The message has more than 16 KiB',
  415: 'The Content-Type must be application/json',
  429: 'A rate limit is exceeded',
  500: 'Internal error',
  503: 'The service is starting, overloaded, or a dependency is unavailable',
  504: 'The request did not finish within its time limit',
}

const RESPONSES: readonly ResponseDoc[] = [
  {
    status: 200,
    contentType: 'application/json',
    schema: Answer,
    description: 'A result or an error',
  },
  { status: 202, contentType: null, schema: null, description: 'A notification or response' },
  ...Object.entries(FAILURES).map(([status, description]) => ({
    status: Number(status),
    contentType: 'application/json',
    schema: Failure,
    description,
  })),
]

const header = (description: string) => z.string().optional().describe(description)

export function mcpRoute({
  documents,
  appOrigins,
}: {
  readonly documents: Documents
  /** Origins whose pages may call the endpoint. */
  readonly appOrigins: ReadonlySet<string>
}): Route {
  const body = raw(['application/json'], {
    maxBytes: MESSAGE_BYTES_MAX,
    withinSecs: BODY_SECS_MAX,
    schema: Message,
  })

  /** Checks the head in the order of docs/reference/operations.md, MCP. */
  function refuse(head: RequestHead): Problem | undefined {
    const { headers } = head
    const origin = headers.get('origin')
    // A page that rebinds its name to this address still sends its own origin (MCP 2025-11-25, transports).
    if (origin !== undefined && !appOrigins.has(origin)) {
      return { name: 'forbidden', reason: 'origin_foreign', detail: 'The Origin is not trusted.' }
    }
    if (headers.has('authorization')) return CREDENTIALS
    const media = headers.has('content-type')
      ? refuseMedia(body, head)
      : ({ name: 'unsupported-media-type', detail: 'The request has no Content-Type.' } as const)
    if (media !== undefined) return media
    const accept = headers.get('accept')
    const isAccepted = MEDIA_TYPES.every((type) => accepts(accept, [type]))
    return isAccepted ? undefined : NOT_ACCEPTABLE
  }

  return ownRoute({
    method: 'POST',
    path: '/mcp',
    operationId: 'callMcp',
    summary: 'Call a public discovery tool by MCP',
    description:
      'The Model Context Protocol over stateless Streamable HTTP: JSON answers, no event stream, no session. Clients ' +
      'of 2025-06-18 and 2025-11-25 send `initialize`. Clients of 2026-07-28 send `MCP-Protocol-Version`, ' +
      '`Mcp-Method`, for `tools/call` also `Mcp-Name`, and `_meta` with each request. `tools/list` lists the tools, ' +
      'which are read-only and need no credentials.',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    capabilities: ['mcp'],
    errors: 'json-rpc',
    cors: 'own-apps',
    quiet: true,
    throttle: [{ policy: 'mcp', by: 'address' }],
    headers: z.object({
      'mcp-protocol-version': header('The protocol version. Absent means a client of 2025-03-26.'),
      'mcp-method': header('The method of the message (2026-07-28).'),
      'mcp-name': header('The tool of tools/call (2026-07-28).'),
    }),
    body,
    refuse,
    responses: RESPONSES,
    async answer(request, asking) {
      const { status, body: text } = await answerMcp({
        bytes: request.body as Uint8Array,
        headers: request.headers as McpHeaders,
        documents,
        request,
        asking,
      })
      const contentType = text === null ? null : 'application/json'
      return { form: 'body', status, contentType, body: text }
    },
  })
}

const CREDENTIALS: Problem = {
  name: 'unauthorized',
  reason: 'credentials_not_taken',
  detail: 'This endpoint is anonymous. Send the request without the Authorization header.',
  headers: { 'www-authenticate': 'Bearer error="invalid_request"' },
}
const NOT_ACCEPTABLE: Problem = {
  name: 'not-acceptable',
  detail: 'Accept must allow application/json and text/event-stream.',
}
