/** The `svc` program: its commands and the options that all of them share. */
import { Command } from 'commander'
import { INTERFACE_VERSION, RELEASE_VERSION } from '../../gateway/request/interface-version.js'
import type { ResourceName } from './api/resources.js'
import { beginOutput, endOutput, offerOutput } from './output.js'
import { refuseForeignToken } from './service-access.js'
import { announceTarget } from './target.js'

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  serve: async () => (await import('./serve.js')).serveCommand,
  init: async () => (await import('./init.js')).initCommand,
  migrate: async () => (await import('./migrate.js')).migrateCommand,
  backup: async () => (await import('./backup.js')).backupCommand,
  restore: async () => (await import('./backup.js')).restoreCommand,
  health: async () => (await import('./health.js')).healthCommand,
  config: async () => (await import('./config.js')).configCommand,
  kms: async () => (await import('./kms.js')).kmsCommand,
  doctor: async () => (await import('./doctor/doctor.js')).doctorCommand,
  trace: async () => (await import('./trace.js')).traceCommand,
  keys: async () => (await import('./keys.js')).keysCommand,
  audit: async () => (await import('./audit.js')).auditCommand,
  admin: async () => (await import('./admin.js')).adminCommand,
  operator: async () => (await import('./operator.js')).operatorCommand,
  webhooks: async () => (await import('./webhooks/webhooks.js')).webhooksCommand,
  agent: async () => (await import('./agent/agent.js')).agentCommand,
  users: () => resource('users'),
  apps: () => resource('apps'),
  agents: () => resource('agents'),
  vault: () => resource('vault'),
  login: async () => (await import('./login.js')).loginCommand,
  logout: async () => (await import('./login.js')).logoutCommand,
  api: async () => (await import('./api/api.js')).apiCommand,
  apply: async () => (await import('./apply/apply.js')).applyCommand,
  run: async () => (await import('./run.js')).runCommand,
  egress: async () => (await import('./egress.js')).egressCommand,
  ssh: async () => (await import('./ssh/ssh.js')).sshCommand,
  seed: async () => (await import('./seed/seed.js')).seedCommand,
  completion: async () => (await import('./completion.js')).completionCommand,
  tour: async () => (await import('./tour/tour.js')).tourCommand,
}

async function resource(name: ResourceName): Promise<(program: Command) => void> {
  const { resourceCommands } = await import('./api/resources.js')
  return (program) => resourceCommands(program, name)
}

/**
 * Each command is loaded on demand: `svc agent token` should not wait until the modules of a server are loaded.
 * @param named the first argument of the command line. Another word loads all commands.
 */
export async function svcProgram(named: string): Promise<Command> {
  const program = new Command('svc')
    .description('Identity and access for humans and software agents')
    .version(
      `${RELEASE_VERSION} (interface ${INTERFACE_VERSION})`,
      '-V, --version',
      'the version of svc, and of its public interface',
    )
    .showHelpAfterError('(add --help for the usage)')
    .enablePositionalOptions()
    .hook('preAction', async (_program, command) => {
      refuseForeignToken(command)
      await announceTarget(command)
      beginOutput(command)
    })
    .hook('postAction', (_program, command) => endOutput(command))
  const wanted = Object.hasOwn(COMMANDS, named) ? [COMMANDS[named]!] : Object.values(COMMANDS)
  for (const load of wanted) (await load())(program)
  offerOutput(program)
  return program
}
