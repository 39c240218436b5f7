/** The `svc` command: arguments, environment and signals in, exit code out. */
import { Command } from 'commander'
import { agentCommand } from './cli/agent.js'
import { auditCommand } from './cli/audit.js'
import { configCommand } from './cli/config.js'
import { egressCommand } from './cli/egress.js'
import { keysCommand } from './cli/keys.js'
import { kmsCommand } from './cli/kms.js'
import { migrateCommand } from './cli/migrate.js'
import { operatorCommand } from './cli/operator.js'
import { runCommand } from './cli/run.js'
import { serveCommand } from './cli/serve.js'
import { tourCommand } from './cli/tour.js'
import { webhooksCommand } from './cli/webhooks.js'
import { INTERFACE_VERSION } from '../gateway/capabilities.js'

const program = new Command('svc')
  .description('Identity and access for humans and software agents')
  .version(INTERFACE_VERSION, '-V, --version', 'the version of the public interface')
  .showHelpAfterError()
  .enablePositionalOptions()

serveCommand(program)
migrateCommand(program)
configCommand(program)
kmsCommand(program)
keysCommand(program)
auditCommand(program)
operatorCommand(program)
webhooksCommand(program)
agentCommand(program)
runCommand(program)
egressCommand(program)
tourCommand(program)

await program.parseAsync(process.argv)
