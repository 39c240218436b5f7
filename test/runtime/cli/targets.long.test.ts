/** Every command names the deployment that it speaks to, and where it read that, in one line on standard error. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { RESOURCES } from '../../../runtime/cli/api/resources.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'svc-targets-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

/** Nothing listens there, so that every command that needs it fails immediately. */
const DATABASE_URL = 'postgres://svc:hunter2@127.0.0.1:1/svc'
const ENVIRONMENT = {
  PATH: process.env['PATH'],
  HOME: folder,
  DATABASE_URL,
  SVC_OIDC__ISSUER_URL: 'http://id.targets.test:9',
  // A start is refused by the port before it touches anything.
  SVC_SERVER__PORT: '1',
}

const identity = join(folder, 'agent.json')
writeFileSync(identity, JSON.stringify({ base_url: 'http://agents.targets.test' }), { mode: 0o600 })
const token = join(folder, 'token')
writeFileSync(token, 'x')
const body = join(folder, 'body')
writeFileSync(body, '{}')
const secret = join(folder, 'secret')
writeFileSync(secret, 's'.repeat(32))

const OF_CONFIGURATION =
  'deployment http://id.targets.test:9 (from SVC_OIDC__ISSUER_URL), database 127.0.0.1:1 (from DATABASE_URL)'
const AT = 'http://127.0.0.1:1'
const OF_URL = `deployment ${AT} (from --url)`
const OF_IDENTITY = `deployment http://agents.targets.test (from ${identity})`
const NONE = 'no deployment: the command uses named files only'
const UUID = '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'

/** Command -> its arguments and the line. A command of `svc --help` that is not here fails the test below. */
const COMMANDS: readonly (readonly [command: string, args: readonly string[], line: string])[] = [
  ['serve', [], OF_CONFIGURATION],
  ['init', ['--url', AT, '--agent-file', join(folder, 'init.json')], OF_URL],
  ['migrate', [], OF_CONFIGURATION],
  ['migrate up', [], OF_CONFIGURATION],
  ['migrate finish', [], OF_CONFIGURATION],
  ['migrate status', [], OF_CONFIGURATION],
  ['migrate check', [], OF_CONFIGURATION],
  ['backup', ['--to', join(folder, 'backup')], OF_CONFIGURATION],
  ['restore', ['--from', join(folder, 'none')], OF_CONFIGURATION],
  ['admin recover', ['a@example.com'], OF_CONFIGURATION],
  ['health', [], OF_CONFIGURATION],
  ['doctor', [], OF_CONFIGURATION],
  ['trace', [UUID], OF_CONFIGURATION],
  ['seed', [], OF_CONFIGURATION],
  ['tour', ['--url', AT], OF_URL],
  ['config show', [], OF_CONFIGURATION],
  ['config check', [], OF_CONFIGURATION],
  ['config example', [], NONE],
  ['config reference', [], NONE],
  ['kms serve', ['--socket', join(folder, 's'), '--keys', join(folder, 'none')], NONE],
  ['kms keygen', ['--dir', join(folder, 'keys')], NONE],
  ['kms rotate', ['--keys', join(folder, 'none')], NONE],
  ['keys list', [], OF_CONFIGURATION],
  ['keys rotate', [], OF_CONFIGURATION],
  ['keys rewrap', [], OF_CONFIGURATION],
  ['keys rotate-data', ['--all'], OF_CONFIGURATION],
  ['keys reseal', [], OF_CONFIGURATION],
  ['audit verify', [body], NONE],
  ['completion', [], NONE],
  ...Object.entries(RESOURCES).flatMap(([name, { commands }]) =>
    commands.map(([command]) => [`${name} ${command}`, ['--url', AT], OF_URL] as const),
  ),
  ['operator create', [], OF_CONFIGURATION],
  ['operator app create', ['--name', 'x', '--scope', 'metrics:read'], OF_CONFIGURATION],
  ['operator appoint', [UUID], OF_CONFIGURATION],
  ['operator dismiss', [UUID], OF_CONFIGURATION],
  ['webhooks listen', ['--url', AT, '--forward-to', AT, '--token-file', token], OF_URL],
  ['webhooks recover', ['--url', AT, '--since', '1h', '--token-file', token], OF_URL],
  ['webhooks trigger', ['--to', AT, '--secret-file', secret], NONE],
  ['webhooks verify', ['--body', body, '--secret-file', secret], NONE],
  ['agent register', ['--url', AT, '--agent-file', join(folder, 'new.json')], OF_URL],
  [
    'agent workspace create',
    ['--url', AT, '--organization', 'x', '--agent-file', join(folder, 'w.json')],
    OF_URL,
  ],
  ['login', ['--url', AT, '--client-id', UUID], OF_URL],
  ['logout', ['--url', AT], OF_URL],
  ['agent login', ['--agent-file', identity], OF_IDENTITY],
  ['agent whoami', ['--agent-file', identity], OF_IDENTITY],
  ['agent token', ['--agent-file', identity], OF_IDENTITY],
  ['agent delegate', ['--agent-file', identity, '--scope', 'vault:read'], OF_IDENTITY],
  ['api list', ['--url', AT], OF_URL],
  ['api call', ['getCapabilities', '--url', AT], OF_URL],
  ['apply', ['-f', body, '--url', AT, '--token-file', token], OF_URL],
  ['run', ['--url', AT, '--token-file', token, '--', 'true'], OF_URL],
  ['egress', ['--url', AT, '--token-file', token, 'https://api.example.com'], OF_URL],
]

const svc = (...words: readonly string[]) =>
  spawnSync(process.execPath, [MAIN, ...words], {
    env: ENVIRONMENT,
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
    input: '',
  })

for (const [command, args, line] of COMMANDS) {
  test.serial(`svc ${command} says which deployment it speaks to`, (t) => {
    const { stderr } = svc(...command.split(' '), ...args)
    const [first] = stderr.split('\n')
    t.is(first, `svc: ${line}`)
    t.false(stderr.includes('hunter2'))
  })
}

/** The names of the sub-commands that the help of a command lists. */
function listed(path: readonly string[]): readonly string[] {
  const { stdout } = svc(...path, '--help')
  const [, commands = ''] = stdout.split(/^Commands:$/m)
  return [...commands.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'help')
}

test.serial('the table has every command of the help', (t) => {
  const walk = (path: readonly string[]): readonly string[] => {
    const names = listed(path)
    return names.length === 0 ? [path.join(' ')] : names.flatMap((name) => walk([...path, name]))
  }
  const known = new Set(COMMANDS.map(([command]) => command))
  t.deepEqual(
    walk([]).filter((command) => !known.has(command)),
    [],
  )
})

test.serial('JSON has the target', (t) => {
  const shown = JSON.parse(svc('config', 'show', '--json').stdout) as { target: string }
  t.is(shown.target, OF_CONFIGURATION)
  const { stderr } = svc('agent', 'whoami', '--json', '--agent-file', identity)
  t.like(JSON.parse(stderr), { target: OF_IDENTITY, error: 'failed' })
})

test.serial('a URL with a password is shown without it', (t) => {
  const { stderr } = svc('tour', '--url', 'http://ann:hunter2@127.0.0.1:1')
  t.regex(stderr, /^svc: deployment http:\/\/127\.0\.0\.1:1\/? \(from --url\)$/m)
})
