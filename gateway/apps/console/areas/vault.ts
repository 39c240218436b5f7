/** The vault with its calls and connected accounts, credentials for people, and the audit chain in the console. */
import { z } from 'zod'
import { CREDENTIAL_TYPES } from '../../../../actors/domain/entities/vault.js'
import {
  AUTH_SCHEMES,
  type SignedScheme,
  type TokenScheme,
} from '../../../../actors/domain/vault/egress.js'
import {
  hasSecretDocument,
  SECRET_DOCUMENTS,
} from '../../../../actors/domain/vault/secret-documents/documents.js'
import { RELAY_ENDS } from '../../../../actors/vault/egress/protocol.js'
import { type ConsoleAction, type ConsoleResource, get, type Item } from '../declaration.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const CREDENTIAL = `${CREDENTIALS}/{credential_id}`

const CONNECTORS = '/api/v1/vault/connectors'
const CONNECTOR = `${CONNECTORS}/{id}`
const CONNECTIONS = '/api/v1/vault/connections'
const CONNECTION = `${CONNECTIONS}/{id}`
const APPROVALS = '/api/v1/approvals'
const APPROVAL = `${APPROVALS}/{approval_id}`
const CALLS = '/api/v1/egress/calls'
const isPending = ({ status }: Item) => status === 'pending'
const isOpen = ({ status }: Item) => status === 'active' || status === 'needs_reauthorization'
/** Members of documents that only have one value. */
const CONSTANT = ['secret.dpop', 'secret.type']

/** A form for each scheme whose secret is a document. It has the members of the document. */
const withDocument = (
  name: ConsoleAction['name'],
  scheme: SignedScheme | TokenScheme,
  members: readonly string[],
): ConsoleAction => ({
  name,
  on: 'list',
  method: 'POST',
  path: CREDENTIALS,
  fixed: {
    credential_type: 'custom',
    auth_scheme: scheme,
    // A document without members has no fields.
    ...(scheme === 'http_signature' ? { secret: {} } : {}),
  },
  schemas: { secret: SECRET_DOCUMENTS[scheme] },
  first: ['label', 'provider', 'allowed_hosts', ...members.map((member) => `secret.${member}`)],
  without: ['token_of', ...CONSTANT],
})

/** The other secrets are one text. */
const PLAIN = {
  secret: z
    .string()
    .meta({ description: 'Without one, an SSH certificate authority gets a new key.' }),
  auth_scheme: z.string().meta({
    description: AUTH_SCHEMES.filter((scheme) => !hasSecretDocument(scheme)).join(', '),
  }),
  credential_type: z.enum(Object.keys(CREDENTIAL_TYPES)).exclude(['oauth2']),
}

/** The document of credentials of the type oauth2, which the forms of its schemes have replaced. */
const OAuth2Document = z.object({
  token_url: z.string(),
  client_id: z.string(),
  client_secret: z.string().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
})

/** The schema of a new secret of a credential. */
function newSecret(item: Item | null) {
  const { auth_scheme: scheme, credential_type: type } = item ?? {}
  if (type === 'oauth2') return { secret: OAuth2Document }
  const isDocument = typeof scheme === 'string' && hasSecretDocument(scheme)
  return { secret: isDocument ? SECRET_DOCUMENTS[scheme] : PLAIN.secret }
}

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
        schemas: PLAIN,
      },
      withDocument('oauthaccount', 'oauth2_refresh', [
        'token_url',
        'client_id',
        'client_secret',
        'refresh_token',
      ]),
      withDocument('oauthclient', 'oauth2_client_credentials', [
        'token_url',
        'client_id',
        'client_secret',
        'scope',
      ]),
      withDocument('githubapp', 'github_app', ['app_id', 'installation_id', 'private_key']),
      withDocument('serviceaccount', 'gcp_service_account', [
        'client_email',
        'private_key',
        'private_key_id',
        'scope',
      ]),
      withDocument('awskeys', 'aws_sigv4', ['access_key_id', 'secret_access_key', 'region']),
      withDocument('hmackey', 'hmac', ['preset', 'key', 'key_id']),
      withDocument('agentsignature', 'http_signature', []),
      { name: 'change', on: 'item', method: 'PATCH', path: CREDENTIAL, fills: true },
      {
        name: 'rotate',
        on: 'item',
        method: 'POST',
        path: `${CREDENTIAL}/rotate`,
        danger: true,
        schemas: newSecret,
        without: CONSTANT,
        // The keys of agents are no secret of the credential.
        when: ({ auth_scheme: scheme, ...item }) => scheme !== 'http_signature' && isOpen(item),
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
    name: 'connectors',
    group: 'vault',
    docs: 'guides/vault/connected-accounts',
    list: get(CONNECTORS),
    item: get(CONNECTOR),
    named: ['name'],
    columns: ['name', 'template', 'scopes', 'allowed_hosts', 'created_at'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: CONNECTORS,
        first: ['template', 'name', 'client_id', 'client_secret', 'scopes'],
      },
      {
        name: 'change',
        on: 'item',
        method: 'PATCH',
        path: CONNECTOR,
        fills: true,
        first: ['name', 'client_id', 'client_secret', 'scopes', 'allowed_hosts'],
        // It fills what a creation leaves out.
        without: ['template'],
      },
      { name: 'delete', on: 'item', method: 'DELETE', path: CONNECTOR, danger: true },
    ],
  },
  {
    name: 'connections',
    group: 'vault',
    docs: 'guides/vault/connected-accounts',
    list: get(CONNECTIONS),
    item: get(CONNECTION),
    named: ['account_label', 'connector'],
    columns: ['account_label', 'connector', 'user_id', 'agent_id', 'status', 'created_at'],
    actions: [
      {
        name: 'disconnect',
        on: 'item',
        method: 'DELETE',
        path: CONNECTION,
        danger: true,
        when: (item) => isPending(item) || isOpen(item),
      },
    ],
  },
  {
    name: 'approvals',
    group: 'vault',
    docs: 'guides/vault/approvals',
    list: get(APPROVALS),
    begins: { status: 'pending' },
    item: get(APPROVAL),
    named: ['agent_name'],
    columns: ['agent_name', 'label', 'method', 'host', 'path', 'tool', 'status', 'expires_at'],
    filters: ['status'],
    actions: [
      {
        name: 'approve',
        on: 'item',
        method: 'POST',
        path: `${APPROVAL}/approve`,
        when: isPending,
      },
      {
        name: 'deny',
        on: 'item',
        method: 'POST',
        path: `${APPROVAL}/deny`,
        danger: true,
        when: isPending,
      },
    ],
  },
  {
    name: 'egress',
    group: 'vault',
    docs: 'guides/vault/egress-proxy',
    list: get(CALLS),
    named: ['host', 'tool', 'id'],
    columns: [
      'ended_at',
      'agent_id',
      'credential_id',
      'host',
      'tool',
      'outcome',
      'status',
      'bytes',
      'budget_left',
    ],
    filters: ['agent_id', 'credential_id', 'host', 'outcome', 'since', 'until'],
    choices: { outcome: RELAY_ENDS },
    timed: true,
    live: true,
    actions: [
      {
        name: 'export',
        on: 'list',
        method: 'GET',
        path: `${CALLS}/export`,
        downloads: { type: 'text/csv', file: 'calls.csv' },
      },
      {
        name: 'exportlines',
        on: 'list',
        method: 'GET',
        path: `${CALLS}/export`,
        fixed: { format: 'jsonl' },
        downloads: { type: 'application/x-ndjson', file: 'calls.jsonl' },
      },
    ],
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
    actions: [
      {
        name: 'verify',
        on: 'list',
        method: 'GET',
        path: '/api/v1/audit-events/verify',
        shows: true,
      },
      {
        name: 'export',
        on: 'list',
        method: 'GET',
        path: '/api/v1/audit-events/export',
        downloads: { type: 'application/x-ndjson', file: 'audit-events.ndjson' },
      },
    ],
  },
]
