/** What left the service: calls through the egress proxy and of MCP tools, as the audit chain records them. */
import { z } from 'zod'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { ByteStream } from '../../../runtime/kernel/stream.js'
import type { ListCursor, Page } from '../../domain/paging.js'
import type { Principal } from '../../domain/principal.js'

/** The events of each kind of call. */
export const CALL_TYPES = {
  egress: ['egress.stream.closed'],
  mcp: ['mcp.tool.called', 'mcp.tool.denied'],
} as const
export type CallKind = keyof typeof CALL_TYPES

const count = z.int().optional()
export const EgressCall = z
  .object({
    id: z.uuid().meta({ description: 'The id of the audit event' }),
    kind: z.enum(['egress', 'mcp']),
    ended_at: z.iso.datetime(),
    agent_id: z.string().optional().meta({ description: 'The agent that called' }),
    subject: z.string().optional().meta({ description: 'For whom: the sub of the token' }),
    delegation_id: z.string().optional(),
    grant_id: z.string().optional(),
    credential_id: z.string().optional(),
    host: z.string().optional(),
    method: z.string().optional(),
    server: z.object({ id: z.string(), slug: z.string() }).optional(),
    tool: z.string().optional(),
    outcome: z.string(),
    status: count.meta({ description: 'The status of the response' }),
    bytes: count.meta({ description: 'Body bytes of both directions' }),
    duration_ms: count,
    input_tokens: count,
    output_tokens: count,
    approval_id: z.string().optional(),
    request_id: z.string().optional(),
    budget_left: z
      .object({
        requests: count,
        bytes: count,
        llm_tokens: count,
        window_ends_at: z.iso.datetime().nullable(),
      })
      .optional()
      .meta({ description: 'What the budget of the grant has left now' }),
  })
  .meta({ id: 'EgressCall' })
/** Members have their wire names, because files and streams of calls are written by the actor. */
export type Call = z.output<typeof EgressCall>

/** Null: any. */
export type WhichCalls = {
  /** Who asks, in their tenant. A file or stream ends when they are revoked. */
  readonly principal: Principal
  readonly kind: CallKind | null
  readonly agentId: string | null
  readonly credentialId: string | null
  readonly host: string | null
  readonly outcome: string | null
}
export type CallsBetween = WhichCalls & {
  readonly since: Date | null
  /** Exclusive. */
  readonly until: Date | null
}

export type CallsListed = {
  readonly tag: 'listed'
  readonly calls: readonly Call[]
  /** Also of a page with fewer calls than asked: it has looked through all events that it may. */
  readonly next: ListCursor | null
}
export type FileFormat = 'csv' | 'jsonl'
export type CallsExported = {
  readonly tag: 'exported'
  readonly body: ByteStream
  readonly format: FileFormat
}
export type CallsFollowed = { readonly tag: 'followed'; readonly body: ByteStream }
/** The tenant or the process has the maximum number of streams. */
export type TooManyStreams = { readonly tag: 'too_many_streams' }

export type EgressCallsProtocol = {
  listEgressCalls: Ask<CallsBetween & Page, CallsListed>
  /** A file of calls, newest first. */
  exportEgressCalls: Ask<
    CallsBetween & { readonly format: FileFormat },
    CallsExported | TooManyStreams
  >
  /** Server-sent events: each call when it has ended. */
  followEgressCalls: Ask<
    WhichCalls & {
      /** The last event that the caller has. Null: from now on. */
      readonly afterSequence: number | null
    },
    CallsFollowed | TooManyStreams
  >
}

export const egressCalls = address<EgressCallsProtocol>('egress-calls', {
  idempotent: ['listEgressCalls'],
})
