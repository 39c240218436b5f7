/** Accounts as operators of the deployment see and suspend them. */
import { z } from 'zod'
import { organizations } from '../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../request/caller.js'
import { type Route, reply, route } from '../../route.js'
import { deployment } from './organization-records.js'
import {
  Account,
  AccountId,
  accountFound,
  accountJson,
  unknownAccount,
} from './organization-shapes.js'
import { SoughtEmail } from './user-shapes.js'

const ACCOUNTS = '/api/v1/accounts'
const ACCOUNT = `${ACCOUNTS}/{account_id}`
const facts = { tags: ['Control plane'], exposure: 'internal', security: deployment } as const
const ACCESS =
  'An account is one person, in any number of tenants. `svc operator appoint --scope deployment:manage` ' +
  'grants the scope to an agent of the control plane. No role includes it.'

export const accountOperatorRoutes: readonly Route[] = [
  route(organizations, 'findAccounts', {
    ...facts,
    method: 'GET',
    path: ACCOUNTS,
    summary: 'Find the account of an email address',
    description: `${ACCESS} The list has at most one account.`,
    query: z.object({ email: SoughtEmail }),
    message: ({ query }) => ({ email: query.email }),
    replies: {
      listed: reply(200, z.array(Account), ({ accounts }) => accounts.map(accountJson)),
    },
  }),
  route(organizations, 'readAccount', {
    ...facts,
    method: 'GET',
    path: ACCOUNT,
    summary: 'Read an account',
    description: ACCESS,
    params: AccountId,
    message: ({ params }) => ({ accountId: params.account_id }),
    replies: { found: accountFound, unknown_account: unknownAccount },
  }),
  ...(
    [
      ['suspend', 'suspendAccount'],
      ['reactivate', 'reactivateAccount'],
    ] as const
  ).map(([verb, name]) =>
    route(organizations, name, {
      ...facts,
      method: 'POST',
      path: `${ACCOUNT}/${verb}`,
      summary: `${verb === 'suspend' ? 'Suspend' : 'Reactivate'} an account in all tenants`,
      description:
        'Sessions, tokens, sign-ins and delegations of the person are refused in every process within a ' +
        'second, and work again after reactivation. Repeating the request changes nothing.',
      params: AccountId,
      message: (request) => ({
        caller: callerOf(request),
        id: request.params.account_id,
      }),
      replies: { found: accountFound, unknown_account: unknownAccount },
    }),
  ),
]
