/** Token status lists (draft-ietf-oauth-status-list). */
import Negotiator from 'negotiator'
import { z } from 'zod'
import { statusLists } from '../../../actors/oauth/status-lists/protocol.js'
import { bytes, problem, type Route, reply, route } from '../../route.js'

const facts = {
  method: 'GET',
  tags: ['Verifiable credentials'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cors: 'public',
} as const

const Aggregation = z
  .object({ status_lists: z.array(z.url()) })
  .meta({ id: 'StatusListAggregation' })

/** True if gzip is listed and not refused: without the header no encoding is applied. */
const takesGzip = (acceptEncoding: string | undefined): boolean =>
  acceptEncoding !== undefined &&
  new Negotiator({ headers: { 'accept-encoding': acceptEncoding } }).encodings(['gzip']).length > 0

export const statusListRoutes: readonly Route[] = [
  route(statusLists, 'getStatusList', {
    ...facts,
    path: '/status-lists/{status_list_id}',
    summary: 'Get a status list token',
    description:
      'A JWT of type statuslist+jwt with one bit per token: 0 is VALID, 1 is INVALID. The index of a ' +
      'token is its claim status.status_list.idx. A list can be used for its ttl. Earlier states ' +
      '(parameter time) are not kept.',
    capabilities: ['oauth.token_status_list'],
    params: z.object({ status_list_id: z.string().max(64) }),
    query: z.object({ time: z.string().max(64).optional() }),
    headers: z.object({ 'accept-encoding': z.string().max(1024).optional() }),
    message: ({ params, query, headers }) => ({
      listId: params.status_list_id,
      time: query.time ?? null,
      gzip: takesGzip(headers['accept-encoding']),
    }),
    replies: {
      found: bytes<{ body: Uint8Array; gzip: boolean; etag: string; maxAgeSecs: number }>(
        200,
        'application/statuslist+jwt',
        ({ body, gzip, etag, maxAgeSecs }) => ({
          body,
          etag,
          maxAgeSecs,
          headers: {
            vary: 'Accept-Encoding',
            ...(gzip ? { 'content-encoding': 'gzip' } : {}),
          },
        }),
        z.string(),
      ),
      unknown: problem(404, 'not-found', { detail: 'The status list does not exist.' }),
      no_history: problem(501, 'not-implemented', {
        detail: 'Earlier states of a status list are not kept.',
      }),
    },
  }),
  route(statusLists, 'listStatusLists', {
    ...facts,
    path: '/status-lists',
    summary: 'List the status lists of the issuer',
    description: 'The status list aggregation: all URLs, newest first, up to 10,000.',
    message: () => null,
    replies: {
      aggregated: reply(200, Aggregation, ({ uris }) => ({ status_lists: [...uris] })),
    },
  }),
]
