/** The vault, its egress, credentials for people, and the audit chain in the console. */
import type { TokenScheme } from '../../../../actors/domain/vault/egress.js'
import { SECRET_DOCUMENTS } from '../../../../actors/domain/vault/secret-documents/documents.js'
import { type ConsoleAction, type ConsoleResource, get, type Item } from '../declaration.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const CREDENTIAL = `${CREDENTIALS}/{credential_id}`

const isOpen = ({ status }: Item) => status === 'active' || status === 'needs_reauthorization'
/** A form for each scheme with access tokens. Its document has the members that the scheme needs. */
const withTokens = (
  name: ConsoleAction['name'],
  scheme: TokenScheme,
  members: readonly string[],
  without: readonly string[] = [],
): ConsoleAction => ({
  name,
  on: 'list',
  method: 'POST',
  path: CREDENTIALS,
  fixed: { credential_type: 'custom', auth_scheme: scheme },
  document: SECRET_DOCUMENTS[scheme],
  first: ['label', 'provider', 'allowed_hosts', ...members.map((member) => `secret.${member}`)],
  without: ['token_of', ...without.map((member) => `secret.${member}`)],
})

const isSsh = ({ credential_type: type }: Item) => String(type).startsWith('ssh')

export const vaultResources: readonly ConsoleResource[] = [
  {
    name: 'vault-credentials',
    group: 'vault',
    docs: 'guides/vault/vault',
    list: get(CREDENTIALS),
    item: get(CREDENTIAL),
    named: ['label'],
    columns: ['label', 'provider', 'credential_type', 'status', 'last_used_at'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: CREDENTIALS,
        first: ['label', 'provider', 'credential_type', 'secret', 'auth_scheme', 'allowed_hosts'],
      },
      withTokens(
        'oauthaccount',
        'oauth2_refresh',
        ['token_url', 'client_id', 'client_secret', 'refresh_token'],
        ['dpop'],
      ),
      withTokens(
        'oauthclient',
        'oauth2_client_credentials',
        ['token_url', 'client_id', 'client_secret', 'scope'],
        ['dpop'],
      ),
      withTokens('githubapp', 'github_app', ['app_id', 'installation_id', 'private_key']),
      withTokens(
        'serviceaccount',
        'gcp_service_account',
        ['client_email', 'private_key', 'private_key_id', 'scope'],
        ['type'],
      ),
      { name: 'change', on: 'item', method: 'PATCH', path: CREDENTIAL, fills: true },
      {
        name: 'rotate',
        on: 'item',
        method: 'POST',
        path: `${CREDENTIAL}/rotate`,
        danger: true,
        when: isOpen,
      },
      {
        name: 'reveal',
        on: 'item',
        method: 'GET',
        path: `${CREDENTIAL}/secret`,
        danger: true,
        shows: true,
        when: ({ non_exportable: kept, ...item }) => kept !== true && isOpen(item) && !isSsh(item),
      },
      {
        name: 'certificate',
        on: 'item',
        method: 'POST',
        path: `${CREDENTIAL}/revoke-certificate`,
        danger: true,
        when: isSsh,
      },
      {
        name: 'revoke',
        on: 'item',
        method: 'POST',
        path: `${CREDENTIAL}/revoke`,
        danger: true,
        when: isOpen,
      },
    ],
    children: [
      {
        name: 'grants',
        group: 'vault',
        docs: 'guides/vault/vault',
        list: get(`${CREDENTIAL}/grants`),
        named: ['grantee_id', 'id'],
        columns: ['grantee_type', 'grantee_id', 'status', 'expires_at', 'created_at'],
        actions: [
          {
            name: 'create',
            on: 'list',
            method: 'POST',
            path: `${CREDENTIAL}/grants`,
            first: ['grantee_type', 'grantee_id', 'expires_at'],
            without: ['budget.amount_minor', 'budget.currency'],
          },
          {
            name: 'revoke',
            on: 'item',
            method: 'POST',
            path: '/api/v1/vault/grants/{grant_id}/revoke',
            danger: true,
            when: isOpen,
          },
        ],
      },
      {
        name: 'leases',
        group: 'vault',
        docs: 'guides/vault/vault',
        list: get(`${CREDENTIAL}/leases`),
        named: ['recipient_id', 'id'],
        columns: ['recipient_id', 'byte_budget', 'bytes_used', 'status', 'expires_at'],
        actions: [
          { name: 'create', on: 'list', method: 'POST', path: `${CREDENTIAL}/leases` },
          {
            name: 'revoke',
            on: 'item',
            method: 'POST',
            path: '/api/v1/vault/leases/{lease_id}/revoke',
            danger: true,
            when: isOpen,
          },
        ],
      },
    ],
  },
  {
    name: 'egress',
    group: 'vault',
    docs: 'guides/vault/egress-proxy',
    list: get('/api/v1/audit-events'),
    query: { type: 'egress.stream.closed' },
    named: ['data.host', 'id'],
    columns: [
      'occurred_at',
      'data.method',
      'data.host',
      'data.outcome',
      'data.bytes',
      'data.duration_ms',
    ],
    opens: false,
    live: true,
  },
  {
    name: 'credential-offers',
    group: 'vault',
    docs: 'guides/oauth/verifiable-credentials',
    feature: 'credential_issuer',
    list: get('/api/v1/credential-offers'),
    item: get('/api/v1/credential-offers/{credential_offer_id}'),
    named: ['credential_configuration_id', 'id'],
    columns: ['credential_configuration_id', 'status', 'created_at', 'expires_at'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: '/api/v1/credential-offers' },
      {
        name: 'delete',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/credential-offers/{credential_offer_id}',
        danger: true,
      },
    ],
  },
  {
    name: 'issued-credentials',
    group: 'vault',
    docs: 'guides/oauth/verifiable-credentials',
    list: get('/api/v1/issued-credentials'),
    named: ['credential_configuration_id', 'id'],
    columns: ['credential_configuration_id', 'status', 'issued_at', 'expires_at'],
    actions: [
      {
        name: 'revoke',
        on: 'item',
        method: 'POST',
        path: '/api/v1/issued-credentials/{issued_credential_id}/revoke',
        danger: true,
        when: ({ revoked_at: at }) => at === null || at === undefined,
      },
    ],
  },
  {
    name: 'audit',
    group: 'operations',
    docs: 'guides/operations/audit',
    list: get('/api/v1/audit-events'),
    named: ['type'],
    columns: ['type', 'subject', 'resource', 'outcome', 'occurred_at'],
    filters: ['type', 'actor', 'resource_type', 'resource_id', 'request_id', 'since', 'until'],
    timed: true,
    exports: { type: 'application/x-ndjson', file: 'audit-events.ndjson' },
    actions: [
      {
        name: 'verify',
        on: 'list',
        method: 'GET',
        path: '/api/v1/audit-events/verify',
        shows: true,
      },
      { name: 'export', on: 'list', method: 'GET', path: '/api/v1/audit-events/export' },
    ],
  },
]
