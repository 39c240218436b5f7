/** Applications, APIs, agents and webhooks in the console. */
import { EVENT_TYPES } from '../../../../actors/domain/events.js'
import { type ConsoleResource, get, type Item } from '../declaration.js'

const APPLICATIONS = '/api/v1/applications'
const APPLICATION = `${APPLICATIONS}/{application_id}`
const APIS = '/api/v1/api-resources'
const AGENT = '/api/v1/agents/{agent_id}'
const ACCESS_POLICIES = '/api/v1/access-policies'
const ACCESS_POLICY = `${ACCESS_POLICIES}/{id}`
const API_KEYS = '/api/v1/api-keys'
const API_KEY = `${API_KEYS}/{id}`
const KEY = `${AGENT}/keys/{key_id}`
const ISSUERS = '/api/v1/trusted-issuers'
const ISSUER = `${ISSUERS}/{id}`
const RULES = `${ISSUER}/rules`
const WEBHOOKS = '/api/v1/webhooks'
const WEBHOOK = `${WEBHOOKS}/{id}`

const isActive = ({ status }: Item) => status === 'active'

export const accessResources: readonly ConsoleResource[] = [
  {
    name: 'applications',
    group: 'access',
    docs: 'guides/oauth/authorization-code',
    list: get(APPLICATIONS),
    item: get(APPLICATION),
    named: ['name'],
    columns: ['name', 'client_id', 'client_type', 'status', 'created_at'],
    extra: 'console-try',
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: APPLICATIONS,
        first: ['name', 'redirect_uris', 'client_type', 'scopes'],
      },
      {
        name: 'change',
        on: 'item',
        method: 'PUT',
        path: APPLICATION,
        fills: true,
        first: ['name', 'redirect_uris', 'scopes', 'status'],
      },
      {
        name: 'rotate',
        on: 'item',
        method: 'POST',
        path: `${APPLICATION}/rotate-secret`,
        danger: true,
        when: ({ token_endpoint_auth_method: method }) =>
          String(method).startsWith('client_secret'),
      },
      { name: 'delete', on: 'item', method: 'DELETE', path: APPLICATION, danger: true },
    ],
  },
  {
    name: 'observed-clients',
    group: 'access',
    docs: 'guides/oauth/client-id-metadata-documents',
    list: get('/api/v1/observed-clients'),
    named: ['client_name', 'client_id'],
    columns: ['client_name', 'client_id', 'last_seen_at', 'live_grants'],
    actions: [
      {
        name: 'delete',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/observed-clients/{id}',
        danger: true,
      },
    ],
  },
  {
    name: 'api-resources',
    group: 'access',
    docs: 'guides/oauth/api-resources',
    list: get(APIS),
    item: get(`${APIS}/{id}`),
    named: ['name', 'resource'],
    columns: ['name', 'resource', 'allowed_clients', 'created_at'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: APIS,
        first: ['name', 'resource', 'scopes'],
      },
      { name: 'change', on: 'item', method: 'PATCH', path: `${APIS}/{id}`, fills: true },
      { name: 'delete', on: 'item', method: 'DELETE', path: `${APIS}/{id}`, danger: true },
    ],
  },
  {
    name: 'api-keys',
    group: 'access',
    docs: 'guides/oauth/api-keys',
    list: get(API_KEYS),
    item: get(API_KEY),
    named: ['name'],
    columns: ['name', 'scopes', 'status', 'last_used_at', 'expires_at'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: API_KEYS,
        first: ['name', 'scopes', 'expires_in_secs'],
      },
      {
        name: 'rotate',
        on: 'item',
        method: 'POST',
        path: `${API_KEY}/rotate`,
        danger: true,
        when: isActive,
      },
      { name: 'revoke', on: 'item', method: 'DELETE', path: API_KEY, danger: true },
    ],
  },
  {
    name: 'access-policies',
    group: 'access',
    docs: 'guides/oauth/access-policies',
    list: get(ACCESS_POLICIES),
    item: get(ACCESS_POLICY),
    named: ['name'],
    columns: ['name', 'enabled', 'actions', 'allowed_networks', 'denied_networks', 'required_aal'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: ACCESS_POLICIES,
        first: ['name', 'allowed_networks', 'denied_networks', 'required_aal'],
      },
      { name: 'change', on: 'item', method: 'PATCH', path: ACCESS_POLICY, fills: true },
      { name: 'delete', on: 'item', method: 'DELETE', path: ACCESS_POLICY, danger: true },
    ],
  },
  {
    name: 'trusted-issuers',
    group: 'access',
    docs: 'guides/oauth/workload-identity',
    list: get(ISSUERS),
    item: get(ISSUER),
    named: ['name'],
    columns: ['name', 'issuer', 'purposes', 'kind', 'status'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: ISSUERS,
        first: ['name', 'issuer', 'purposes', 'kind', 'subject_mapping', 'email_domains'],
        // A key set is no form.
        without: ['jwks'],
      },
      {
        name: 'change',
        on: 'item',
        method: 'PATCH',
        path: ISSUER,
        fills: true,
        first: ['name', 'status', 'audiences'],
        without: ['jwks'],
      },
      { name: 'evaluate', on: 'item', method: 'POST', path: `${ISSUER}/evaluate`, shows: true },
      { name: 'delete', on: 'item', method: 'DELETE', path: ISSUER, danger: true },
    ],
    children: [
      {
        name: 'rules',
        group: 'access',
        docs: 'guides/oauth/workload-identity',
        list: get(RULES),
        within: 'data',
        named: ['name'],
        columns: ['name', 'target.client_id', 'conditions', 'scopes'],
        actions: [
          {
            name: 'create',
            on: 'list',
            method: 'POST',
            path: RULES,
            first: ['name', 'target.client_id', 'conditions', 'scopes'],
          },
          {
            name: 'delete',
            on: 'item',
            method: 'DELETE',
            path: `${RULES}/{rule_id}`,
            danger: true,
          },
        ],
      },
    ],
  },
  {
    name: 'agents',
    group: 'access',
    docs: 'guides/agents/agents',
    list: get('/api/v1/agents'),
    item: get(AGENT),
    named: ['name', 'id'],
    columns: ['name', 'id', 'status', 'last_authenticated_at'],
    actions: [
      { name: 'change', on: 'item', method: 'PATCH', path: AGENT, fills: true },
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${AGENT}/suspend`,
        danger: true,
        when: isActive,
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${AGENT}/activate`,
        when: ({ status }) => status === 'suspended',
      },
      { name: 'wallet', on: 'item', method: 'POST', path: `${AGENT}/wallet` },
      { name: 'delete', on: 'item', method: 'DELETE', path: AGENT, danger: true },
    ],
    children: [
      {
        name: 'keys',
        group: 'access',
        docs: 'guides/agents/agents',
        list: get(AGENT),
        within: 'keys',
        named: ['fingerprint', 'id'],
        columns: ['fingerprint', 'algorithm', 'status', 'created_at'],
        actions: [
          { name: 'deprecate', on: 'item', method: 'POST', path: `${KEY}/deprecate` },
          { name: 'revoke', on: 'item', method: 'POST', path: `${KEY}/revoke`, danger: true },
        ],
      },
    ],
  },
  {
    name: 'delegations',
    group: 'access',
    docs: 'guides/agents/delegation',
    list: get('/api/v1/delegations'),
    item: get('/api/v1/delegations/{delegation_id}'),
    named: ['agent_name', 'id'],
    columns: ['agent_name', 'user.email', 'scope', 'status', 'last_used_at', 'expires_at'],
    actions: [
      {
        name: 'revoke',
        on: 'item',
        method: 'POST',
        path: '/api/v1/delegations/{delegation_id}/revoke',
        danger: true,
        when: isActive,
      },
    ],
  },
  {
    name: 'webhooks',
    group: 'access',
    docs: 'guides/webhooks/webhooks',
    list: get(WEBHOOKS),
    item: get(WEBHOOK),
    named: ['url'],
    columns: ['url', 'active', 'health', 'last_attempt_at', 'event_types'],
    healthy: true,
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: WEBHOOKS,
        first: ['url', 'event_types', 'description'],
        offers: { event_types: EVENT_TYPES },
      },
      {
        name: 'change',
        on: 'item',
        method: 'PUT',
        path: WEBHOOK,
        fills: true,
        offers: { event_types: EVENT_TYPES },
      },
      { name: 'test', on: 'item', method: 'POST', path: `${WEBHOOK}/test`, shows: true },
      {
        name: 'rotate',
        on: 'item',
        method: 'POST',
        path: `${WEBHOOK}/rotate-secret`,
        danger: true,
      },
      { name: 'recover', on: 'item', method: 'POST', path: `${WEBHOOK}/recover`, shows: true },
      { name: 'delete', on: 'item', method: 'DELETE', path: WEBHOOK, danger: true },
    ],
    children: [
      {
        name: 'deliveries',
        group: 'access',
        docs: 'guides/webhooks/webhooks',
        list: get(`${WEBHOOK}/deliveries`),
        named: ['event_type', 'id'],
        columns: ['event_type', 'status', 'attempt_count', 'response_status', 'last_attempt_at'],
        filters: ['status', 'event_type'],
        actions: [
          {
            name: 'replay',
            on: 'item',
            method: 'POST',
            path: `${WEBHOOK}/deliveries/{delivery_id}/replay`,
          },
        ],
      },
    ],
  },
  {
    name: 'signal-streams',
    group: 'access',
    docs: 'guides/webhooks/shared-signals',
    list: get('/api/v1/signal-streams'),
    id: 'stream_id',
    named: ['description', 'aud'],
    columns: ['description', 'aud', 'receiver_type', 'status', 'created_at'],
  },
  {
    name: 'events',
    group: 'access',
    docs: 'guides/webhooks/webhook-receivers',
    list: get('/api/v1/events'),
    from: { after: '0' },
    within: 'items',
    id: 'event_id',
    named: ['type', 'event_id'],
    columns: ['sequence', 'type', 'timestamp', 'event_id'],
    opens: false,
  },
]
