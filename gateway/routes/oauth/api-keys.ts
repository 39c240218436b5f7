/** API keys of a tenant. */
import { CONTROL_PLANE_TOKEN } from '../../request/control-plane-tokens.js'
import { z } from 'zod'
import {
  API_KEY_SCOPES,
  type ApiKeyRecord,
  apiKeys,
} from '../../../actors/oauth/resources/api-keys/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { DisplayName } from '../../../actors/domain/entities/names.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { applicationManagers, applicationReaders } from './clients.js'

const KEYS = '/api/v1/api-keys'
const KEY = `${KEYS}/{id}`
const ADDRESSES_MAX = 50
const LIFETIME_SECS_MIN = 60
const DAY_SECS = 86_400
const OVERLAP_SECS_MAX = 7 * DAY_SECS

const tags = ['API keys'] as const

const Scopes = z.array(z.enum(API_KEY_SCOPES as [string, ...string[]]))
const lifetime = z.int().min(LIFETIME_SECS_MIN)

const ApiKey = z
  .object({
    id: z.uuid(),
    name: z.string(),
    scopes: Scopes,
    allowed_addresses: z.array(z.string()).meta({ description: 'Networks. Empty: any address' }),
    created_by: z.object({ type: z.enum(['human', 'agent', 'service']), id: z.string() }).meta({
      description: 'The key ends with its creator, and has at most the scopes that they have now',
    }),
    parent_id: z.uuid().nullable().meta({ description: 'The key that made this key' }),
    status: z.enum(['active', 'expired']),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    rotated_at: z.iso.datetime().nullable(),
    previous_secret_expires_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation is accepted' }),
    last_used_at: z.iso.datetime().nullable().meta({ description: 'To within five minutes' }),
  })
  .meta({ id: 'ApiKey' })
const present = presenter(ApiKey)
const keyJson = (key: ApiKeyRecord) =>
  present({ ...key, previousSecretExpiresAt: key.previousExpiresAt })
const NewApiKey = ApiKey.extend({
  secret: z.string().optional().meta({ description: 'Shown once; absent in a replay' }),
}).meta({ id: 'NewApiKey' })

const CreateApiKey = z
  .object({
    name: DisplayName,
    scopes: Scopes.min(1)
      .max(API_KEY_SCOPES.length)
      .meta({ description: 'A subset of the scopes of the token' }),
    expires_in_secs: lifetime.optional().meta({
      description:
        'At most api_keys.max_lifetime_secs; default api_keys.default_lifetime_secs. A key made with a key ends ' +
        'with it at the latest.',
    }),
    allowed_addresses: z
      .array(z.string().max(64))
      .max(ADDRESSES_MAX)
      .optional()
      .meta({ description: 'Networks such as 192.0.2.0/24 or 2001:db8::/32. Empty: any address' }),
  })
  .meta({ id: 'CreateApiKey' })

const RotateApiKey = z
  .object({
    overlap_secs: z
      .int()
      .min(0)
      .max(OVERLAP_SECS_MAX)
      .default(DAY_SECS)
      .meta({ description: 'How long the present secret stays valid' }),
    expires_in_secs: lifetime
      .optional()
      .meta({ description: 'Extends the key to this time from now. Never shortens it' }),
  })
  .meta({ id: 'RotateApiKey' })

const KeyParams = z.object({ id: z.string().max(64) })
const oneOf = (request: {
  readonly params: { readonly id: string }
  readonly principal: Parameters<typeof callerOf>[0]['principal']
  readonly clientAddress: string
}) => ({ caller: callerOf(request), keyId: request.params.id })

const unknown = problem(404, 'not-found', { detail: 'The API key does not exist.' })
const refusals = {
  not_a_tenant_token: problem(403, 'forbidden', {
    reason: CONTROL_PLANE_TOKEN,
    detail: 'API keys belong to a tenant: use a token of a tenant.',
  }),
  scopes_beyond_caller: problem<{ scopes: readonly string[] }, 'insufficient-scope'>(
    403,
    'insufficient-scope',
    ({ scopes }) => ({ detail: `The key would have more than the token: ${scopes.join(' ')}.` }),
  ),
  lifetime_too_long: problem<{ mostSecs: number }, 'bad-request'>(
    400,
    'bad-request',
    ({ mostSecs }) => ({
      detail: `The key may live at most ${mostSecs} seconds from now.`,
      errors: [{ pointer: '#/expires_in_secs', detail: `must be at most ${mostSecs}` }],
    }),
  ),
}

export const apiKeyRoutes: readonly Route[] = [
  route(apiKeys, 'listApiKeys', {
    method: 'GET',
    path: KEYS,
    summary: 'List the API keys of the tenant, newest first',
    tags,
    exposure: 'public',
    capabilities: ['api_keys'],
    security: applicationReaders,
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(ApiKey, ({ keys }) => keys.map(keyJson)),
    },
  }),
  route(apiKeys, 'createApiKey', {
    method: 'POST',
    path: KEYS,
    summary: 'Create an API key',
    description:
      'A bearer token for the APIs of the tenant. Its scopes are a subset of the scopes of the creating token. It ' +
      'ends with its creator, and never has more scopes than its creator has now. A key may make keys that have no ' +
      'more than itself: they are deleted with it.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    idempotent: true,
    onceOnly: true,
    body: json(CreateApiKey),
    message: (request) => ({
      caller: callerOf(request),
      name: request.body.name,
      scopes: request.body.scopes,
      expiresInSecs: request.body.expires_in_secs,
      allowedAddresses: request.body.allowed_addresses ?? [],
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        NewApiKey,
        ({ key, secret }) => ({ ...keyJson(key), ...(secret === null ? {} : { secret }) }),
        ({ key }) => ({ location: `${KEYS}/${key.id}` }),
      ),
      ...refusals,
      address_refused: problem<{ index: number; detail: string }, 'bad-request'>(
        400,
        'bad-request',
        ({ index, detail }) => ({
          detail: `The member allowed_addresses ${detail}.`,
          errors: [{ pointer: `#/allowed_addresses/${index}`, detail }],
        }),
      ),
      full: problem<{ most: number }, 'conflict'>(409, 'conflict', ({ most }) => ({
        detail: `The tenant has ${most} API keys, which is the limit of this deployment.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(apiKeys, 'readApiKey', {
    method: 'GET',
    path: KEY,
    summary: 'Read an API key',
    tags,
    exposure: 'public',
    security: applicationReaders,
    params: KeyParams,
    message: oneOf,
    replies: { found: reply(200, ApiKey, ({ key }) => keyJson(key)), unknown },
  }),
  route(apiKeys, 'rotateApiKey', {
    method: 'POST',
    path: `${KEY}/rotate`,
    summary: 'Replace the secret of an API key',
    description:
      'The present secret stays valid for overlap_secs. An earlier secret ends immediately. The token needs every ' +
      'scope of the key, because it gets the new secret. A key rotates itself and the keys that it made.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    onceOnly: true,
    params: KeyParams,
    body: json(RotateApiKey, { optional: true }),
    message: (request) => ({
      ...oneOf(request),
      overlapSecs: request.body.overlap_secs,
      expiresInSecs: request.body.expires_in_secs,
    }),
    replies: {
      rotated: reply(200, NewApiKey, ({ key, secret }) => ({ ...keyJson(key), secret })),
      unknown,
      ...refusals,
      not_own_key: problem(403, 'forbidden', {
        detail: 'An API key rotates itself and the keys that it made.',
      }),
    },
  }),
  route(apiKeys, 'deleteApiKey', {
    method: 'DELETE',
    path: KEY,
    summary: 'Revoke an API key',
    description: 'The key and every key that it made are refused within a second in all processes.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    params: KeyParams,
    message: oneOf,
    replies: { removed: empty(204), unknown },
  }),
]
