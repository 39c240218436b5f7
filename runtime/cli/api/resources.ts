/**
 * `svc users`, `apps`, `agents`, `webhooks` and `vault`: the operations of the API that administrators use daily, under short
 * names. A row of the table below is a command.
 */
import type { Command } from 'commander'
import { serviceAccess } from '../service-access.js'
import { call, type CallAccess, guarded } from './api.js'
import { callText } from './table.js'

type Resource = {
  readonly words: string
  /** Members that a list shows, in this order. */
  readonly columns: readonly string[]
  /** Command, operation, what it does. */
  readonly commands: readonly (readonly [name: string, operation: string, words: string])[]
}

export const RESOURCES = {
  users: {
    words: 'the users of a tenant',
    columns: ['id', 'email', 'display_name', 'status', 'roles', 'last_login_at'],
    commands: [
      ['list', 'listTenantUsers', 'list users: q=ann, status=active, role=owner, limit=200'],
      ['show', 'readTenantUser', 'show a user'],
      ['invite', 'createTenantUser', 'invite a user: email=ann@example.com'],
      ['update', 'updateTenantUser', `change a user: name=Ann, 'roles=["admin"]'`],
      ['suspend', 'suspendTenantUser', 'suspend a user; their sessions end'],
      ['reactivate', 'reactivateTenantUser', 'lift a suspension'],
      ['remove', 'removeTenantUser', 'remove a user from the tenant'],
      ['reset-password', 'resetTenantUserPassword', 'mail a link that sets a new password'],
      ['reset-factors', 'resetTenantUserFactors', 'remove the second factors of a user'],
      ['sessions', 'listTenantUserSessions', 'list where a user is signed in'],
    ],
  },
  apps: {
    words: 'the applications of a tenant',
    columns: ['client_id', 'name', 'client_type', 'status', 'grant_types', 'created_at'],
    commands: [
      ['list', 'listApplications', 'list applications'],
      ['show', 'getApplication', 'show an application'],
      ['create', 'createApplication', 'create an application: name=Shop'],
      ['replace', 'replaceApplication', 'replace the members of an application'],
      ['remove', 'deleteApplication', 'delete an application'],
      ['rotate-secret', 'rotateApplicationSecret', 'replace the client secret and print it'],
    ],
  },
  agents: {
    words: 'the agents of a tenant (svc agent acts as one)',
    columns: ['id', 'name', 'status', 'did', 'scopes', 'last_authenticated_at'],
    commands: [
      ['list', 'listAgents', 'list agents'],
      ['show', 'readAgent', 'show an agent'],
      ['update', 'updateAgent', `change the scopes of an agent: 'scopes=["openid"]'`],
      ['suspend', 'suspendAgent', 'suspend an agent; its sessions and tokens end'],
      ['activate', 'activateAgent', 'lift a suspension'],
      ['remove', 'deleteAgent', 'delete an agent'],
      ['delegations', 'listDelegations', 'list what people delegated to agents'],
      ['revoke-delegation', 'revokeDelegation', 'revoke a delegation'],
    ],
  },
  webhooks: {
    words: 'the webhooks of a tenant, and tools for developing a receiver',
    columns: ['id', 'url', 'active', 'event_types', 'created_at'],
    commands: [
      ['list', 'listWebhooks', 'list subscriptions'],
      ['show', 'getWebhook', 'show a subscription'],
      ['create', 'createWebhook', `create a subscription: url=…, 'event_types=["auth.*"]'`],
      ['replace', 'replaceWebhook', 'replace the members of a subscription'],
      ['remove', 'deleteWebhook', 'delete a subscription'],
      ['test', 'testWebhook', 'send a test delivery'],
      ['deliveries', 'listWebhookDeliveries', 'list the deliveries of a subscription'],
      ['replay', 'replayWebhookDelivery', 'replay a delivery: its subscription, then its id'],
      ['rotate-secret', 'rotateWebhookSecret', 'replace the signing secret and print it'],
    ],
  },
  vault: {
    words: 'the credentials of the vault',
    columns: ['id', 'label', 'provider', 'credential_type', 'status', 'last_used_at'],
    commands: [
      ['list', 'listVaultCredentials', 'list credentials'],
      ['show', 'getVaultCredential', 'show a credential, without its secret'],
      ['create', 'createVaultCredential', 'create a credential: --body @credential.json'],
      ['update', 'updateVaultCredential', 'change label, hosts or metadata'],
      ['rotate', 'rotateVaultCredential', 'replace the secret: --body @secret.json'],
      ['revoke', 'revokeVaultCredential', 'revoke a credential with its grants and leases'],
      ['grants', 'listVaultGrants', 'list who may use a credential'],
      ['grant', 'createVaultGrant', 'grant a credential: grantee_type=agent, grantee_id=…'],
      ['revoke-grant', 'revokeVaultGrant', 'revoke a grant'],
      ['leases', 'listVaultLeases', 'list the leases of a credential'],
      ['revoke-lease', 'revokeVaultLease', 'revoke a lease'],
    ],
  },
} as const satisfies Readonly<Record<string, Resource>>

export type ResourceName = keyof typeof RESOURCES

/** Adds a resource with its commands to the program. */
export function resourceCommands(program: Command, name: ResourceName): Command {
  const { words, columns, commands }: Resource = RESOURCES[name]
  const parent = program.command(name).description(words)
  for (const [command, operation, does] of commands) {
    serviceAccess(parent.command(command))
      .argument(
        '[words...]',
        'ids of the path in their order, and name=value: a filter or a member',
      )
      .description(does)
      .option('--body <json>', 'the body; @file reads it from a file, @- from stdin')
      .option('--json', 'print status, headers and body as one JSON document')
      .action((given: string[], options: CallAccess & { readonly body?: string }) => {
        const ids = given.filter((word) => !isPair(word))
        const pairs = given.filter(isPair)
        const asked = { ...options, name: operation, ids, pairs, param: [], field: [] }
        return guarded(`${name} ${command}`, () =>
          call(asked, ({ body, headers }, { summary }) =>
            callText(body, {
              columns,
              isCut: process.stdout.isTTY === true,
              done: `${summary}: done`,
              link: headers['link'],
            }),
          ),
        )
      })
  }
  return parent
}

const isPair = (word: string) => /^[A-Za-z_][\w.]*=/.test(word)
