/** Entry of the local kms: only `svc kms`, with no other part of the service in its memory. */
import { Command } from 'commander'
import { kmsCommand } from './kms.js'

const program = new Command('svc')
kmsCommand(program)
await program.parseAsync()
