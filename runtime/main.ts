/** The `svc` command: arguments, environment and signals in, exit code out. */
import { svcProgram } from './cli/program.js'

const [, , named = ''] = process.argv
const program = await svcProgram(named)
await program.parseAsync(process.argv)
