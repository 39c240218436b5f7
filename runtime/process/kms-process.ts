/** Entry of the local kms: `svc kms` and nothing else of the service in its memory. */
import { Command } from 'commander'
import { kmsCommand } from '../cli/kms.js'

const program = new Command('svc')
kmsCommand(program)
await program.parseAsync()
