/** What operators of the deployment see in the console. */
import { type ConsoleResource, get } from '../declaration.js'

const ACCOUNTS = '/api/v1/accounts'
const ACCOUNT = `${ACCOUNTS}/{account_id}`

export const deploymentResources: readonly ConsoleResource[] = [
  {
    name: 'accounts',
    group: 'deployment',
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
    name: 'signing-keys',
    group: 'deployment',
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
]
