/** Connected accounts: connectors, connections and the pages on which people connect them. */
import { z } from 'zod'
import {
  CONNECTOR_TEMPLATES,
  TEMPLATES,
  type TemplateName,
} from '../../../actors/domain/vault/connector-templates.js'
import { connector, type ConnectorMembers } from '../../../actors/domain/entities/connector.js'
import {
  CONNECT_PAGE,
  type Connection as ConnectionSeen,
  type ConnectOutcome,
  type ConnectRefused,
  connections,
  connectors,
  POLL_SECS,
} from '../../../actors/vault/vault/connections/protocol.js'
import { entityRoutes, MemberPath } from '../../entity-routes.js'
import {
  connectFailedPage,
  connectOutcomePage,
  connectPage,
  connectRefusedPage,
} from '../../pages/vault/connect.js'
import { callerOf } from '../../request/caller.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import {
  choice,
  empty,
  type FormFields,
  json,
  page,
  pageForm,
  problem,
  queryFields,
  type Route,
  reply,
  route,
  seeOther,
} from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { invalidMember } from '../operations/invalid-member.js'
import { Moment } from '../../request/moment.js'

const CONNECTORS = '/api/v1/vault/connectors'
const CONNECTIONS = '/api/v1/vault/connections'
const TAGS = ['Connected accounts']
const managers = { scheme: 'bearer', scopes: ['vault:manage'] } as const
/** Delegated tokens, applications, and who manages the vault. */
const connecting = { scheme: 'bearer', scopes: ['vault:connect'] } as const
const seeing = { scheme: 'bearer', scopes: ['vault:connect', 'vault:manage'] } as const
const time = z.iso.datetime()

const Template = z
  .object({
    template: z.enum(CONNECTOR_TEMPLATES),
    title: z.string().optional(),
    authorization_endpoint: z.string().optional(),
    token_endpoint: z.string().optional(),
    revocation_endpoint: z.string().optional(),
    issuer: z.string().optional(),
    scopes: z.array(z.string()),
    allowed_hosts: z.array(z.string()),
    pkce: z.boolean(),
    token_endpoint_auth_method: z.string(),
    authorization_parameters: z.record(z.string(), z.string()),
    account_label: z.object({ url: z.string(), pointer: z.string() }).optional(),
  })
  .meta({ id: 'ConnectorTemplate' })
const Templates = z
  .object({ templates: z.array(Template), callback_url: z.string() })
  .meta({ id: 'ConnectorTemplates' })

const templateOf = (template: TemplateName): z.output<typeof Template> => {
  if (template === 'custom') {
    return {
      template,
      scopes: [],
      allowed_hosts: [],
      pkce: true,
      token_endpoint_auth_method: 'client_secret_post',
      authorization_parameters: {},
    }
  }
  const { revocation_endpoint, issuer, account_label, scopes, allowed_hosts, ...known } =
    TEMPLATES[template]
  return {
    template,
    ...known,
    scopes: [...scopes],
    allowed_hosts: [...allowed_hosts],
    ...(revocation_endpoint !== null && { revocation_endpoint }),
    ...(issuer !== null && { issuer }),
    ...(account_label !== null && { account_label }),
  }
}

const connectorRoutes: readonly Route[] = [
  ...entityRoutes<ConnectorMembers, never>(connectors, {
    entity: connector,
    path: CONNECTORS,
    noun: { a: 'a', one: 'connector', many: 'connectors' },
    operationIds: {
      list: 'listConnectors',
      create: 'createConnector',
      read: 'getConnector',
      update: 'updateConnector',
      remove: 'deleteConnector',
    },
    texts: {
      create: {
        summary: 'Set up a provider at which people connect accounts',
        description:
          'Register `callback_url` as the redirect URI of the client at the provider. A template fills what is left out.',
      },
      update: {
        description:
          'New hosts do not reach accounts that are connected. After a change of the origin of an endpoint people ' +
          'connect their accounts again, and the client secret is deleted unless the request has a new one.',
      },
      remove: { description: 'Its connections end and are revoked at the provider.' },
      conflict: 'The tenant has a connector with this name.',
    },
    capabilities: ['vault.connections'],
    readers: managers,
    managers,
    refusals: {},
  }),
  route(connectors, 'listConnectorTemplates', {
    method: 'GET',
    path: '/api/v1/vault/connector-templates',
    summary: 'List what is known of providers',
    tags: ['Connectors'],
    exposure: 'public',
    security: managers,
    message: () => ({}),
    replies: {
      templates: reply(200, Templates, (_outcome, { baseUrl }) => ({
        templates: CONNECTOR_TEMPLATES.map(templateOf),
        callback_url: `${baseUrl}${CONNECT_PAGE}/callback`,
      })),
    },
  }),
]

const limits = {
  max_bytes: z.int().min(1).optional().meta({
    description: 'Bytes of the grant. The person may lower them on the page.',
  }),
  expires_at: Moment.optional().meta({
    description: 'The end of the grant. The person may choose an earlier one.',
  }),
}

const StartConnection = z
  .object({
    connector: z.string().min(1).max(63).meta({ description: 'The name of a connector.' }),
    scopes: z.array(z.string().min(1).max(256)).max(100).optional().meta({
      description: 'Some of the scopes of the connector. Default: all.',
    }),
    reason: z
      .string()
      .min(1)
      .max(300)
      .regex(/^[^\p{Cc}\p{Cs}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]+$/u)
      .optional()
      .meta({ description: 'Shown to the person.' }),
    return_to: z
      .string()
      .max(2048)
      .optional()
      .meta({
        description:
          'https, on the host of a redirect URI of an active application of the tenant: with the token of an application, ' +
          'of that one. Gets `status` and `connection_id`.',
      }),
    user_id: z.string().max(255).optional().meta({
      description: 'The person. With the token of an application.',
    }),
    agent_id: z.string().max(64).optional().meta({
      description:
        'The agent that gets the grant. With the token of an application; the person has an active delegation to it.',
    }),
    ...limits,
  })
  .meta({ id: 'StartConnection' })

const ConnectionStarted = z
  .object({
    id: z.uuid(),
    status: z.literal('pending'),
    connect_url: z.string(),
    expires_in: z.int(),
    interval: z.int(),
  })
  .meta({ id: 'ConnectionStarted' })

const Connection = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    connector: z.string(),
    connector_id: z.uuid(),
    user_id: z.uuid(),
    agent_id: z.uuid().optional(),
    status: z.enum(['pending', 'active', 'needs_reauthorization', 'denied', 'expired', 'revoked']),
    scopes: z.array(z.string()),
    reason: z.string().optional(),
    return_to: z.string().optional(),
    max_bytes: z.int().optional(),
    expires_at: time.optional(),
    account_label: z.string().optional(),
    credential_id: z.uuid().optional().meta({ description: 'For egress, once it is active.' }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Connection' })

function connectionJson(row: ConnectionSeen): z.output<typeof Connection> {
  const { agentId, reason, returnTo, maxBytes, grantExpiresAt, accountLabel, credentialId } = row
  return {
    id: row.id,
    tenant_id: row.tenantId,
    connector: row.connector,
    connector_id: row.connectorId,
    user_id: row.userId,
    ...(agentId !== null && { agent_id: agentId }),
    status: row.status,
    scopes: [...row.scopes],
    ...(reason !== null && { reason }),
    ...(returnTo !== null && { return_to: returnTo }),
    ...(maxBytes !== null && { max_bytes: maxBytes }),
    ...(grantExpiresAt !== null && { expires_at: grantExpiresAt.toISOString() }),
    ...(accountLabel !== null && { account_label: accountLabel }),
    ...(credentialId !== null && { credential_id: credentialId }),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}

const unknownConnection = problem(404, 'not-found', { detail: 'The connection does not exist.' })
const operation = { tags: TAGS, exposure: 'public' } as const

const connectionRoutes: readonly Route[] = [
  route(connections, 'requestConnection', {
    ...operation,
    method: 'POST',
    path: CONNECTIONS,
    summary: 'Ask a person to connect an account',
    description:
      'With a delegated token: its person. With the token of an application: the person of user_id. The person opens ' +
      'connect_url; poll the connection until its status is no longer pending.',
    security: connecting,
    idempotent: true,
    body: json(StartConnection),
    message: (request) => ({
      caller: callerOf(request),
      connector: request.body.connector,
      scopes: request.body.scopes ?? null,
      reason: request.body.reason ?? null,
      returnTo: request.body.return_to ?? null,
      maxBytes: request.body.max_bytes ?? null,
      expiresAt: request.body.expires_at === undefined ? null : new Date(request.body.expires_at),
      userId: request.body.user_id ?? null,
      agentId: request.body.agent_id ?? null,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        ConnectionStarted,
        ({ id, code, expiresInSecs }, { baseUrl }) => ({
          id,
          status: 'pending' as const,
          connect_url: `${baseUrl}${CONNECT_PAGE}/${code}`,
          expires_in: expiresInSecs,
          interval: POLL_SECS,
        }),
        ({ id }) => ({ location: `${CONNECTIONS}/${id}` }),
      ),
      invalid: invalidMember,
      redirect_refused: problem(400, 'bad-request', {
        error: 'redirect_host_not_allowed',
        detail: 'return_to must be https on the host of a redirect URI of an active application.',
        errors: [{ pointer: '#/return_to', detail: 'is not on a registered redirect host' }],
      }),
      token_direct: problem(403, 'forbidden', {
        reason: 'token_direct',
        detail: 'This operation needs a delegated token, or the token of an application.',
      }),
      delegation_required: problem(409, 'conflict', {
        error: 'delegation_required',
        detail: 'The person has no active delegation to the agent.',
      }),
      full: problem(409, 'conflict', ({ most }) => ({
        detail: `A person can have at most ${most} open requests.`,
      })),
      too_many: problem(429, 'rate-limited', ({ retryAfterSecs }) => ({
        detail: 'The agent, or the tenant, has asked people to connect many accounts within a day.',
        retryAfterSecs,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(connections, 'listConnections', {
    ...operation,
    method: 'GET',
    path: CONNECTIONS,
    summary: 'List connections, newest first',
    description:
      'A delegated token sees the connections of its person for its agent, an application its own, and vault:manage all.',
    security: seeing,
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(Connection, ({ connections: rows }) => rows.map(connectionJson)),
    },
  }),
  route(connections, 'getConnection', {
    ...operation,
    method: 'GET',
    path: `${CONNECTIONS}/{id}`,
    summary: 'Read a connection',
    description: 'Returns 429 for polls faster than the interval while the connection is pending.',
    security: seeing,
    params: MemberPath,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      found: reply(200, Connection, ({ connection }) => connectionJson(connection)),
      unknown_connection: unknownConnection,
      too_fast: problem(429, 'rate-limited', ({ retryAfterSecs }) => ({
        detail: 'Polled faster than the interval.',
        retryAfterSecs,
      })),
    },
  }),
  route(connections, 'deleteConnection', {
    ...operation,
    method: 'DELETE',
    path: `${CONNECTIONS}/{id}`,
    summary: 'End a connection, also at the provider',
    security: seeing,
    params: MemberPath,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: { removed: empty(204), unknown_connection: unknownConnection },
  }),
]

const pages = {
  tags: ['Hosted pages'],
  exposure: 'public',
  security: { scheme: 'browser' },
  errors: 'page',
  // Limits the guessing of codes.
  throttle: [{ policy: 'device', by: 'address' }],
} as const
const Code = z.object({ code: z.string().max(64) })
const onward = seeOther(({ location }: { location: string }) => ({ location }))
const refused = choice<ConnectRefused, ConnectRefused['why']>(({ why }) => why, {
  unknown: page(404, connectRefusedPage(404)),
  other: page(403, connectRefusedPage(403)),
})
/** The application waits at an address, or the page shows the result. */
const outcome = choice<ConnectOutcome, 'back' | 'shown'>(
  ({ location }) => (location === null ? 'shown' : 'back'),
  {
    back: seeOther(({ location }) => ({ location: location ?? '/' })),
    shown: page(200, connectOutcomePage),
  },
)

/** The value of a parameter, which must not be repeated. An empty one is none (RFC 6749 section 3.1). */
function single(fields: FormFields, name: string): string | null {
  const values = fields.filter(([each, value]) => each === name && value !== '')
  return values.length === 1 ? values[0]![1] : null
}

const pageRoutes: readonly Route[] = [
  route(connections, 'finishConnect', {
    ...pages,
    method: 'GET',
    path: `${CONNECT_PAGE}/callback`,
    summary: 'Return from the provider of a connected account',
    query: queryFields(
      z.object({
        state: z.string().max(128).optional(),
        code: z.string().max(4096).optional(),
        error: z.string().max(256).optional(),
        iss: z.string().max(2048).optional(),
      }),
    ),
    message: ({ query, browser, clientAddress: address }) => ({
      sessionToken: browser.sessionToken,
      state: single(query, 'state') ?? '',
      code: single(query, 'code'),
      error: single(query, 'error'),
      iss: single(query, 'iss'),
      address,
    }),
    replies: {
      outcome,
      failed: page(502, connectFailedPage),
      refused,
      busy: problem(503, 'service-unavailable', {
        detail: 'Too many calls to providers are running.',
        error: 'share_exhausted',
        retryAfterSecs: 5,
      }),
    },
  }),
  route(connections, 'showConnect', {
    ...pages,
    method: 'GET',
    path: `${CONNECT_PAGE}/{code}`,
    summary: 'Page on which a person connects an account',
    description:
      'Returns 404 for an unknown code before any sign-in. A used code shows the result.',
    params: Code,
    message: ({ params, browser }) => ({
      code: params.code,
      sessionToken: browser.sessionToken,
    }),
    replies: { asked: page(200, connectPage), outcome, sign_in: onward, refused },
  }),
  route(connections, 'approveConnect', {
    ...pages,
    method: 'POST',
    path: `${CONNECT_PAGE}/{code}/approve`,
    summary: 'Go to the provider to connect an account',
    params: Code,
    body: pageForm({
      session: z.string().max(64),
      agreed: z.string().max(64).default(''),
      lasts: z.string().max(16).default(''),
      max_bytes: z.string().max(32).default(''),
    }),
    message: ({ params, body, browser, clientAddress: address }) => ({
      code: params.code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      agreed: body.agreed,
      lasts: body.lasts,
      maxBytes: body.max_bytes,
      address,
    }),
    replies: { to_provider: onward, outcome, sign_in: onward, refused },
  }),
  route(connections, 'denyConnect', {
    ...pages,
    method: 'POST',
    path: `${CONNECT_PAGE}/{code}/deny`,
    summary: 'Do not connect an account',
    params: Code,
    body: pageForm({ session: z.string().max(64) }),
    message: ({ params, body, browser, clientAddress: address }) => ({
      code: params.code,
      sessionToken: browser.sessionToken,
      sessionId: body.session,
      address,
    }),
    replies: { outcome, sign_in: onward, refused },
  }),
]

export const connectedAccountRoutes: readonly Route[] = [
  ...connectorRoutes,
  ...connectionRoutes,
  ...pageRoutes,
]
