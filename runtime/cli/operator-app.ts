/** `svc operator app`: applications of the control plane, such as the collector of metrics. */
import type { Command } from 'commander'
import { createOperatorApplication } from '../../actors/oauth/clients/registered/operator-application.js'
import { OPERATOR_APPLICATION_SCOPES, parseScope } from '../../actors/domain/scopes.js'
import { systemClock } from '../kernel/clock.js'
import { systemRandom } from '../kernel/random.js'
import type { DatabaseHouse } from './key-tools.js'
import { withTarget } from './target.js'

type Wishes = { name: string; scope: readonly string[]; json?: boolean }

const NAME = /^\P{Cc}{1,120}$/u

/** Adds `app` to `operator`. `withTools` runs work on the database and prints its result. */
export function operatorAppCommand(
  operator: Command,
  withTools: (work: (resources: DatabaseHouse) => Promise<string>) => Promise<void>,
): void {
  const known = OPERATOR_APPLICATION_SCOPES.join(' ')
  operator
    .command('app')
    .description('applications of the control plane')
    .command('create')
    .description('create an application that gets tokens by client_credentials')
    .requiredOption('--name <name>', 'name of the application')
    .requiredOption(
      '--scope <scope>',
      `its scope: ${known}; may be repeated`,
      (scope: string, before: readonly string[] = []) => [...before, ...parseScope(scope)],
    )
    .option('--json', 'as JSON')
    .action((wishes: Wishes) => withTools((resources) => create(resources, wishes)))
}

async function create({ database }: DatabaseHouse, wishes: Wishes): Promise<string> {
  const { name, json = false } = wishes
  const scopes = [...new Set(wishes.scope)]
  if (!NAME.test(name))
    throw new Error('a name must have 1 to 120 characters and no control characters')
  if (scopes.length === 0) throw new Error('--scope is empty')
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  const made = await database.system((tx) => createOperatorApplication(tx, deps, { name, scopes }))
  if (made.tag === 'no_control_plane')
    throw new Error('the database has no control plane yet: start the service once')
  if (made.tag === 'unknown_scope') {
    const known = OPERATOR_APPLICATION_SCOPES.join(' ')
    throw new Error(`${made.scope} is not a scope of such an application: ${known}`)
  }
  const { clientId, clientSecret } = made
  if (json)
    return JSON.stringify(
      withTarget({ client_id: clientId, client_secret: clientSecret, scopes }),
      null,
      2,
    )
  return [
    `client_id      ${clientId}`,
    `client_secret  ${clientSecret}`,
    `scopes         ${scopes.join(' ')}`,
    '',
    'The secret is not shown again.',
  ].join('\n')
}
