/** People, organizations and directories in the console. */
import { type ConsoleResource, get, type Item } from '../declaration.js'

const USERS = '/api/v1/tenant-users'
const USER = `${USERS}/{user_id}`
const SESSIONS = `${USER}/sessions`
const ORGANIZATIONS = '/api/v1/control-plane/organizations'
const ORGANIZATION = '/api/v1/organizations/{organization_id}'
const MEMBERS = `${ORGANIZATION}/members`
const TENANT = '/api/v1/tenants/{tenant_id}'
const ASSETS = '/api/v1/tenant/branding/assets'

const isStatus =
  (...wanted: readonly string[]) =>
  ({ status }: Item) =>
    wanted.includes(String(status))

export const identityResources: readonly ConsoleResource[] = [
  {
    name: 'people',
    group: 'people',
    list: get(USERS),
    item: get(USER),
    named: ['display_name', 'email'],
    columns: ['display_name', 'email', 'status', 'roles', 'last_login_at'],
    filters: ['q', 'status', 'role'],
    actions: [
      {
        name: 'invite',
        on: 'list',
        method: 'POST',
        path: USERS,
        first: ['email', 'display_name'],
      },
      { name: 'fixture', on: 'list', method: 'POST', path: '/api/v1/sandbox/fixture-users' },
      {
        name: 'change',
        on: 'item',
        method: 'PATCH',
        path: USER,
        fills: true,
        first: ['display_name', 'roles'],
      },
      {
        name: 'reinvite',
        on: 'item',
        method: 'POST',
        path: `${USER}/invitation`,
        when: isStatus('invited'),
      },
      {
        name: 'newpassword',
        on: 'item',
        method: 'POST',
        path: '/api/v1/sandbox/fixture-users/{user_id}/rotate-password',
        when: ({ fixture }) => fixture === true,
      },
      {
        name: 'resetpassword',
        on: 'item',
        method: 'POST',
        path: `${USER}/reset-password`,
        danger: true,
        when: isStatus('active', 'pre_provisioned'),
      },
      {
        name: 'resetfactors',
        on: 'item',
        method: 'POST',
        path: `${USER}/reset-factors`,
        danger: true,
        when: isStatus('active', 'pre_provisioned'),
      },
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${USER}/suspend`,
        danger: true,
        when: isStatus('active', 'invited', 'pre_provisioned'),
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${USER}/reactivate`,
        when: isStatus('suspended'),
      },
      {
        name: 'remove',
        on: 'item',
        method: 'DELETE',
        path: USER,
        danger: true,
        when: ({ status }) => status !== 'removed',
      },
    ],
    children: [
      {
        name: 'sessions',
        group: 'people',
        list: get(SESSIONS),
        named: ['user_agent'],
        columns: ['user_agent', 'address', 'acr', 'created_at', 'last_seen_at'],
        actions: [
          {
            name: 'revoke',
            on: 'item',
            method: 'DELETE',
            path: `${SESSIONS}/{session_id}`,
            danger: true,
          },
        ],
      },
    ],
  },
  {
    name: 'invitations',
    group: 'people',
    list: get(USERS),
    query: { status: 'invited' },
    item: get(USER),
    named: ['email'],
    columns: ['email', 'display_name', 'created_at'],
    actions: [
      {
        name: 'invite',
        on: 'list',
        method: 'POST',
        path: USERS,
        first: ['email', 'display_name'],
      },
      {
        name: 'reinvite',
        on: 'item',
        method: 'POST',
        path: `${USER}/invitation`,
        when: isStatus('invited'),
      },
      { name: 'withdraw', on: 'item', method: 'DELETE', path: USER, danger: true },
    ],
  },
  {
    name: 'organizations',
    group: 'people',
    list: get(ORGANIZATIONS),
    item: get(ORGANIZATION),
    named: ['name'],
    columns: ['name', 'slug', 'status', 'role', 'created_at'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: ORGANIZATIONS },
      { name: 'change', on: 'item', method: 'PATCH', path: ORGANIZATION, fills: true },
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${ORGANIZATION}/suspend`,
        danger: true,
        when: isStatus('active'),
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${ORGANIZATION}/reactivate`,
        when: isStatus('suspended'),
      },
    ],
    children: [
      {
        name: 'members',
        group: 'people',
        list: get(MEMBERS),
        named: ['display_name', 'email', 'id'],
        columns: ['display_name', 'email', 'kind', 'role', 'status'],
        actions: [
          { name: 'add', on: 'list', method: 'POST', path: MEMBERS },
          {
            name: 'change',
            on: 'item',
            method: 'PATCH',
            path: `${MEMBERS}/{member_id}`,
            fills: true,
          },
          {
            name: 'remove',
            on: 'item',
            method: 'DELETE',
            path: `${MEMBERS}/{member_id}`,
            danger: true,
          },
        ],
      },
      {
        name: 'tenants',
        group: 'people',
        list: get(`${ORGANIZATIONS}/{organization_id}/tenants`),
        item: get(TENANT),
        named: ['name'],
        columns: ['name', 'slug', 'environment', 'status', 'created_at'],
        actions: [
          {
            name: 'create',
            on: 'list',
            method: 'POST',
            path: `${ORGANIZATIONS}/{organization_id}/tenants`,
          },
          { name: 'change', on: 'item', method: 'PATCH', path: TENANT, fills: true },
          {
            name: 'suspend',
            on: 'item',
            method: 'POST',
            path: `${TENANT}/suspend`,
            danger: true,
            when: isStatus('active'),
          },
          {
            name: 'reactivate',
            on: 'item',
            method: 'POST',
            path: `${TENANT}/reactivate`,
            when: isStatus('suspended'),
          },
        ],
      },
    ],
  },
  {
    name: 'scim-tokens',
    group: 'people',
    list: get('/api/v1/scim/tokens'),
    named: ['description', 'id'],
    columns: ['description', 'roles', 'created_at', 'expires_at'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: '/api/v1/scim/tokens' },
      {
        name: 'revoke',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/scim/tokens/{token_id}',
        danger: true,
      },
    ],
  },
  {
    name: 'identity-providers',
    group: 'tenant',
    feature: 'sso.enterprise',
    list: get('/api/v1/sso/providers'),
    item: get('/api/v1/sso/providers/{id}'),
    named: ['name'],
    columns: ['name', 'issuer', 'active', 'provision'],
    actions: [
      {
        name: 'create',
        on: 'list',
        method: 'POST',
        path: '/api/v1/sso/providers',
        first: ['name', 'issuer', 'client_id', 'client_secret'],
      },
      {
        name: 'change',
        on: 'item',
        method: 'PATCH',
        path: '/api/v1/sso/providers/{id}',
        fills: true,
        first: ['name', 'issuer', 'client_id', 'client_secret', 'active', 'provision'],
      },
      {
        name: 'delete',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/sso/providers/{id}',
        danger: true,
      },
    ],
  },
  {
    name: 'domains',
    group: 'tenant',
    feature: 'sso.verified_domains',
    list: get('/api/v1/organization/domains'),
    item: get('/api/v1/organization/domains/{id}'),
    named: ['domain'],
    columns: ['domain', 'status', 'auto_join', 'verified_at'],
    actions: [
      { name: 'add', on: 'list', method: 'POST', path: '/api/v1/organization/domains' },
      {
        name: 'verify',
        on: 'item',
        method: 'POST',
        path: '/api/v1/organization/domains/{id}/verify',
        when: ({ verified_at: at }) => at === null || at === undefined,
      },
      {
        name: 'change',
        on: 'item',
        method: 'PATCH',
        path: '/api/v1/organization/domains/{id}',
        fills: true,
      },
      {
        name: 'delete',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/organization/domains/{id}',
        danger: true,
      },
    ],
  },
  {
    name: 'assets',
    group: 'tenant',
    list: get(ASSETS),
    item: get(`${ASSETS}/{kind}`),
    id: 'kind',
    named: ['kind'],
    columns: ['kind', 'url', 'width', 'height', 'created_at'],
    counted: false,
    actions: [
      {
        name: 'upload',
        on: 'item',
        method: 'PUT',
        path: `${ASSETS}/{kind}`,
        upload: ['image/png', 'image/jpeg', 'image/webp'],
      },
      {
        name: 'remove',
        on: 'item',
        method: 'DELETE',
        path: `${ASSETS}/{kind}`,
        danger: true,
        when: ({ url }) => url !== null,
      },
    ],
  },
  {
    name: 'settings',
    group: 'tenant',
    single: get('/api/v1/tenant/settings'),
    named: [],
    columns: [],
    extra: 'console-branding',
    actions: [
      {
        name: 'change',
        on: 'list',
        method: 'PATCH',
        path: '/api/v1/tenant/settings',
        fills: true,
        previews: true,
      },
      {
        name: 'activate',
        on: 'list',
        method: 'POST',
        path: '/api/v1/tenant/activate',
        danger: true,
      },
    ],
  },
]
