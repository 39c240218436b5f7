/** The clients that signed in by a metadata document. */
import { z } from 'zod'
import { observedClients } from '../../../actors/oauth/clients/observed/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, problem, type Route, route } from '../../route.js'
import { applicationReaders } from './clients.js'

const PATH = '/api/v1/observed-clients'
const tags = ['Applications']

const ObservedClient = z
  .object({
    id: z.uuid(),
    client_id: z.string().meta({ description: 'The URL of the metadata document.' }),
    client_name: z.string().meta({
      description: 'What the client calls itself, or the host of its client_id. Not verified.',
    }),
    document_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .meta({ description: 'SHA-256 of the canonical JSON of the document last seen.' }),
    first_seen_at: z.iso.datetime(),
    last_seen_at: z.iso.datetime(),
    live_grants: z.int().min(0),
  })
  .meta({ id: 'ObservedClient' })
const present = presenter(ObservedClient)

export const observedClientRoutes: readonly Route[] = [
  route(observedClients, 'listObservedClients', {
    method: 'GET',
    path: PATH,
    summary: 'List the clients that signed in by a metadata document, newest first',
    description:
      'A client whose client_id is an https URL needs no registration (Client ID Metadata ' +
      'Documents). A client leaves the list 90 days after its last grant has ended.',
    tags,
    exposure: 'public',
    security: applicationReaders,
    query: PageQuery,
    message: (request) => ({
      tenantId: request.principal.tenantId,
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(ObservedClient, ({ clients }) =>
        clients.map((client) =>
          present({ ...client, clientName: client.clientName ?? new URL(client.clientId).host }),
        ),
      ),
    },
  }),
  route(observedClients, 'deleteObservedClient', {
    method: 'DELETE',
    path: `${PATH}/{id}`,
    summary: 'End all grants and tokens of a client that signed in by a metadata document',
    description:
      'Its tokens are refused within a second. The client may sign in again: `deny` of ' +
      '`client_id_metadata` in the tenant settings keeps it out.',
    tags,
    exposure: 'public',
    security: { scheme: 'bearer', controlPlaneTokens: 'operator', scopes: ['applications:manage'] },
    params: z.object({ id: z.string().max(64) }),
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      removed: empty(204),
      unknown: problem(404, 'not-found', { detail: 'There is no such client.' }),
    },
  }),
]
