/**
 * `svc operator`: the first human operator, by a link that works once, and agents that administer
 * the deployment.
 */
import { type Command, Option } from 'commander'
import {
  appointPerson,
  type PersonAppointment,
} from '../../actors/identity/sign-in/operators/appoint-person.js'
import {
  createFirstOperator,
  inviteDeploymentOperator,
} from '../../actors/identity/users/organizations/first-operator.js'
import { APPOINTED_SCOPES, type AppointedScope } from '../../actors/domain/scopes.js'
import type { Environment } from '../../actors/domain/tenants/tenancy.js'
import { type Appointment, appoint } from '../../actors/agents/agents/management/appointment.js'
import { systemClock } from '../kernel/clock.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { systemRandom } from '../kernel/random.js'
import { errorText } from '../process/error-text.js'
import { type DatabaseHouse, openDatabaseTools } from './key-tools.js'
import { operatorAppCommand } from './operator-app.js'
import { withTarget } from './target.js'
import { type CommandHost, lineHost } from './output.js'

const NAME = /^\P{Cc}{1,120}$/u

interface OperatorCommandHost extends CommandHost {
  readonly open: () => Promise<DatabaseHouse>
}

type AppointmentWishes = { json?: boolean; scope: readonly AppointedScope[] }
type Wishes = {
  organization: string
  environment: Environment
  controlPlane?: boolean
  json?: boolean
}

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
    .option(
      '--control-plane',
      'instead: a link for a person who administers the deployment in the console',
    )
    .option('--json', 'as JSON')
    .action((wishes: Wishes) =>
      withTools(host, (resources) => {
        if (!NAME.test(wishes.organization)) {
          throw new Error('a name must have 1 to 120 characters and no control characters')
        }
        return wishes.controlPlane === true ? invite(resources, wishes) : create(resources, wishes)
      }),
    )
  operatorAppCommand(operator, (work) => withTools(host, work))
  for (const [name, to, description, scopes] of [
    [
      'appoint',
      'appointed',
      'allow an agent of the control plane, or a person, to administer the deployment',
      ['signing_keys:manage'],
    ],
    [
      'dismiss',
      'dismissed',
      'revoke that permission; the sessions in the control plane end immediately',
      [...APPOINTED_SCOPES],
    ],
  ] as const) {
    operator
      .command(name)
      .argument(
        '<who>',
        'an agent whose home tenant is the control plane, or the email of an account',
      )
      .description(description)
      .addOption(
        new Option('--scope <scope...>', 'what the agent or the person may do')
          .choices(APPOINTED_SCOPES)
          .default(scopes),
      )
      .option('--json', 'as JSON')
      .action((who: string, { json = false, scope: scopes }: AppointmentWishes) =>
        withTools(host, (resources) =>
          who.includes('@')
            ? changePerson(resources, { email: who, to, scopes }, json)
            : change(resources, { agentId: who, to, scopes }, json),
        ),
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
  const outcome = await database.system((tx) => appoint(tx, deps, appointment))
  const { agentId, to } = appointment
  if (outcome.tag === 'unknown_agent') {
    throw new Error(`${agentId} is not an agent of the control plane`)
  }
  const scopes = appointment.scopes.join(' ')
  if (json)
    return JSON.stringify(withTarget({ agent_id: agentId, name: outcome.name, status: to, scopes }))
  return to === 'appointed'
    ? `${outcome.name} may have ${scopes} from its next control-plane login.`
    : `${outcome.name} may no longer have ${scopes}.`
}

const WHY_NOT = {
  unknown_account: 'no active account has this address',
  unverified: 'the address of the account is not verified: its owner must confirm it first',
  suspended: 'the control plane has suspended this user',
  no_control_plane: 'the database has no control plane yet: start the service once',
} as const

async function changePerson(
  { database }: DatabaseHouse,
  appointment: PersonAppointment,
  json: boolean,
): Promise<string> {
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  // Accounts belong to no tenant.
  const { tag } = await database.system((tx) => appointPerson(tx, deps, appointment))
  const { email, to } = appointment
  if (tag !== 'appointed' && tag !== 'dismissed') throw new Error(`${email}: ${WHY_NOT[tag]}`)
  const scopes = appointment.scopes.join(' ')
  if (json) return JSON.stringify(withTarget({ email, status: to, scopes }))
  return to === 'appointed'
    ? `${email} may use ${scopes} in the console of the control plane.`
    : `${email} may no longer use ${scopes}.`
}

async function invite(
  { database, settings }: DatabaseHouse,
  { organization: name, json = false }: Wishes,
): Promise<string> {
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  const wish = { name, scopes: APPOINTED_SCOPES }
  const made = await database.system((tx) => inviteDeploymentOperator(tx, deps, wish))
  if ('tag' in made) throw new Error(WHY_NOT.no_control_plane)
  const url = `${settings.oidc.issuer_url}/auth/invites/${made.inviteToken}`
  const expiresAt = made.expiresAt.toISOString()
  if (json)
    return JSON.stringify(
      withTarget({ url, expires_at: expiresAt, scopes: APPOINTED_SCOPES }),
      null,
      2,
    )
  return [
    'Open this link to choose a password and administer the deployment. It works once:',
    '',
    `  ${url}`,
    '',
    `Until ${expiresAt}.`,
  ].join('\n')
}

async function create({ database, settings }: DatabaseHouse, wishes: Wishes): Promise<string> {
  const { organization: name, environment, json = false } = wishes
  const deps = { clock: systemClock, random: systemRandom(systemClock) }
  // Crosses tenants: it creates the organization, the tenant and the invite in one transaction.
  const made = await database.system((tx) => createFirstOperator(tx, deps, { name, environment }))
  const url = `${settings.oidc.issuer_url}/auth/invites/${made.inviteToken}`
  const expiresAt = made.expiresAt.toISOString()
  if (json) {
    return JSON.stringify(
      withTarget({
        url,
        expires_at: expiresAt,
        organization_id: made.organizationId,
        organization_slug: made.organizationSlug,
        tenant_id: made.tenantId,
        tenant_slug: made.tenantSlug,
      }),
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
      }),
    ...lineHost,
  }
}
