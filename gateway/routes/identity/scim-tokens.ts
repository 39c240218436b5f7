/** The bearer tokens of directories, for operators of a tenant. */
import { z } from 'zod'
import { scim } from '../../../actors/identity/scim/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { Moment } from '../../request/moment.js'

const TOKENS = '/api/v1/scim/tokens'
const tags = ['SCIM'] as const
const managers = {
  tags,
  exposure: 'internal',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'operator',
    scopes: ['users:manage'],
  },
} as const

const Role = z.enum(['admin', 'owner'])
const ScimToken = z
  .object({
    id: z.uuid(),
    description: z.string().nullable(),
    organization_id: z.uuid().nullable(),
    roles: z.array(Role).meta({ description: 'Roles above member that it may give and take.' }),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'ScimToken' })
const tokenJson = presenter(ScimToken)
const NewScimToken = ScimToken.extend({
  token: z.string().optional().meta({ description: 'Shown once; absent in a replay' }),
}).meta({ id: 'NewScimToken' })

const CreateScimToken = z
  .object({
    description: z.string().max(255).nullable().optional(),
    expires_at: Moment.nullable().optional().meta({
      description: 'In the future. Without it the token does not expire.',
    }),
    organization_id: z
      .uuid()
      .nullable()
      .optional()
      .meta({ description: 'The organization of the tenant.' }),
    roles: z
      .array(Role)
      .max(2)
      .optional()
      .meta({
        description:
          'Roles above member that the token may give and take, at most those that the caller may give. Default: admin ' +
          'if the caller may give it. A token without owner cannot change owners.',
      }),
  })
  .meta({ id: 'CreateScimToken' })

export const scimTokenRoutes: readonly Route[] = [
  route(scim, 'listScimTokens', {
    method: 'GET',
    path: TOKENS,
    summary: 'List the SCIM tokens of the tenant, newest first',
    ...managers,
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(ScimToken, ({ rows }) => rows.map(tokenJson)),
    },
  }),
  route(scim, 'createScimToken', {
    method: 'POST',
    path: TOKENS,
    summary: 'Create a SCIM token',
    description: 'A bearer token for a directory. It is valid below /scim/v2 only.',
    ...managers,
    idempotent: true,
    onceOnly: true,
    body: json(CreateScimToken, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      description: request.body.description ?? null,
      expiresAt: request.body.expires_at == null ? null : new Date(request.body.expires_at),
      organizationId: request.body.organization_id?.toLowerCase() ?? null,
      roles: request.body.roles,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        NewScimToken,
        ({ record, token }) => ({ ...tokenJson(record), ...(token === null ? {} : { token }) }),
        ({ record }) => ({ location: `${TOKENS}/${record.id}` }),
      ),
      expired: problem(400, 'bad-request', {
        detail: 'expires_at must be in the future.',
        errors: [{ pointer: '#/expires_at', detail: 'must be in the future' }],
      }),
      unknown_organization: problem(404, 'not-found', {
        detail: 'The organization does not exist.',
      }),
      roles_beyond_caller: problem(
        403,
        'insufficient-scope',
        ({ roles }: { roles: readonly string[] }) => ({
          detail: `The roles would grant more than the token has: ${roles.join(' ')}.`,
        }),
      ),
      ...idempotencyRefusals,
    },
  }),
  route(scim, 'deleteScimToken', {
    method: 'DELETE',
    path: `${TOKENS}/{token_id}`,
    summary: 'Delete a SCIM token',
    description: 'It is refused within a second.',
    ...managers,
    params: z.object({ token_id: z.string().max(64) }),
    message: (request) => ({ caller: callerOf(request), tokenId: request.params.token_id }),
    replies: {
      deleted: empty(204),
      unknown_token: problem(404, 'not-found', { detail: 'The token does not exist.' }),
    },
  }),
]
