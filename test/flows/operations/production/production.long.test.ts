/**
 * Production mode from deploy/production.example.toml, in a separate network: people sign in, an agent registers and a webhook
 * is delivered, with every requirement of production met.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { docsPage } from '../../../support/pages/docs-page.js'
import { program } from '../../../support/service/programs.js'

const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url))
const SCRIPT = join(ROOT, 'deploy/production-on-loopback.sh')
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** `unshare` needs the right to make a network, which root has outside of some containers. */
function mayIsolate(): boolean {
  try {
    execFileSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const missing = ['bash', 'curl', 'jq', 'openssl', 'initdb', 'unshare', 'ip', 'setpriv'].filter(
  (name) => program(name) === undefined,
)
if (missing.length === 0 && !mayIsolate()) missing.push('the right to make a network')

function testProduction(title: string, body: (t: ExecutionContext) => Promise<void>): void {
  if (missing.length === 0) test.serial(title, body)
  else test.skip(`${title} (skipped: without ${missing.join(', ')})`, () => undefined)
}

type Run = { readonly code: number | null; readonly out: string; readonly err: string }

/** An account without rights. */
const ORDINARY = 65534

/** Runs the script in a separate network, where an address of the public internet is this machine. */
async function onLoopback(
  t: ExecutionContext,
  options: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  /** The program that runs the script. */
  as: readonly string[] = [],
): Promise<Run & { readonly folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-production-test-'))
  if (as.length > 0) chownSync(folder, ORDINARY, ORDINARY)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const network = 'ip link set lo up && ip route add local 93.184.216.34/32 dev lo && exec "$@"'
  const child = spawn(
    'unshare',
    ['--net', 'sh', '-c', network, 'sh', ...as, SCRIPT, '--dir', folder, ...options],
    { env: { PATH: process.env['PATH']!, HOME: folder, ...environment } },
  )
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err, folder }
}

testProduction('production on loopback is ready for an ordinary user', async (t) => {
  t.timeout(240_000)
  const status = 'curl -s -o "$HOME/ready.json" -w "%{http_code}" "$BASE/health/ready"; id -u'
  const ids = [`--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups']
  const as = ['setpriv', ...ids, '--no-new-privs']
  const run = await onLoopback(t, ['--', 'sh', '-c', status], {}, as)
  t.is(run.code, 0, `${run.err}\n${run.out}`)
  t.is(run.out.trim(), `200${ORDINARY}`)
})

testProduction(
  'production on loopback signs in, registers an agent and delivers a webhook',
  async (t) => {
    t.timeout(240_000)
    const run = await onLoopback(
      t,
      ['--', process.execPath, here('production-network.js'), here('production-journey.js')],
      {
        SVC_VAULT__EGRESS_DNS_SERVERS: '127.0.0.1:5300',
        SVC_CHALLENGE__POW_DIFFICULTY_BITS: '18',
      },
    )
    t.is(run.code, 0, `${run.err}\n${run.out}`)
    const facts = JSON.parse(run.out.trim().split('\n').at(-1)!) as Record<string, unknown>
    t.is(facts['issuer'], 'https://localhost:8443')
    t.is(typeof facts['subject'], 'string')
    t.is(facts['http2'], 'h2 200')
    t.is(facts['http1'], 'HTTP/1.1 200')
    t.is(facts['agent'], 'active')
    t.is((facts['webhook'] as { tag: string }).tag, 'genuine', JSON.stringify(facts))
    t.regex(String(facts['strictTransport']), /max-age=/)
    t.regex(run.err, /The configuration is valid\./)
    const log = readFileSync(join(run.folder, 'svc.log'), 'utf8')
    t.regex(log, /"transport":"tls"/)
    t.true(log.includes('stopped'), 'it stops in order')
  },
)

testProduction(
  'docs/guides/operations/production.md starts the service in production mode',
  async (t) => {
    t.timeout(240_000)
    const page = docsPage(t, 'guides/operations/production')
    const commands = join(page.folder, 'commands.sh')
    writeFileSync(commands, page.blocks('sh').join('\n'))
    const places =
      'export CERT=$DIR/service.pem KEY=$DIR/service.key ETC=$DIR/etc KMS_RUN=$DIR/run ISSUER=$BASE; ' +
      'export SVC_SERVER__TLS__CA_PEM_PATH=$DIR/ca.pem; cd "$DIR"; exec bash -euo pipefail "$@"'
    const run = await onLoopback(
      t,
      ['--port', '8446', '--without-service', '--', 'bash', '-c', places, 'bash', commands],
      {
        CLONE: ROOT,
        NAME: 'localhost',
        SVC_SERVER__HOST: '127.0.0.1',
        SVC_SERVER__PORT: '8446',
        SVC_SERVER__ALLOWED_HOSTS: 'localhost:8446',
        SVC_OIDC__ISSUER_URL: 'https://localhost:8446',
      },
    )
    t.is(run.code, 0, `${run.err}\n${run.out}`)
    t.regex(run.out, /^The configuration is valid\.$/m)
    t.regex(run.out, /^ready: 200\nhttps:\/\/localhost:8446$/m)
    t.regex(run.out, /^https:\/\/localhost:8446\/.*…$/m)
  },
)
