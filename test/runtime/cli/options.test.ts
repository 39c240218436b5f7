/** Options that every command has, and options that no command may have. */
import { execFileSync } from 'node:child_process'
import test from 'ava'
import type { Command } from 'commander'
import { svcProgram } from '../../../runtime/cli/program.js'
import { pathOf } from '../../../runtime/cli/target.js'

const program = await svcProgram('')
const leaves = (command: Command): readonly Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves)
const COMMANDS = leaves(program)

/** Options of Node 20, 22 and 24 that the running version may not have. */
const OF_OTHER_VERSIONS = [
  '--allow-net',
  '--disable-sigusr1',
  '--entry-url',
  '--env-file',
  '--env-file-if-exists',
  '--experimental-config-file',
  '--experimental-default-config-file',
  '--experimental-webstorage',
  '--localstorage-file',
  '--permission',
  '--report-exclude-env',
  '--run',
  '--test-coverage-include',
  '--test-isolation',
  '--test-rerun-failures',
  '--test-skip-pattern',
  '--test-update-snapshots',
  '--trace-env',
  '--use-env-proxy',
  '--use-system-ca',
  '--watch-kill-signal',
]

/** All long options of Node. */
function optionsOfNode(): ReadonlySet<string> {
  const help = execFileSync(process.execPath, ['--help'], { encoding: 'utf8' })
  const listed = [...help.matchAll(/(?<=^|[\s,])--[a-z][\w-]*/gm)].map(([option]) => option)
  const allowed = [...process.allowedNodeEnvironmentFlags].map((flag) => flag.replaceAll('_', '-'))
  return new Set([...OF_OTHER_VERSIONS, ...listed, ...allowed])
}

test('no command has an option of Node, which Node could take for itself', (t) => {
  const ofNode = optionsOfNode()
  t.true(ofNode.has('--env-file') && ofNode.has('--title') && ofNode.has('--import'))
  const taken = [program, ...COMMANDS].flatMap((command) =>
    command.options
      .map(({ long }) => long!)
      // It means the same to every program. Node takes it only before the script.
      .filter((long) => !['--version', '--check'].includes(long) && ofNode.has(long))
      .map((long) => `${pathOf(command)} ${long}`),
  )
  t.deepEqual(taken, [])
})

test('every command that ends writes its result to --output', (t) => {
  const without = COMMANDS.filter(
    ({ options }) => !options.some(({ long, short }) => long === '--output' && short === '-o'),
  )
  t.deepEqual(without.map(pathOf).toSorted(), [
    'kms serve',
    'run',
    'serve',
    'tour',
    'webhooks listen',
  ])
})

test('every command with a result prints it as JSON with --json', (t) => {
  const without = COMMANDS.filter(({ options }) => !options.some(({ long }) => long === '--json'))
  t.deepEqual(without.map(pathOf).toSorted(), [
    // Documents in another format.
    'completion',
    'config example',
    'config reference',
    // `--include` prints what came.
    'egress',
    // They do not end, or another program prints.
    'kms serve',
    'run',
    'serve',
    'tour',
  ])
})

test('one option names the service, and one the identity file of an agent', (t) => {
  const shown = COMMANDS.flatMap((command) =>
    command
      .createHelp()
      .visibleOptions(command)
      .map(({ long }) => `${pathOf(command)} ${long}`),
  )
  t.deepEqual(
    shown.filter((line) => /--(base-url|file)$/.test(line)),
    ['apply --file'],
  )
  const agent = COMMANDS.find((command) => pathOf(command) === 'agent register')!
  agent.parseOptions(['--base-url', 'http://a.example', '--file', 'a.json'])
  t.like(agent.opts(), { url: 'http://a.example', agentFile: 'a.json' })
})
