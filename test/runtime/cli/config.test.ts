import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Command } from 'commander'
import { parse } from 'smol-toml'
import {
  configCommand,
  configurationExample,
  configurationReference,
} from '../../../runtime/cli/config.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'

function run(args: string[], environment: Record<string, string> = {}) {
  const said = { out: '', err: '', code: 0 }
  const program = new Command()
  configCommand(program, {
    environment: { HOME: '/home/ann', ...environment },
    cwd: '/nowhere',
    out: (text) => (said.out += `${text}\n`),
    err: (text) => (said.err += `${text}\n`),
    exitWith: (code) => (said.code = code),
  })
  program.parse(['config', ...args], { from: 'user' })
  return said
}

const secrets = {
  DATABASE_URL: 'postgres://svc:hunter2@db/svc',
  SVC_REDIS__URL: 'redis://:hunter2@cache',
  SVC_EMAIL__SMTP_PASSWORD: 'hunter2',
  SVC_CHALLENGE__CAPTCHA_SECRET: 'hunter2',
  SVC_SERVER__METRICS_BEARER_TOKEN: 'hunter2-hunter2-hunter2',
  SVC_TENANT_ASSETS__ACCESS_KEY_ID: 'hunter2',
  SVC_TENANT_ASSETS__SECRET_ACCESS_KEY: 'hunter2',
  SVC_CHAINS:
    '[{ id = "eip155:1", rpc_url = "https://x/hunter2", asset = "0", asset_name = "a", asset_version = "1" }]',
}

for (const args of [['show'], ['show', '--json']]) {
  test(`config ${args.join(' ')} hides every secret, also in URLs`, (t) => {
    const { out, code } = run(args, secrets)
    t.is(code, 0)
    t.false(out.includes('hunter2'))
    t.true(out.includes('postgres://svc:[secret]@db/svc'))
    t.true(out.includes('redis://:[secret]@cache'))
  })
}

test('config show prints every value with its source', (t) => {
  const { out } = run(['show'], { SVC_SERVER__PORT: '9000', SVC_RUNTIME_PLANE: 'auth' })
  t.regex(out, /^# plane: auth$/m)
  t.regex(out, /^# data directory: \/home\/ann\/.local\/state\/svc$/m)
  t.regex(out, /^server.port = 9000 +# SVC_SERVER__PORT$/m)
  t.regex(out, /^server.host = "127.0.0.1" +# default$/m)
  t.regex(
    out,
    /^server.egress_url = "http:\/\/localhost:9000" +# from oidc.issuer_url and server.egress_port$/m,
  )
  t.regex(out, /^kms.socket_path = unset +# default$/m)
})

test('config show --json prints JSON', (t) => {
  const { out } = run(['show', '--json'], { SVC_SERVER__PORT: '9000' })
  const shown = JSON.parse(out) as { plane: string; settings: { key: string }[] }
  t.is(shown.plane, 'all')
  t.deepEqual(
    shown.settings.find(({ key }) => key === 'server.port'),
    { key: 'server.port', value: 9000, source: 'SVC_SERVER__PORT' } as { key: string },
  )
})

test('config check accepts a valid configuration', (t) => {
  t.deepEqual(run(['check']), { out: 'The configuration is valid.\n', err: '', code: 0 })
  t.deepEqual(JSON.parse(run(['check', '--json']).out), { valid: true })
})

test('config check names every file of a setting that cannot be read, config show does not', (t) => {
  const named = {
    SVC_SERVER__TLS__CERT_PEM_PATH: '/nowhere/cert.pem',
    SVC_SERVER__TLS__KEY_PEM_PATH: '/nowhere/key.pem',
    SVC_SERVER__TLS__CA_PEM_PATH: import.meta.filename,
    SVC_KMS__SOCKET_PATH: '/nowhere/kms.sock',
    SVC_KMS__SERVER_PUBLIC_KEY_PATH: '/nowhere/public',
    SVC_KMS__CLIENT_PRIVATE_KEY_PATH: '/nowhere/private',
    SVC_VAULT__EGRESS_CA_PEM_PATH: '/nowhere/egress.pem',
    SVC_WEBHOOKS__CA_PEM_PATH: '/',
    SVC_EMAIL__SMTP_CA_PEM_PATH: '/nowhere/mail.pem',
  }
  const { out, code } = run(['check', '--json'], named)
  t.is(code, 78)
  const { failures } = JSON.parse(out) as { failures: { key: string; rule: string }[] }
  t.deepEqual(
    failures.map(({ key }) => key),
    [
      'server.tls.cert_pem_path',
      'server.tls.key_pem_path',
      'kms.server_public_key_path',
      'kms.client_private_key_path',
      'vault.egress_ca_pem_path',
      'webhooks.ca_pem_path',
      'email.smtp_ca_pem_path',
    ],
  )
  t.true(failures[0]!.rule.includes('ENOENT'))
  t.true(failures[5]!.rule.includes('EISDIR'))
  t.is(run(['show'], named).code, 0)
})

for (const args of [['check'], ['show'], ['check', '--json'], ['show', '--json']]) {
  test(`config ${args.join(' ')} lists every failure and exits with 78`, (t) => {
    const { out, err, code } = run(args, { SVC_SERVER__PORT: 'x', SVC_JWT__KEY_ROTATION_DAYS: '0' })
    t.is(code, 78)
    const said = args.includes('--json') ? out : err
    t.true(said.includes('server.port'))
    t.true(said.includes('jwt.key_rotation_days'))
    t.true(said.includes('SVC_JWT__KEY_ROTATION_DAYS'))
  })
}

test('in a separate process it reads that environment and exits with 78', (t) => {
  const module = new URL('../../../runtime/cli/config.js', import.meta.url).href
  const script = `
    import { Command } from 'commander'
    import { configCommand } from ${JSON.stringify(module)}
    const program = new Command()
    configCommand(program)
    program.parse()`
  const args = ['--input-type=module', '-e', script, '--', 'config', 'check']
  const environment = { PATH: process.env['PATH'], SVC_SERVER__PORT: 'x' }
  const { status, stderr, stdout } = spawnSync(process.execPath, args, {
    env: environment,
    encoding: 'utf8',
  })
  t.is(status, 78, stderr)
  t.is(stdout, '')
  t.true(stderr.includes('server.port = "x"  (SVC_SERVER__PORT)'), stderr)
})

// The compiled tests run in the project's root, where ava is started.
const root = process.cwd()

test('svc.example.toml is what the schema generates', (t) => {
  t.is(readFileSync(join(root, 'svc.example.toml'), 'utf8'), configurationExample())
  t.is(run(['example']).out, configurationExample())
})

test('the reference in docs/reference/configuration.md is what the schema generates', (t) => {
  const page = readFileSync(join(root, 'docs', 'reference', 'configuration.md'), 'utf8')
  const [, generated] = /<!-- reference:begin -->\n\n([\s\S]*)\n\n<!-- reference:end -->/.exec(
    page,
  )!
  t.is(generated, configurationReference())
  t.is(run(['reference']).out, `${configurationReference()}\n`)
})

test('the unchanged example sets nothing', (t) => {
  const readFile = () => configurationExample()
  const withExample = loadSettings({ environment: {}, cwd: '/', readFile })
  const without = loadSettings({ environment: {}, cwd: '/nowhere' })
  t.is(withExample.tag, 'loaded')
  t.deepEqual(
    withExample.tag === 'loaded' && withExample.settings,
    without.tag === 'loaded' && without.settings,
  )
})

test('the example with every line uncommented is valid TOML with valid values', (t) => {
  const text = configurationExample().replace(/^# (\[\[.*\]\]|[a-z0-9_]+ = .*)$/gm, '$1')
  const settings = parse(text)
  t.true(Object.keys(settings).length > 40)
  const result = loadSettings({ environment: {}, cwd: '/', readFile: () => text })
  const failures = result.tag === 'refused' ? result.failures : []
  t.deepEqual(failures, [])
})
