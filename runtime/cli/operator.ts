/**
 * `svc operator`: the first human operator, by a link that works once, and agents that administer
 * the deployment.
 */
import { type Command, Option } from 'commander'
import { createFirstOperator } from '../../actors/identity/organizations/first-operator.js'
import { APPOINTED_SCOPES, type AppointedScope } from '../../actors/domain/scopes.js'
import type { Environment } from '../../actors/domain/tenants/tenancy.js'
import { type Appointment, appoint } from '../../actors/agents/management/appointment.js'
import { systemClock } from '../kernel/clock.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { systemRandom } from '../kernel/random.js'
import { errorText } from '../process/error-text.js'
import { type DatabaseHouse, openDatabaseTools } from './key-tools.js'
import { operatorAppCommand } from './operator-app.js'

const NAME = /^\P{Cc}{1,120}$/u

/** What the command needs of the process. */
export interface OperatorCommandHost {
  readonly open: () => Promise<DatabaseHouse>
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly exitWith: (code: number) => void
}

type AppointmentWishes = { json?: boolean; scope: readonly AppointedScope[] }
type Wishes = { organization: string; environment: Environment; json?: boolean }

/** Adds `operator` with its sub-commands to the program. */
export function operatorCommand(program: Command, host: OperatorCommandHost = processHost()): void {
  const operator = program.command('operator').description('operators of this deployment')
  operator
    .command('create')
    .description('create an organization and a one-time sign-in link for its owner')
    .option('--organization <name>', 'name of the organization', 'Operators')
    .addOption(
      new Option('--environment <kind>', 'kind of its first environment')
        .choices(['sandbox', 'production'])
        .default('sandbox'),
    )
    .option('--json', 'as JSON')
    .action((wishes: Wishes) =>
      withTools(host, (resources) => {
        if (!NAME.test(wishes.organization)) {
          throw new Error('a name must have 1 to 120 characters and no control characters')
        }
        return create(resources, wishes)
      }),
    )
  operatorAppCommand(operator, (work) => withTools(host, work))
  for (const [name, to, description, scopes] of [
    [
      'appoint',
      'appointed',
      'allow an agent of the control plane to administer the deployment',
      ['signing_keys:manage'],
    ],
    [
      'dismiss',
      'dismissed',
      "revoke that permission; the agent's sessions end at once",
      [...APPOINTED_SCOPES],
    ],
  ] as const) {
    operator
      .command(name)
      .argument('<agent_id>', 'an agent whose home tenant is the control plane')
      .description(description)
      .addOption(
        new Option('--scope <scope...>', 'what the agent may do')
          .choices(APPOINTED_SCOPES)
          .default(scopes),
      )
      .option('--json', 'as JSON')
      .action((agentId: string, { json = false, scope }: AppointmentWishes) =>
        withTools(host, (resources) => change(resources, { agentId, to, scopes: scope }, json)),
      )
  }
}

async function withTools(
  host: OperatorCommandHost,
  work: (resources: DatabaseHouse) => Promise<string>,
): Promise<void> {
  try {
    const resources = await host.open()
    try {
      host.out(await work(resources))
    } finally {
      await resources.close()
    }
  } catch (error) {
    host.err(`svc operator: ${errorText(error)}`)
    host.exitWith(1)
  }
}

async function change(
  { database }: DatabaseHouse,
  appointment: Appointment,
  json: boolean,
): Promise<string> {
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  // The agent's sessions may belong to any tenant.
  const outcome = await database.system((tx) => appoint(tx, appointment, deps))
  const { agentId, to } = appointment
  if (outcome.tag === 'unknown_agent') {
    throw new Error(`${agentId} is not an agent of the control plane`)
  }
  const scopes = appointment.scopes.join(' ')
  if (json) return JSON.stringify({ agent_id: agentId, name: outcome.name, status: to, scopes })
  return to === 'appointed'
    ? `${outcome.name} may have ${scopes} from its next control-plane login.`
    : `${outcome.name} may no longer have ${scopes}.`
}

async function create({ database, settings }: DatabaseHouse, wishes: Wishes): Promise<string> {
  const { organization: name, environment, json = false } = wishes
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  // Crosses tenants: it creates the organization, the tenant and the invite in one transaction.
  const made = await database.system((tx) => createFirstOperator(tx, { name, environment }, deps))
  const url = `${settings.oidc.issuer_url}/auth/invites/${made.inviteToken}`
  const expiresAt = made.expiresAt.toISOString()
  if (json) {
    return JSON.stringify(
      {
        url,
        expires_at: expiresAt,
        organization_id: made.organizationId,
        organization_slug: made.organizationSlug,
        tenant_id: made.tenantId,
        tenant_slug: made.tenantSlug,
      },
      null,
      2,
    )
  }
  return [
    `Organization ${made.organizationSlug}, environment ${made.tenantSlug}.`,
    'Open this link to choose a password and become its owner. It works once:',
    '',
    `  ${url}`,
    '',
    `Until ${expiresAt}.`,
  ].join('\n')
}

function processHost(): OperatorCommandHost {
  return {
    open: () =>
      openDatabaseTools({
        environment: readEnvironment(),
        cwd: process.cwd(),
        uid: process.getuid?.(),
        say: (line) => void process.stderr.write(`${line}\n`),
      }),
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    exitWith: (code) => {
      process.exitCode = code
    },
  }
}
