/** The `svc` command: arguments, environment and signals in, exit code out. */
import { Command } from 'commander'
import { announceTarget } from './process/target.js'
import { INTERFACE_VERSION } from '../gateway/request/interface-version.js'

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  serve: async () => (await import('./cli/serve.js')).serveCommand,
  init: async () => (await import('./cli/init.js')).initCommand,
  migrate: async () => (await import('./cli/migrate.js')).migrateCommand,
  backup: async () => (await import('./cli/backup.js')).backupCommand,
  restore: async () => (await import('./cli/backup.js')).restoreCommand,
  health: async () => (await import('./cli/health.js')).healthCommand,
  config: async () => (await import('./cli/config.js')).configCommand,
  kms: async () => (await import('./cli/kms.js')).kmsCommand,
  doctor: async () => (await import('./cli/doctor/doctor.js')).doctorCommand,
  trace: async () => (await import('./cli/trace.js')).traceCommand,
  keys: async () => (await import('./cli/keys.js')).keysCommand,
  audit: async () => (await import('./cli/audit.js')).auditCommand,
  admin: async () => (await import('./cli/admin.js')).adminCommand,
  operator: async () => (await import('./cli/operator.js')).operatorCommand,
  webhooks: async () => (await import('./cli/webhooks/webhooks.js')).webhooksCommand,
  agent: async () => (await import('./cli/agent/agent.js')).agentCommand,
  api: async () => (await import('./cli/api/api.js')).apiCommand,
  apply: async () => (await import('./cli/apply/apply.js')).applyCommand,
  run: async () => (await import('./cli/run.js')).runCommand,
  egress: async () => (await import('./cli/egress.js')).egressCommand,
  seed: async () => (await import('./cli/seed/seed.js')).seedCommand,
  tour: async () => (await import('./cli/tour/tour.js')).tourCommand,
}

const program = new Command('svc')
  .description('Identity and access for humans and software agents')
  .version(INTERFACE_VERSION, '-V, --version', 'the version of the public interface')
  .showHelpAfterError('(add --help for the usage)')
  .enablePositionalOptions()
  .hook('preAction', (_program, command) => announceTarget(command))

// Each command is loaded on demand: `svc agent token` should not wait until the modules of a server
// are loaded.
const [, , named = ''] = process.argv
const wanted = Object.hasOwn(COMMANDS, named) ? [COMMANDS[named]!] : Object.values(COMMANDS)
for (const load of wanted) (await load())(program)

await program.parseAsync(process.argv)
