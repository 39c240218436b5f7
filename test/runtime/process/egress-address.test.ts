/** Where the egress address is: the default of `server.egress_url`, and the default of `npm start`. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import test from 'ava'
import { egressAddressRoutes, isAtEgress } from '../../../gateway/egress-door.js'
import { routes } from '../../../gateway/route-table.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { createLogger } from '../../../runtime/kernel/log.js'
import { withEgressBeside } from '../../../runtime/process/egress-address.js'
import { twoFreePorts } from '../../support/service.js'

const TLS = {
  SVC_SERVER__TRANSPORT: 'tls_http1',
  SVC_SERVER__TLS__CERT_PEM_PATH: '/cert.pem',
  SVC_SERVER__TLS__KEY_PEM_PATH: '/key.pem',
}
const load = (environment: Record<string, string>) => loadSettings({ environment, cwd: '/' })

function urlWith(environment: Record<string, string>): string {
  const loaded = load(environment)
  if (loaded.tag === 'refused') throw new Error(JSON.stringify(loaded.failures))
  return loaded.settings.server.egress_url
}

const PORT = { SVC_SERVER__EGRESS_PORT: '8081' }
const PUBLIC = { SVC_OIDC__ISSUER_URL: 'https://id.example.com' }

// biome-ignore format: a table
for (const [title, environment, expected] of [
  ['no port', {}, 'http://localhost:8080'],
  ['a local run', PORT, 'http://localhost:8081'],
  ['an address', { ...PORT, SVC_OIDC__ISSUER_URL: 'http://[::1]:8080' }, 'http://[::1]:8081'],
  ['TLS', { ...PORT, ...PUBLIC, ...TLS }, 'https://id.example.com:8081'],
  ['the port of https', { ...PUBLIC, ...TLS, SVC_SERVER__EGRESS_PORT: '443' }, 'https://id.example.com'],
  ['a proxy that ends TLS', { ...PORT, ...PUBLIC }, 'https://id.example.com'],
  ['a URL that is set', { ...PORT, SVC_SERVER__EGRESS_URL: 'https://out.example' }, 'https://out.example'],
  ['a split plane', { ...PORT, SVC_RUNTIME_PLANE: 'auth' }, 'http://localhost:8080'],
  ['a split plane with a URL', { ...PORT, SVC_RUNTIME_PLANE: 'control', SVC_SERVER__EGRESS_URL: 'https://out.example' }, 'https://out.example'],
] as const) {
  test(`server.egress_url: ${title}`, (t) => t.is(urlWith(environment), expected))
}

test('the ports of the two listeners differ', (t) => {
  const loaded = load({ SVC_SERVER__EGRESS_PORT: '8080' })
  t.is(loaded.tag, 'refused')
  if (loaded.tag !== 'refused') return
  t.true(loaded.failures.some(({ key }) => key.includes('egress_port')))
  for (const port of ['0', '65536', 'x']) {
    t.is(load({ SVC_SERVER__EGRESS_PORT: port }).tag, 'refused', port)
  }
})

test('the egress address has every route of its paths', (t) => {
  const paths = (some: typeof routes) =>
    [...new Set(some.filter(isAtEgress).map(({ method, path }) => `${method} ${path}`))].toSorted()
  t.deepEqual(paths(egressAddressRoutes), paths(routes))
  t.true(paths(routes).includes('POST /v1/proxy/body'))
  for (const path of ['/v1/proxyx', '/v1/proxy/', '/v1/mcp', '/healthy', '/']) {
    t.false(isAtEgress({ path }), path)
  }
  for (const path of [
    '/v1/mcp/{slug}',
    '/.well-known/oauth-protected-resource/v1/mcp/{slug}',
    '/v1/approvals/{id}',
  ]) {
    t.true(isAtEgress({ path }), path)
  }
})

async function addressOf(environment: Record<string, string>) {
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } })
  const found = await withEgressBeside({ environment, cwd: '/' }, log)
  return { port: found['SVC_SERVER__EGRESS_PORT'], lines: lines.join('') }
}

test('npm start has the egress address at the next port', async (t) => {
  const port = await twoFreePorts()
  const own = { SVC_SERVER__PORT: String(port) }
  t.deepEqual(await addressOf(own), { port: String(port + 1), lines: '' })
  // biome-ignore format: a table
  for (const [title, environment] of [
    ['another address', { ...own, SVC_SERVER__HOST: '0.0.0.0' }],
    ['an issuer elsewhere', { ...own, SVC_OIDC__ISSUER_URL: 'https://id.example.com' }],
    ['a forwarded port', { ...own, SVC_OIDC__ISSUER_URL: 'http://localhost:9' }],
    ['a URL that is set', { ...own, SVC_SERVER__EGRESS_URL: 'https://out.example' }],
    ['a split plane', { ...own, SVC_RUNTIME_PLANE: 'auth' }],
    ['refused settings', { ...own, SVC_SERVER__TRANSPORT: 'x' }],
  ] as const) {
    t.deepEqual(await addressOf(environment), { port: undefined, lines: '' }, title)
  }
  const set = { ...own, SVC_SERVER__EGRESS_PORT: '9' }
  t.deepEqual(await addressOf(set), { port: '9', lines: '' })
  const taken = createServer()
  taken.listen(port + 1, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const without = await addressOf(own)
  t.is(without.port, undefined)
  t.regex(without.lines, /"level":40.*taken by another program.*main listener serves/)
})
