/**
 * The service behind nginx, HAProxy and Caddy, with the files of deploy/proxies. Only names, ports and paths of
 * certificates are replaced.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { program, testWithProgram } from '../../../support/service/programs.js'
import { freePort } from '../../../support/service.js'
import { type Certificate, makeCertificate } from '../../../support/service/certificates.js'
import {
  bodyCall,
  egressHouse,
  type EgressHouse,
  settingOf,
} from '../../../support/vault/egress.js'

const FILES = fileURLToPath(new URL('../../../../../deploy/proxies/', import.meta.url))
const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap/pow'
const START_TRIES = 200

type Proxy = {
  readonly name: string
  readonly program: string
  readonly file: string
  /** The arguments, with the folder of the configuration. */
  readonly run: (folder: string, file: string) => readonly string[]
  /** It passes TLS through: the service sees its address alone. */
  readonly passesTls?: true
}

const PROXIES: readonly Proxy[] = [
  {
    name: 'nginx',
    program: 'nginx',
    file: 'nginx.conf',
    run: (folder, file) => [
      '-p',
      folder,
      '-e',
      'stderr',
      '-c',
      file,
      '-g',
      'daemon off; pid nginx.pid;',
    ],
  },
  {
    name: 'HAProxy',
    program: 'haproxy',
    file: 'haproxy.cfg',
    run: (_, file) => ['-db', '-f', file],
  },
  {
    name: 'HAProxy that passes TLS through',
    program: 'haproxy',
    file: 'haproxy-tcp.cfg',
    run: (_, file) => ['-db', '-f', file],
    passesTls: true,
  },
  {
    name: 'Caddy',
    program: 'caddy',
    file: 'Caddyfile',
    run: (_, file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
]

interface Stage {
  readonly port: number
  readonly house: EgressHouse
  readonly ca: string
}

/** The file for these ports and certificates. */
function written(
  { file }: Proxy,
  folder: string,
  ports: { readonly own: number; readonly service: number },
  own: Certificate,
  serviceCa: string,
): string {
  const bundle = join(folder, 'bundle.pem')
  writeFileSync(bundle, own.pem + readFileSync(own.keyPath, 'utf8'))
  const caPath = join(folder, 'svc-ca.pem')
  writeFileSync(caPath, serviceCa)
  const text = readFileSync(join(FILES, file), 'utf8')
    .replaceAll('127.0.0.1:8443', `127.0.0.1:${ports.service}`)
    .replaceAll(/\/etc\/(nginx|haproxy|caddy)\/svc-ca\.pem/g, caPath)
    .replaceAll('/etc/nginx/id.example.com.pem', own.certPath)
    .replaceAll('/etc/nginx/id.example.com.key', own.keyPath)
    .replaceAll('/etc/haproxy/id.example.com.pem', bundle)
    .replace('hdr Host id.example.com', `hdr Host localhost:${ports.own}`)
    .replace('listen 443', `listen ${ports.own}`)
    .replace('bind :443', `bind :${ports.own}`)
    .replace(
      /^id\.example\.com \{/m,
      `https://localhost:${ports.own} {\n\ttls ${own.certPath} ${own.keyPath}`,
    )
    .replaceAll('*.id.example.com', '*.localhost')
    .replaceAll('id.example.com', 'localhost')
  const path = join(folder, file)
  writeFileSync(path, text)
  return path
}

async function behind(t: ExecutionContext, proxy: Proxy): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-proxy-'))
  // The workers of nginx run as another account.
  chmodSync(folder, 0o755)
  const own = makeCertificate()
  const port = await freePort()
  const address = `localhost:${port}`
  const house = await egressHouse({
    transport: proxy.passesTls ? 'tls' : 'tls_http1',
    environment: {
      SVC_OIDC__ISSUER_URL: `https://${address}`,
      SVC_SERVER__ALLOWED_HOSTS: `${address},localhost`,
      SVC_SERVER__TRUSTED_PROXIES: proxy.passesTls ? '' : '127.0.0.1',
      SVC_SERVER__DIRECT_CLIENT_EXPOSURE: String(proxy.passesTls === true),
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
      SVC_AUTH__REGISTRATION_RATE_LIMIT_MAX: '12',
    },
  })
  const service = Number(new URL(house.running.baseUrl).port)
  const file = written(proxy, folder, { own: port, service }, own, house.running.ca!)
  const child = spawn(program(proxy.program)!, proxy.run(folder, file), {
    cwd: folder,
    env: { PATH: process.env['PATH']!, HOME: folder },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  }
  t.teardown(async () => {
    await ended(child)
    await house.end()
    own.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const stage = { port, house, ca: proxy.passesTls ? house.running.ca! : own.pem }
  for (let tries = 0; ; tries += 1) {
    const status = await call(stage, '/health/ready').then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return stage
    if (tries > START_TRIES || child.exitCode !== null) throw new Error(`${status}: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

type Call = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The address of the client. */
  readonly from?: string
  readonly agent?: HttpsAgent
}
type Answer = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly isReused: boolean
}

/** The answer as soon as its head is there. */
function begin({ port, ca }: Stage, path: string, options: Call = {}) {
  const { method = 'GET', headers = {}, body, from = '127.0.0.1', agent } = options
  return new Promise<{ answer: IncomingMessage; isReused: boolean; cut(): void }>(
    (resolve, reject) => {
      const outgoing = httpsRequest(
        {
          host: '127.0.0.1',
          port,
          servername: 'localhost',
          localAddress: from,
          ca,
          path,
          method,
          agent: agent ?? false,
          headers: {
            host: `localhost:${port}`,
            ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
            ...headers,
          },
        },
        (answer) =>
          resolve({ answer, isReused: outgoing.reusedSocket, cut: () => outgoing.destroy() }),
      )
      outgoing.on('error', reject)
      outgoing.end(body)
    },
  )
}

async function call(stage: Stage, path: string, options: Call = {}): Promise<Answer> {
  const { answer, isReused } = await begin(stage, path, options)
  let text = ''
  for await (const chunk of answer) text += String(chunk)
  return { status: answer.statusCode ?? 0, headers: answer.headers, text, isReused }
}

/** A problem document of the service itself. */
function isOwnProblem(t: ExecutionContext, answer: Answer, status: number): void {
  t.is(answer.status, status, answer.text.slice(0, 300))
  t.regex(answer.headers['content-type'] ?? '', /^application\/problem\+json/)
  t.truthy(answer.headers['x-request-id'])
}

for (const proxy of PROXIES) {
  testWithProgram(
    proxy.program,
    `behind ${proxy.name} a deployment is what it is without`,
    async (t) => {
      t.timeout(180_000)
      const stage = await behind(t, proxy)
      const { house, port } = stage

      // Issuer, scheme and host.
      const metadata = await call(stage, '/.well-known/openid-configuration')
      t.is((JSON.parse(metadata.text) as { issuer: string }).issuer, `https://localhost:${port}`)
      t.regex(metadata.headers['strict-transport-security'] ?? '', /max-age=/)
      const page = await call(stage, '/auth/login', { headers: { accept: 'text/html' } })
      t.regex(String(page.headers['set-cookie']), /__Host-.*Secure/)
      isOwnProblem(
        t,
        await call(stage, '/api/v1/capabilities', {
          headers: { 'x-forwarded-host': 'evil.test' },
        }).then((answer) => (answer.status === 200 ? call(stage, '/no/such/path') : answer)),
        404,
      )

      // Limits of the service, not of the proxy.
      const form = { 'content-type': 'application/x-www-form-urlencoded' }
      const large = { method: 'POST', headers: form, body: `a=${'b'.repeat(256 * 1024)}` }
      isOwnProblem(t, await call(stage, '/oauth/token', large), 413)
      const head = { headers: { 'x-large': 'a'.repeat(20_000) } }
      isOwnProblem(t, await call(stage, '/health/ready', head), 431)
      const long = await call(stage, `/${'a'.repeat(17_000)}`)
      if (proxy.passesTls) isOwnProblem(t, long, 414)
      // A line that is longer than a TLS record may be cut, which uWebSockets refuses itself.
      else t.true([414, 505].includes(long.status))

      // Connections are kept.
      const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1 })
      t.false((await call(stage, '/health/ready', { agent })).isReused)
      t.true((await call(stage, '/health/ready', { agent })).isReused)
      agent.destroy()

      // The bytes of a stream come before its end.
      const api = apiOf({ ...house.running, baseUrl: `https://localhost:${port}`, ca: stage.ca })
      const setting = await settingOf({ ...house, api })
      const { answer, cut } = await begin(stage, '/v1/proxy/body', {
        method: 'POST',
        headers: {
          authorization: `Bearer ${setting.delegated}`,
          ...bodyCall(setting, `${house.upstream.origin}/fill-and-hold/100000`),
        },
        body: 'x',
      })
      t.is(answer.statusCode, 200)
      let bytes = 0
      for await (const chunk of answer) {
        bytes += (chunk as Buffer).length
        if (bytes > 50_000) break
      }
      cut()
      t.true(bytes > 50_000)

      // Each address has its own quota, whatever header a client adds.
      const register = (from: string, headers: Record<string, string> = {}) =>
        call(stage, BOOTSTRAP, {
          method: 'POST',
          from,
          headers: { 'content-type': 'application/json', ...headers },
          body: '{}',
        })
      let answered = 0
      for (let count = 0; count < 14 && answered !== 429; count += 1) {
        answered = (await register('127.0.0.2')).status
      }
      t.is(answered, 429)
      for (const forged of ['203.0.113.9', '127.0.0.3, 203.0.113.9']) {
        for (const field of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-client-ip']) {
          const value = field === 'forwarded' ? `for=${forged}` : forged
          t.is((await register('127.0.0.2', { [field]: value })).status, 429, `${field}: ${value}`)
        }
      }
      t.is((await register('127.0.0.3')).status, proxy.passesTls ? 429 : 400)
    },
  )
}

test('the files of the proxies name what the guide says', (t) => {
  for (const { file } of PROXIES) {
    const text = readFileSync(join(FILES, file), 'utf8')
    t.true(text.includes('docs/guides/operations/production.md'), file)
    t.true(text.includes('127.0.0.1:8443'), file)
  }
})
