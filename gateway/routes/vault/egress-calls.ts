/** The ledger of calls that left the service, and their live view. */
import { z } from 'zod'
import {
  CALL_TYPES,
  type CallKind,
  EgressCall,
  egressCalls,
} from '../../../actors/vault/egress-calls/protocol.js'
import { asId } from '../../../actors/domain/ids.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { chunked, problem, type Route, route } from '../../route.js'
import { Moment } from '../../request/moment.js'

const PATH = '/api/v1/egress/calls'
const STREAM_RETRY_SECS = 5

const operation = {
  method: 'GET',
  tags: ['Vault'],
  exposure: 'internal',
  security: { scheme: 'bearer', scopes: ['audit:read', 'vault:manage'] },
} as const

const Term = z.string().regex(/^[^\p{Cc}\p{Cs}]{1,255}$/u)
const Which = {
  kind: z.enum(Object.keys(CALL_TYPES) as CallKind[]).optional(),
  agent_id: Term.overwrite(asId).optional(),
  credential_id: Term.overwrite(asId).optional(),
  host: Term.toLowerCase().optional(),
  outcome: Term.optional().meta({ description: 'Such as completed or upstream_error' }),
}
const Between = {
  ...Which,
  since: Moment.optional(),
  until: Moment.optional().meta({ description: 'Exclusive' }),
}

const whichOf = (query: z.output<z.ZodObject<typeof Which>>) => ({
  kind: query.kind ?? null,
  agentId: query.agent_id ?? null,
  credentialId: query.credential_id ?? null,
  host: query.host ?? null,
  outcome: query.outcome ?? null,
})
const betweenOf = (query: z.output<z.ZodObject<typeof Between>>) => ({
  ...whichOf(query),
  since: query.since === undefined ? null : new Date(query.since),
  until: query.until === undefined ? null : new Date(query.until),
})

const tooMany = problem(429, 'rate-limited', {
  detail: 'The tenant has the maximum number of open streams.',
  retryAfterSecs: STREAM_RETRY_SECS,
})

export const egressCallRoutes: readonly Route[] = [
  route(egressCalls, 'listEgressCalls', {
    ...operation,
    path: PATH,
    summary: 'List the calls that left the service, newest first',
    description:
      'Calls through the egress proxy and of MCP tools that have ended. Filters are combined with AND. cursor_ts is ' +
      'the ended_at of the last call seen. A page looks through 5,000 calls at most: it may have fewer than asked, ' +
      'and Link to the next one.',
    capabilities: ['vault.egress_calls'],
    query: PageQuery.safeExtend(Between),
    message: ({ query, principal }) => ({
      principal,
      ...betweenOf(query),
      ...readPage(query),
    }),
    replies: { listed: pageReply(EgressCall, ({ calls }) => [...calls]) },
  }),
  route(egressCalls, 'exportEgressCalls', {
    ...operation,
    path: `${PATH}/export`,
    summary: 'Export the calls that left the service, newest first',
    description:
      'As CSV (RFC 4180), or as JSON lines with the members of the list. A cell that a spreadsheet would run as a ' +
      'formula begins with an apostrophe. At most 100,000 calls. The file breaks off when the token or API key is revoked.',
    query: z.object({ ...Between, format: z.enum(['csv', 'jsonl']).default('csv') }),
    message: ({ query, principal }) => ({
      principal,
      ...betweenOf(query),
      format: query.format,
    }),
    replies: {
      exported: chunked(['text/csv', 'application/x-ndjson'], ({ format }) => [
        ['content-type', format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson'],
        ['content-disposition', `attachment; filename="calls.${format}"`],
      ]),
      too_many_streams: tooMany,
    },
  }),
  route(egressCalls, 'followEgressCalls', {
    ...operation,
    path: `${PATH}/stream`,
    summary: 'Follow the calls that leave the service, as server-sent events',
    description:
      'An event `call` for each call that has ended, with the members of the list. It begins with the next call, or ' +
      'after Last-Event-ID. The stream ends after some minutes, or with the token or API key: connect again.',
    query: z.object(Which),
    headers: z.looseObject({
      'last-event-id': z
        .string()
        .regex(/^[0-9]{0,15}$/)
        .optional(),
    }),
    message: ({ query, headers, principal }) => ({
      principal,
      ...whichOf(query),
      afterSequence:
        // Some clients send an empty one before the first event.
        headers['last-event-id'] ? Number(headers['last-event-id']) : null,
    }),
    replies: {
      followed: chunked(['text/event-stream'], () => [['content-type', 'text/event-stream']]),
      too_many_streams: tooMany,
    },
  }),
]
