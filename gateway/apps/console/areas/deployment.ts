/** What operators of the deployment see in the console. */
import { type ConsoleResource, get } from '../declaration.js'

const ACCOUNTS = '/api/v1/accounts'
const ACCOUNT = `${ACCOUNTS}/{account_id}`

const ORGANIZATION = '/api/v1/organizations/{organization_id}'
const TENANT = '/api/v1/tenants/{tenant_id}'

export const deploymentResources: readonly ConsoleResource[] = [
  {
    name: 'all-organizations',
    group: 'deployment',
    docs: 'guides/operations/console',
    list: get('/api/v1/organizations'),
    item: get(ORGANIZATION),
    named: ['name'],
    columns: ['name', 'slug', 'status', 'created_at'],
    actions: [
      { name: 'change', on: 'item', method: 'PATCH', path: ORGANIZATION, fills: true },
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${ORGANIZATION}/suspend`,
        danger: true,
        when: ({ status }) => status === 'active',
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${ORGANIZATION}/reactivate`,
        when: ({ status }) => status === 'suspended',
      },
    ],
    children: [
      {
        name: 'members',
        group: 'deployment',
        docs: 'guides/identity/organizations-tenants-users',
        list: get(`${ORGANIZATION}/members`),
        named: ['display_name', 'email', 'id'],
        columns: ['display_name', 'email', 'kind', 'role', 'status'],
      },
    ],
  },
  {
    name: 'all-tenants',
    group: 'deployment',
    docs: 'guides/operations/console',
    list: get('/api/v1/tenants'),
    item: get(TENANT),
    named: ['name'],
    columns: ['name', 'slug', 'environment', 'status', 'created_at'],
    actions: [
      { name: 'change', on: 'item', method: 'PATCH', path: TENANT, fills: true },
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${TENANT}/suspend`,
        danger: true,
        when: ({ status }) => status === 'active',
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${TENANT}/reactivate`,
        when: ({ status }) => status === 'suspended',
      },
    ],
  },
  {
    name: 'accounts',
    group: 'deployment',
    docs: 'guides/operations/console',
    list: get(ACCOUNTS),
    item: get(ACCOUNT),
    named: ['email'],
    columns: ['email', 'status', 'created_at'],
    filters: ['email'],
    asks: 'email',
    actions: [
      {
        name: 'suspend',
        on: 'item',
        method: 'POST',
        path: `${ACCOUNT}/suspend`,
        danger: true,
        when: ({ status }) => status === 'active',
      },
      {
        name: 'reactivate',
        on: 'item',
        method: 'POST',
        path: `${ACCOUNT}/reactivate`,
        when: ({ status }) => status === 'suspended',
      },
    ],
  },
  {
    name: 'planes',
    group: 'deployment',
    docs: 'reference/planes',
    list: get('/api/v1/deployment/planes'),
    id: 'name',
    named: ['name'],
    columns: ['name', 'here', 'actors'],
    opens: false,
  },
  {
    name: 'actors',
    group: 'deployment',
    docs: 'concepts/actor-runtime',
    list: get('/api/v1/deployment/actors'),
    id: 'name',
    named: ['name'],
    columns: ['name', 'place', 'ready', 'waiting', 'running', 'capacity', 'completed', 'failed'],
    live: true,
  },
  {
    name: 'signing-keys',
    group: 'deployment',
    docs: 'guides/oauth/signing-keys',
    list: get('/.well-known/jwks.json'),
    within: 'keys',
    needs: ['signing_keys:manage'],
    id: 'kid',
    named: ['kid'],
    columns: ['kid', 'alg', 'kty', 'use'],
    opens: false,
    actions: [
      {
        name: 'rotate',
        on: 'list',
        method: 'POST',
        path: '/api/v1/signing-keys/rotate',
        danger: true,
      },
    ],
  },
  {
    name: 'billing-plans',
    group: 'deployment',
    docs: 'guides/operations/plans-and-billing',
    needs: ['deployment:manage'],
    list: get('/api/v1/billing/plans'),
    item: get('/api/v1/billing/plans/{plan_id}'),
    named: ['name'],
    columns: ['name', 'features', 'max_members', 'max_tenants'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: '/api/v1/billing/plans' },
      {
        name: 'change',
        on: 'item',
        method: 'PUT',
        path: '/api/v1/billing/plans/{plan_id}',
        fills: true,
      },
      {
        name: 'delete',
        on: 'item',
        method: 'DELETE',
        path: '/api/v1/billing/plans/{plan_id}',
        danger: true,
      },
    ],
  },
]
